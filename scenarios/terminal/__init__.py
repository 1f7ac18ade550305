"""What a person sees in the terminal: progress, and results when they are there.

The observer here shows nothing; that of `scenarios.terminal.progress` does. Import it only where
something is printed: rich takes a while to load.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from scenarios.line import NO_LINE, Line

if TYPE_CHECKING:  # a list is printed sooner without
    from scenarios.plan import Plan
    from scenarios.study.study import Study


class Observer:
    """Shows what runs, and how far it is."""

    def note(self, text: str) -> None:
        """Show what is being done."""

    def compiling(self) -> None:
        """Show that kernels are compiled, before the run."""

    def planned(self, plan: Plan) -> None:
        """Show what will run, before its first event."""

    def compared(self, plan: Plan) -> None:
        """Show the streams of *plan*, which several systems are to join."""

    def study(self, study: Study) -> None:
        """Show what a study will run."""

    def preparing(self) -> AbstractContextManager[Line]:
        """Show the stages of data preparation."""
        return nullcontext(NO_LINE)

    def running(self, plan: Plan) -> AbstractContextManager[Line]:
        """Show how far the run is."""
        return nullcontext(NO_LINE)

    def points(self, total: int) -> AbstractContextManager[Line]:
        """Show which of *total* runs is in progress."""
        return nullcontext(NO_LINE)


SILENT = Observer()
