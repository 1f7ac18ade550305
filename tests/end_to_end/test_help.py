"""Every command's help ends with an example that works; the list is found by words and fits."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
import typer.main
from typer.core import TyperGroup

import joinsim as js
from joinsim.cli import app
from tests.end_to_end.conftest import Command

WIDTHS = (80, 200)
ELSEWHERE = {"demo", "diff", "reproduce", "claims", "prepare", "sweep", "report", "fuzz", "replay"}
"""Commands whose examples take Spark, Ray, minutes or earlier runs; other tests run them."""
ON_SPARK = {("run",)}
"""Commands whose examples have Spark prepare a sample: they run where its other tests do."""


def commands() -> Iterator[tuple[str, ...]]:
    """Yield the words of every command."""
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    for name, command in group.commands.items():
        inner = command.commands if isinstance(command, TyperGroup) else {}
        yield from ((name, one) for one in inner) if inner else [(name,)]


def example_of(joinsim: Command, words: tuple[str, ...]) -> list[str]:
    last = joinsim(*words, "--help").out.strip().rpartition("Example: joinsim ")[2]
    return shlex.split(last)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(
            words,
            id=" ".join(words),
            marks=[pytest.mark.xdist_group("spark")] if words in ON_SPARK else [],
        )
        for words in commands()
    ],
)
def test_every_help_ends_with_an_example_that_works(
    words: tuple[str, ...],
    joinsim: Command,
    request: pytest.FixtureRequest,
    prepared_once: None,
) -> None:
    if words in ON_SPARK:
        request.getfixturevalue("spark")
    example = example_of(joinsim, words)
    assert tuple(example[: len(words)]) == words
    if words[-1] not in ELSEWHERE:
        said = joinsim(*example)
        assert (said.code, said.out.strip() != "") == (0, True), said.err


def test_every_command_is_in_a_group(joinsim: Command) -> None:
    help_ = joinsim("--help").out
    assert "\nCommands:" not in help_
    assert "..." not in help_.partition("Joins:")[2], "a summary is cut"
    for heading in ("Joins:", "Scenarios and papers:", "Systems, data and machines:"):
        assert heading in help_


def test_the_version_is_that_of_the_package(joinsim: Command) -> None:
    assert joinsim("--version").out == f"joinsim {version('joinsim')}\n"
    assert js.__version__ == version("joinsim")


@pytest.mark.parametrize("width", WIDTHS)
def test_the_list_fits_the_terminal(
    width: int, joinsim: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = joinsim("list").out.splitlines()
    assert max(map(len, lines)) <= width
    assert not any("…" in line for line in lines)
    for whole in ("semijoin-fig10", "low_latency_handshake_join"):
        assert any(f" {whole} " in line for line in lines)


def test_a_width_of_zero_is_none(joinsim: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    plain = joinsim("show", "split_join")
    monkeypatch.setenv("COLUMNS", "0")
    assert joinsim("show", "split_join") == plain
    assert "no scenario" in joinsim("run", "moon").err


def test_an_argument_of_a_call_is_no_parameter_of_a_topology(joinsim: Command) -> None:
    wrong = joinsim("show", "split_join", "--set", "topology=hash_join")
    assert wrong.code == 3
    assert "parameters of split_join: topology: there is no such key" in wrong.err


def test_what_another_command_is_for_is_named(joinsim: Command, tmp_path: Path) -> None:
    scenario = joinsim("show", "oij-w1")
    assert (scenario.code, "oij-w1 is a scenario: joinsim run oij-w1" in scenario.err) == (3, True)
    folder = joinsim("replay", tmp_path)
    assert (folder.code, "is the line replay: of its report" in folder.err) == (3, True)


def test_a_message_has_its_colons(joinsim: Command) -> None:
    assert joinsim("run", "x:key:.toml").err == "joinsim: there is no file x:key:.toml\n"


def test_the_list_is_searched_by_words(joinsim: Command) -> None:
    found = joinsim("list", "oij", "skew", "--json").json
    names = [one["name"] for one in found["scenarios"]]
    assert "oij-fig14" in names
    assert "oij-fig10" not in names
    said = joinsim("list", "inequalty")
    assert (said.code, said.out) == (3, "")
    assert "did you mean" in said.err
    assert "inequality" in said.err


def test_the_shell_completes_names(tmp_path: Path) -> None:
    from joinsim.cli.command_line import complete_scenario, complete_topology

    assert complete_topology("kp_") == ["kp_oij"]
    assert "oij-w1" in complete_scenario("oij-w")


def test_every_command_has_a_function() -> None:
    others = {"list": "search", "topology": "new_topology", "demo": "run"}
    assert {others.get(words[-1], words[-1]) for words in commands()} <= set(js.__all__)


def test_a_narrow_terminal_cuts_no_actor_from_a_picture(
    joinsim: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    drawn = joinsim("show", "kp_oij").out.split("from:")[0]
    assert max(map(len, drawn.splitlines())) <= 40
    words = " ".join(drawn.translate({ord(sign): " " for sign in "├─└│"}).split())
    assert words.startswith("KP-OIJ: interval join, each key at one replica source ")
    assert "replicas -> oij.0, oij.1, oij.2, oij.3 oij " in words
