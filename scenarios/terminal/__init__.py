"""What a person sees in the terminal: what will run, how far it is, and one readable summary."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from scenarios.plan import Plan
from scenarios.terminal.progress import Display, Points, Stages, progress_bar

__all__ = ["Terminal"]

_FILE_WIDTH = 160


class Terminal:
    """Where to write; *quiet* keeps stdout for JSON and shows progress alone, on stderr.

    Attributes
    ----------
    out
        The console of stdout; it swallows everything when quiet.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self.out = Console(quiet=quiet, highlight=False, soft_wrap=True, width=_file_width())
        self._progress_console = Console(stderr=True, highlight=False)

    def note(self, told: str) -> None:
        """Say on stderr what is on."""
        self._progress_console.print(told, style="dim", markup=False)

    @contextmanager
    def preparing(self) -> Iterator[Stages]:
        """Show the stages of data preparation."""
        with progress_bar(self._progress_console) as progress:
            yield Stages(progress, self._progress_console)

    @contextmanager
    def running(self, plan: Plan) -> Iterator[Display]:
        """Show how far the run is."""
        total = sum(min(s.rows, plan.config.rows or s.rows) for s in plan.streams)
        doing = "running live" if plan.config.clock == "live" else "simulating"
        with progress_bar(self._progress_console) as progress:
            yield Display(progress, self._progress_console, total, doing)

    @contextmanager
    def points(self, total: int) -> Iterator[Points]:
        """Show which of *total* runs is on, and how long the rest will take."""
        with progress_bar(self._progress_console) as progress:
            yield Points(progress, self._progress_console, total)


def _file_width() -> int | None:
    """Return the width of what goes into a file or pipe, where tables need not be squeezed."""
    return None if sys.stdout.isatty() else _FILE_WIDTH
