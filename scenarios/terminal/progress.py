"""Where a command writes, and how far it is: a live line on a terminal, else plain lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

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
from scenarios.plan import Plan
from scenarios.study.study import Study
from scenarios.terminal.views import show_plan, show_study

_FILE_WIDTH = 160
"""Width of what goes into a file or pipe, where tables need not be squeezed."""


class Terminal:
    """Where to write; *quiet* leaves stdout to JSON and shows progress alone, on stderr.

    Attributes
    ----------
    out
        The console of stdout; it swallows everything when quiet.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        width = None if sys.stdout.isatty() else _FILE_WIDTH
        self.out = Console(quiet=quiet, highlight=False, soft_wrap=True, width=width)
        self._stderr = Console(stderr=True, highlight=False)

    def note(self, text: str) -> None:
        """Write on stderr what is being done."""
        self._stderr.print(text, style="dim", markup=False)

    @contextmanager
    def preparing(self) -> Iterator[Stages]:
        """Show the stages of data preparation."""
        with self._bar() as bar:
            yield Stages(bar)

    def planned(self, plan: Plan) -> None:
        """Print what will run, before its first event."""
        show_plan(self.out, plan)

    def study(self, study: Study) -> None:
        """Print what a study will run."""
        show_study(self.out, study)

    @contextmanager
    def running(self, plan: Plan) -> Iterator[RunProgress]:
        """Show how far the run is."""
        total = sum(min(s.rows, plan.config.rows or s.rows) for s in plan.streams)
        doing = "running live" if plan.config.clock == "live" else "simulating"
        with self._bar() as bar:
            yield RunProgress(bar, total, doing)

    @contextmanager
    def points(self, total: int) -> Iterator[PointProgress]:
        """Show which of *total* runs is in progress, and how long the rest will take."""
        with self._bar() as bar:
            yield PointProgress(bar, total)

    def _bar(self) -> Progress:
        """Return a bar that is gone when it is done."""
        return Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[state]}"),
            TimeElapsedColumn(),
            console=self._stderr,
            transient=True,
        )


class Stages:
    """Stages of preparation: a line each."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task: TaskID | None = None
        self._stage = ""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show *stage*, with *done* of *total* stages behind it."""
        if self._task is None:
            self._task = self._bar.add_task(stage, total=total or None, state="")
        self._bar.update(self._task, description=stage, completed=done, total=total or None)
        if stage != self._stage:
            _print_plain(self._bar, f"{stage} ...")
        self._stage = stage


class RunProgress:
    """One line about a run: tuples, the run's time, speed, time left; *doing* is what it does."""

    def __init__(self, bar: Progress, total: int, doing: str) -> None:
        self._bar = bar
        self._doing = doing
        self._task = bar.add_task(doing, total=total, state="")
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
        self._bar.update(self._task, completed=at.tuples, state=state)
        tenths = 10 * at.tuples // max(1, self._total)
        if tenths > self._tenths:
            _print_plain(self._bar, f"{self._doing}: {state}")
        self._tenths = max(tenths, self._tenths)

    def on_judge(self) -> None:
        """Show that the answer is being checked."""
        self._bar.update(self._task, description="judging", state="comparing with the oracle")


class PointProgress:
    """One line about many runs: which is in progress, and the time left at the pace so far."""

    def __init__(self, bar: Progress, total: int) -> None:
        self._bar = bar
        self._total = total
        self._task = bar.add_task("running", total=total, state="")

    def on_point(self, done: int, label: str) -> None:
        """Show that *done* runs are done, and that *label* is next."""
        elapsed = self._bar.tasks[0].elapsed or 0.0
        left = f", {elapsed / done * (self._total - done):.0f} s left" if done else ""
        state = f"run {done + 1} of {self._total}: {label}{left}"
        self._bar.update(self._task, completed=done, state=state)
        _print_plain(self._bar, state)


def _print_plain(bar: Progress, line: str) -> None:
    """Print *line* where there is no terminal to redraw a bar on."""
    if not bar.console.is_terminal:
        print(line, file=sys.stderr)
