"""The command that a reason names is one that anybody can run: it parses, and its keys exist.

Nothing is run: a run and a sweep stop where they would begin.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextvars import copy_context
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from joinsim._scenario import Scenario
from joinsim.cli import app
from joinsim.cli.command_line import CLOCK
from scenarios import scenario_files
from scenarios.wall_clock import WallClock


class ReachedError(Exception):
    """A command came to where it would run."""


def commands_of_the_catalog() -> Iterator[Any]:
    for name in scenario_files.catalog():
        named: dict[str, None] = {}
        for scale in ("smoke", "laptop", "paper"):
            claims = scenario_files.read(name, scale=scale).get("study", {}).get("claims", ())
            for claim in claims:
                if "tried" in claim:
                    named |= dict.fromkeys(claim["tried"]["command"].split("; "))
        for number, command in enumerate(named):
            yield pytest.param(command, id=f"{name}-{number}")


def _invoke(words: list[str]) -> Result:
    CLOCK.set(WallClock())  # as the program does
    return CliRunner().invoke(app, words)


@pytest.mark.parametrize("command", list(commands_of_the_catalog()))
def test_what_was_tried_can_be_run(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(self: Scenario, *_: Any, **__: Any) -> None:
        assert self.study or self.config  # which read its keys
        raise ReachedError

    for method in ("run", "sweep", "compare", "plan"):
        monkeypatch.setattr(Scenario, method, stop)
    program, *words = shlex.split(command)
    assert program == "joinsim"
    result = copy_context().run(_invoke, words)
    assert isinstance(result.exception, ReachedError), result.output
