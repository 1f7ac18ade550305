"""What it costs to pass messages between actors, by live runs: all that is not in the actors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from scenarios.live_run import homes, prepare_live
from scenarios.plan import Plan

if TYPE_CHECKING:
    from actors.hosting.ray_processes import RayProcesses

_SENDER, _RECEIVER, _NBYTES = 0, 1, 4
"""Columns of a live trace, see `actors.hosting.live.shard`."""


@dataclass(frozen=True, kw_only=True)
class Carried:
    """What a live run passed on.

    Attributes
    ----------
    seconds
        Processor time of all its processes outside the actors.
    local, remote
        Messages and timers within a process, and messages between two.
    nbytes
        Of those between two.
    """

    seconds: float
    local: int
    remote: int
    nbytes: int

    @property
    def counts(self) -> np.ndarray:
        """Return what seconds are made of: all messages, what is more of remote ones, and bytes."""
        return np.array([self.local + self.remote, self.remote, self.nbytes], np.float64)


def carry(plan: Plan, processes: RayProcesses) -> Carried:
    """Run *plan* live in *processes*, which serve this run and no other; forget its results."""
    graph = plan.graph(pairs=False)
    run = prepare_live(plan, graph, processes)
    measured = run.run(lambda count: None)
    traces = [entry for entry in run.entries() if isinstance(entry, np.ndarray)]
    trace = np.concatenate(traces)
    home_of = homes(graph, processes.count)
    home = np.array([home_of[name] for name in graph])
    remote = home[trace[:, _SENDER]] != home[trace[:, _RECEIVER]]
    return Carried(
        seconds=(measured.processor_ns - sum(measured.worked_ns.values())) / 1e9,
        local=int((~remote).sum()),
        remote=int(remote.sum()),
        nbytes=int(trace[remote, _NBYTES].sum()),
    )
