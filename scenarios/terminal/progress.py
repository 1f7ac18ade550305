"""How far a command is: a live line on a terminal, else plain lines; or a run's PEs, to watch.

Of the PEs it shows their load, their queues, and how far they are. That is of the last part of the
trace, some thousand messages: so it costs the run nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

import numpy as np
from rich.bar import Bar
from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from actors import protocol
from netsim.trace import COLUMNS
from scenarios.formatting import format_duration, format_many
from scenarios.observer import COMPILING, Line, Observer
from scenarios.plan import Plan
from scenarios.report.run_summary import NEAR_SATURATION
from scenarios.terminal.printing import console
from scenarios.terminal.views import show_plan, show_streams, show_study

if TYPE_CHECKING:
    from scenarios.study.study import Study

PES_SHOWN = 30
"""As many as a small terminal has lines for; those with the highest load."""

_RECEIVER, _LAST, _ARRIVED, _STARTED, _DONE = (
    COLUMNS.index(name) for name in ("receiver", "last", "arrived_ns", "started_ns", "done_ns")
)


class Terminal(Observer):
    """Where to write; *quiet* leaves stdout to JSON and shows progress alone, on stderr.

    With *watch* the PEs of a run in virtual time are shown as it goes on.
    """

    def __init__(self, *, quiet: bool = False, watch: bool = False) -> None:
        self._watch = watch
        self.out = console(quiet=quiet)
        """The console of stdout; it swallows everything when quiet."""
        self._stderr = Console(stderr=True, emoji=False, highlight=False)

    def note(self, text: str) -> None:
        """Write on stderr what is being done."""
        self._stderr.print(text, style="dim", markup=False)

    def planned(self, plan: Plan) -> None:
        """Print what will run, before its first event."""
        show_plan(self.out, plan)

    def compared(self, plan: Plan) -> None:
        """Print the streams that several systems are to join."""
        show_streams(self.out, plan)

    def study(self, study: Study) -> None:
        """Print what a study will run."""
        show_study(self.out, study)

    def preparing(self) -> AbstractContextManager[Line]:
        """Show the stages of data preparation."""
        return self._line("preparing", None)

    def running(self, plan: Plan) -> AbstractContextManager[Line]:
        """Show how far the run is."""
        total = sum(plan.rows)
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
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[state]}", markup=False),
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
            f"{at.tuples:,} of {format_many(self._total, 'tuple')}, "
            f"{at.now_ns / 1e9:.3f} s of the run, "
            f"{speed:,.0f} tuples/s, {left:.0f} s left"
        )
        self._bar.update(self._task, completed=at.tuples, state=state)
        tenths = 10 * at.tuples // max(1, self._total)
        if tenths > self._tenths:
            self._print_plain(f"{self._doing}: {state}")
        self._tenths = max(tenths, self._tenths)

    def on_compile(self) -> None:
        """Show that kernels are compiled, whose machine code is then stored."""
        self._bar.console.print(COMPILING, style="dim")

    def on_judge(self) -> None:
        """Show that the answer is being checked."""
        self._bar.update(self._task, description="judging", state="comparing with the oracle")

    def on_point(self, done: int, label: str) -> None:
        """Show which of many runs is next, and how long the rest will take."""
        elapsed = self._bar.tasks[0].elapsed or 0.0
        goes_on = 0 < done < self._total
        left = f", {elapsed / done * (self._total - done):.0f} s left" if goes_on else ""
        state = f"run {min(done + 1, self._total)} of {self._total}: {label}{left}"
        self._bar.update(self._task, completed=done, state=state)
        self._print_plain(state)

    def _print_plain(self, line: str) -> None:
        """Print *line* where there is no terminal on which the bar could be redrawn."""
        if not self._bar.console.is_terminal:
            print(line, file=sys.stderr)


@contextmanager
def watching(console: Console, plan: Plan, total: int) -> Iterator[Watch]:
    """Show the PEs of *plan*'s run over *total* tuples, redrawn as it goes on."""
    graph = plan.graph()
    watch = Watch([name for name in graph if graph.in_degree(name)], total)
    with Live(get_renderable=watch.table, console=console, refresh_per_second=4):
        yield watch


class Watch(Line):
    """The PEs, by what the trace's latest rows say of them."""

    def __init__(self, pes: Sequence[str], total: int) -> None:
        self.load = dict.fromkeys(pes, 0.0)
        """Share of the rows' span of virtual time for which each PE was at work."""
        self.queue = dict.fromkeys(pes, 0.0)
        """Messages that waited in each inbox, on average over that span."""
        self._seen = dict.fromkeys(pes, 0)
        self._total = total
        self._at = protocol.Progress(now_ns=0, tuples=0, messages=0)

    @property
    def behind(self) -> dict[str, int]:
        """Tuples that had left the sources and that no message served by the PE covers."""
        return {name: max(0, self._at.tuples - seen) for name, seen in self._seen.items()}

    def on_run(self, at: protocol.Progress, seconds: float) -> None:
        """Take how far the run is."""
        self._at = at

    def on_rows(self, names: Sequence[str], rows: np.ndarray) -> None:
        """Take a part of the trace."""
        done, arrived = rows[:, _DONE], rows[:, _ARRIVED]
        span_ns = max(1, int(done.max() - arrived.min()))
        of = rows[:, _RECEIVER]
        busy_ns = np.bincount(of, done - rows[:, _STARTED], len(names))
        waited_ns = np.bincount(of, rows[:, _STARTED] - arrived, len(names))
        last = np.full(len(names), -1)
        np.maximum.at(last, of, rows[:, _LAST])
        for place, name in enumerate(names):
            if name in self.load:
                self.load[name] = busy_ns[place] / span_ns
                self.queue[name] = waited_ns[place] / span_ns  # Little's law
                self._seen[name] = max(self._seen[name], int(last[place]) + 1)

    def table(self) -> Table:
        """Return the PEs with the highest load as a table."""
        behind = self.behind
        shown = sorted(self.load, key=lambda name: -self.load[name])[:PES_SHOWN]
        more = len(self.load) - len(shown)
        table = Table(
            title=f"{self._at.tuples:,} of {format_many(self._total, 'tuple')}, "
            f"{format_duration(self._at.now_ns)} of the run",
            caption=f"and {more} more with less load" if more else None,
            title_justify="left",
        )
        table.add_column("PE", no_wrap=True)
        table.add_column("load", justify="right")
        table.add_column("", width=20)
        table.add_column("queue, messages", justify="right")
        table.add_column("behind the sources, tuples", justify="right")
        for name in shown:
            load = min(1.0, self.load[name])
            bar = Bar(1, 0, load, color="red" if load > NEAR_SATURATION else "green")
            table.add_row(name, f"{load:.0%}", bar, f"{self.queue[name]:.1f}", f"{behind[name]:,}")
        return table
