"""What is called while something goes on, to show how far it is; by itself it shows nothing.

The line in the terminal is `scenarios.terminal.progress`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a list is printed sooner without
    import numpy as np

    from actors.protocol import Progress


class Line:
    """How far one thing is.

    Attributes
    ----------
    on_rows
        What shows the trace's rows of a run in virtual time; None: nothing does.
    """

    on_rows: Callable[[Sequence[str], np.ndarray], None] | None = None

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
