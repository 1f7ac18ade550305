"""How far something is: a live line on a terminal, plain lines where there is none."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from netsim import outcome


def progress_bar(console: Console) -> Progress:
    """Return a bar that is gone when it is done."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )


class Stages:
    """Stages of preparation: a line each, plain where there is no terminal to redraw."""

    def __init__(self, progress: Progress, console: Console) -> None:
        self._progress = progress
        self._console = console
        self._task: TaskID | None = None
        self._stage = ""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show *stage*, with *done* of *total* stages behind it."""
        if self._task is None:
            self._task = self._progress.add_task(stage, total=total or None, state="")
        self._progress.update(self._task, description=stage, completed=done, total=total or None)
        if stage != self._stage and not self._console.is_terminal:
            print(f"{stage} ...", file=sys.stderr)
        self._stage = stage


class Display:
    """One live line: tuples, the run's time, speed, time left; *doing* is the word for it."""

    def __init__(self, progress: Progress, console: Console, total: int, doing: str) -> None:
        self._progress = progress
        self._console = console
        self._doing = doing
        self._task = progress.add_task(doing, total=total, state="")
        self._total = total
        self._tenths = 0

    def on_run(self, at: outcome.Progress, seconds: float) -> None:
        """Show how far the run is, *seconds* after its sources began to send."""
        speed = at.tuples / seconds if seconds else 0
        left = (self._total - at.tuples) / speed if speed else 0
        state = (
            f"{at.tuples:,} of {self._total:,} tuples, {at.virtual_ns / 1e9:.3f} s of the run, "
            f"{speed:,.0f} tuples/s, {left:.0f} s left"
        )
        self._progress.update(self._task, completed=at.tuples, state=state)
        tenths = 10 * at.tuples // max(1, self._total)
        if tenths > self._tenths and not self._console.is_terminal:
            print(f"{self._doing}: {state}", file=sys.stderr)
        self._tenths = max(tenths, self._tenths)

    def on_judge(self) -> None:
        """Show that the answer is being checked."""
        self._progress.update(self._task, description="judging", state="comparing with the oracle")


class Points:
    """One line for many runs: which one is on, and the time left at the pace so far."""

    def __init__(self, progress: Progress, console: Console, total: int) -> None:
        self._progress = progress
        self._console = console
        self._total = total
        self._task = progress.add_task("running", total=total, state="")

    def on_point(self, done: int, label: str) -> None:
        """Show that *done* runs are done, and that *label* is next."""
        elapsed = self._progress.tasks[0].elapsed or 0.0
        left = f", {elapsed / done * (self._total - done):.0f} s left" if done else ""
        state = f"run {done + 1} of {self._total}: {label}{left}"
        self._progress.update(self._task, completed=done, state=state)
        if not self._console.is_terminal:
            print(state, file=sys.stderr)
