"""Callbacks that show the progress of work; these show nothing.

`scenarios.terminal.progress` has those of the terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a list is printed sooner without
    import numpy as np

    from actors.protocol import Progress
    from scenarios.plan import Plan
    from scenarios.study.study import Study


COMPILING = "compiling what this plan needs, once for this machine and version ..."


class Line:
    """Shows the progress of one thing."""

    on_rows: Callable[[Sequence[str], np.ndarray], None] | None = None
    """Shows rows of the trace of a run in virtual time; None where nothing does."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show a *stage* of preparation, with *done* of *total* stages behind it."""

    def on_run(self, at: Progress, seconds: float) -> None:
        """Show how far a run is, *seconds* after its sources began to send."""

    def on_compile(self) -> None:
        """Show that kernels are compiled, whose machine code is then stored."""

    def on_judge(self) -> None:
        """Show that the answer of a run is being checked."""

    def on_point(self, done: int, label: str) -> None:
        """Show that *done* of many runs are done, and that *label* is next."""


NO_LINE = Line()


class Observer:
    """Shows what runs, and how far it is."""

    def note(self, text: str) -> None:
        """Show what is being done."""

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
