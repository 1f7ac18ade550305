"""What it costs to pass messages between actors, by live runs: all that is not in the actors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from scenarios.running.live_run import homes, prepare_live
from scenarios.running.plan import Plan

if TYPE_CHECKING:
    from actors.hosting.ray_processes import RayProcesses

_SENDER, _RECEIVER, _NBYTES = 0, 1, 4
"""Columns of a live trace, see `actors.hosting.live.shard`."""


@dataclass(frozen=True, kw_only=True)
class Carried:
    """What one process of a live run passed on.

    Attributes
    ----------
    seconds, worked_seconds
        Its processor time outside the actors, and in them.
    local
        Messages and timers that stayed in it.
    received, received_bytes
        Messages from other processes, and their bytes.
    sent, sent_bytes
        Messages to other processes, and their bytes.
    """

    seconds: float
    worked_seconds: float
    local: int
    received: int
    received_bytes: int
    sent: int
    sent_bytes: int

    @property
    def counts(self) -> np.ndarray:
        """Return what seconds are made of: messages served, what is more of remote ones, bytes."""
        return np.array(
            [
                self.local + self.received,
                self.received,
                self.received_bytes,
                self.sent,
                self.sent_bytes,
            ],
            np.float64,
        )


def carry(plan: Plan, processes: RayProcesses) -> list[Carried]:
    """Run *plan* live in *processes*, which serve this run and no other; forget its results."""
    graph = plan.graph(pairs=False)
    run = prepare_live(plan, graph, processes)
    measured = run.run(lambda count: None)
    traces = [entry for entry in run.entries() if isinstance(entry, np.ndarray)]
    trace = np.concatenate(traces)
    home_of = homes(graph, processes.count)
    home = np.array([home_of[name] for name in graph])
    sender, receiver, nbytes = home[trace[:, _SENDER]], home[trace[:, _RECEIVER]], trace[:, _NBYTES]
    carried = []
    for process, processor_ns in measured.processor_ns.items():
        worked_ns = sum(ns for name, ns in measured.worked_ns.items() if home_of[name] == process)
        sends, receives = sender == process, receiver == process
        carried.append(
            Carried(
                seconds=(processor_ns - worked_ns) / 1e9,
                worked_seconds=worked_ns / 1e9,
                local=int((sends & receives).sum()),
                received=int((receives & ~sends).sum()),
                received_bytes=int(nbytes[receives & ~sends].sum()),
                sent=int((sends & ~receives).sum()),
                sent_bytes=int(nbytes[sends & ~receives].sum()),
            )
        )
    return carried
