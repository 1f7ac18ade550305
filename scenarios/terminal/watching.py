"""A run's PEs while it goes on in virtual time: their load, their queues, and how far they are.

What is shown is of the last part of the trace, some thousand messages: so it costs the run nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from rich.bar import Bar
from rich.console import Console
from rich.live import Live
from rich.table import Table

from actors.protocol import Progress
from netsim.trace import COLUMNS
from scenarios.formatting import format_duration
from scenarios.observer import Line
from scenarios.plan import Plan
from scenarios.report.load import NEAR

PES_SHOWN = 30
"""As many as a small terminal has lines for; those with the highest load."""

_RECEIVER, _LAST, _ARRIVED, _STARTED, _DONE = (
    COLUMNS.index(name) for name in ("receiver", "last", "arrived_ns", "started_ns", "done_ns")
)


@contextmanager
def watching(console: Console, plan: Plan, total: int) -> Iterator[Watch]:
    """Show the PEs of *plan*'s run over *total* tuples, redrawn as it goes on."""
    graph = plan.graph()
    watch = Watch([name for name in graph if graph.in_degree(name)], total)
    with Live(watch.table(), console=console, refresh_per_second=4) as live:
        watch.live = live
        yield watch
        live.update(watch.table())


class Watch(Line):
    """The PEs, by what the trace's latest rows say of them.

    Attributes
    ----------
    load
        Share of the rows' span of virtual time for which each PE was at work.
    queue
        Messages that waited in each inbox, on average over that span.
    behind
        Tuples that had left the sources and that no message served by the PE covers.
    """

    def __init__(self, pes: Sequence[str], total: int) -> None:
        self.load = dict.fromkeys(pes, 0.0)
        self.queue = dict.fromkeys(pes, 0.0)
        self._seen = dict.fromkeys(pes, 0)
        self._total = total
        self._at = Progress(now_ns=0, tuples=0, messages=0)
        self.live: Live | None = None

    @property
    def behind(self) -> dict[str, int]:
        """How many tuples each PE is behind the sources."""
        return {name: max(0, self._at.tuples - seen) for name, seen in self._seen.items()}

    def on_run(self, at: Progress, seconds: float) -> None:
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
        if self.live is not None:
            self.live.update(self.table())

    def table(self) -> Table:
        """Return the PEs with the highest load as a table."""
        behind = self.behind
        shown = sorted(self.load, key=lambda name: -self.load[name])[:PES_SHOWN]
        more = len(self.load) - len(shown)
        table = Table(
            title=f"{self._at.tuples:,} of {self._total:,} tuples, "
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
            bar = Bar(1, 0, load, color="red" if load > NEAR else "green")
            table.add_row(name, f"{load:.0%}", bar, f"{self.queue[name]:.1f}", f"{behind[name]:,}")
        return table
