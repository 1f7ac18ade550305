"""How far a command is: a live line on a terminal, else plain lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from actors import protocol
from scenarios.observer import Line, Observer
from scenarios.plan import Plan
from scenarios.terminal.printing import console
from scenarios.terminal.views import show_plan, show_streams, show_study
from scenarios.terminal.watching import watching

if TYPE_CHECKING:
    from scenarios.study.study import Study

_COMPILING = "compiling what this plan needs, once for this machine and version ..."


class Terminal(Observer):
    """Where to write; *quiet* leaves stdout to JSON and shows progress alone, on stderr.

    With *watch* the PEs of a run in virtual time are shown as it goes on.

    Attributes
    ----------
    out
        The console of stdout; it swallows everything when quiet.
    """

    def __init__(self, *, quiet: bool = False, watch: bool = False) -> None:
        self._watch = watch
        self.out = console(quiet=quiet)
        self._stderr = Console(stderr=True, highlight=False)

    def note(self, text: str) -> None:
        """Write on stderr what is being done."""
        self._stderr.print(text, style="dim", markup=False)

    def compiling(self) -> None:
        """Write on stderr that kernels are compiled, before the run."""
        self.note(_COMPILING)

    def planned(self, plan: Plan) -> None:
        """Print what will run, before its first event."""
        show_plan(self.out, plan)

    def compared(self, plan: Plan) -> None:
        """Print the streams that several systems are to join."""
        show_streams(self.out, plan.streams, plan.config)

    def study(self, study: Study) -> None:
        """Print what a study will run."""
        show_study(self.out, study)

    def preparing(self) -> AbstractContextManager[Line]:
        """Show the stages of data preparation."""
        return self._line("preparing", None)

    def running(self, plan: Plan) -> AbstractContextManager[Line]:
        """Show how far the run is."""
        total = sum(min(s.rows, plan.config.rows or s.rows) for s in plan.streams)
        if self._watch and plan.config.clock == "virtual":
            return watching(self._stderr, plan, total)
        doing = "running live" if plan.config.clock == "live" else "simulating"
        return self._line(doing, total)

    def points(self, total: int) -> AbstractContextManager[Line]:
        """Show which of *total* runs is in progress, and how long the rest will take."""
        return self._line("running", total)

    @contextmanager
    def _line(self, doing: str, total: int | None) -> Iterator[ProgressLine]:
        """Show a line that is gone when it is done."""
        with Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[state]}"),
            TimeElapsedColumn(),
            console=self._stderr,
            transient=True,
            disable=not self._stderr.is_terminal,  # it would print an empty line at its end
        ) as bar:
            yield ProgressLine(bar, doing, total)


class ProgressLine(Line):
    """One line about *doing* something that has *total* steps, if that is known."""

    def __init__(self, bar: Progress, doing: str, total: int | None) -> None:
        self._bar = bar
        self._doing = doing
        self._total = total or 0
        self._task = bar.add_task(doing, total=total, state="")
        self._tenths = 0
        self._stage = ""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show a stage of preparation."""
        self._bar.update(self._task, description=stage, completed=done, total=total or None)
        if stage != self._stage:
            self._print_plain(f"{stage} ...")
        self._stage = stage

    def on_run(self, at: protocol.Progress, seconds: float) -> None:
        """Show how far a run is, how fast, and how long it will take."""
        speed = at.tuples / seconds if seconds else 0
        left = (self._total - at.tuples) / speed if speed else 0
        state = (
            f"{at.tuples:,} of {self._total:,} tuples, {at.now_ns / 1e9:.3f} s of the run, "
            f"{speed:,.0f} tuples/s, {left:.0f} s left"
        )
        self._bar.update(self._task, completed=at.tuples, state=state)
        tenths = 10 * at.tuples // max(1, self._total)
        if tenths > self._tenths:
            self._print_plain(f"{self._doing}: {state}")
        self._tenths = max(tenths, self._tenths)

    def on_compile(self) -> None:
        """Show that kernels are compiled, whose machine code is then stored."""
        self._bar.console.print(_COMPILING, style="dim")

    def on_judge(self) -> None:
        """Show that the answer is being checked."""
        self._bar.update(self._task, description="judging", state="comparing with the oracle")

    def on_point(self, done: int, label: str) -> None:
        """Show which of many runs is next, and how long the rest will take."""
        elapsed = self._bar.tasks[0].elapsed or 0.0
        left = f", {elapsed / done * (self._total - done):.0f} s left" if done else ""
        state = f"run {done + 1} of {self._total}: {label}{left}"
        self._bar.update(self._task, completed=done, state=state)
        self._print_plain(state)

    def _print_plain(self, line: str) -> None:
        """Print *line* where there is no terminal on which the bar could be redrawn."""
        if not self._bar.console.is_terminal:
            print(line, file=sys.stderr)
