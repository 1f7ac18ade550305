"""What commands print on, and with which code they end."""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.wall_clock import WallClock

if TYPE_CHECKING:
    from scenarios.many_runs import RunResult
    from scenarios.terminal.progress import Terminal

EXIT_PASS, EXIT_FAIL, EXIT_UNKNOWN, EXIT_STOPPED = range(4)
_FROM_BEST = (EXIT_PASS, EXIT_UNKNOWN, EXIT_FAIL, EXIT_STOPPED)

CLOCK: ContextVar[WallClock] = ContextVar("clock")
"""Measures the command, from when it began."""


class Finished(Exception):  # noqa: N818  (nothing went wrong)
    """A command is done and says with which exit code."""

    def __init__(self, code: int) -> None:
        self.code = code


def exit_code(passed: bool | None) -> int:
    """Return the exit code of a verdict; None is unknown."""
    if passed is None:
        return EXIT_UNKNOWN
    return EXIT_PASS if passed else EXIT_FAIL


def worst_exit_code(results: Iterable[RunResult]) -> int:
    """Return the worst of several runs' exit codes; unknown when there is none.

    Runs that claim nothing and are not exact are measured beside those that do: they are left out.
    """
    judged = (one for one in results if not one.is_only_measured)
    codes = (EXIT_STOPPED if one.failure else exit_code(one.passed) for one in judged)
    return max(codes, key=_FROM_BEST.index, default=EXIT_UNKNOWN)


def open_terminal(*, quiet: bool, watch: bool = False) -> Terminal:
    """Return what a command prints on; a *quiet* one prints nothing."""
    from joins.machine.imports import leave_out_unused
    from joins.machine.memory import keep_freed_memory

    leave_out_unused()
    keep_freed_memory()
    from scenarios.terminal.progress import Terminal

    return Terminal(quiet=quiet, watch=watch)


def draw_figure(figure: Path | None, finished: Any, terminal: Terminal) -> None:
    """Draw what ran into the file *figure*; None draws nothing."""
    if figure is not None:
        path = finished.figure(figure)
        terminal.out.print(f"{path}, with its data in {path.with_suffix('.csv').name}")


def print_json(value: dict[str, Any]) -> None:
    """Print *value* as the one JSON object on stdout."""
    from scenarios.run_directory import json_text

    print(json_text(value), end="")
