"""One run watched: what its actors did, counted, and the processor time it took them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from actors.hosting.inline import InlineHost
from actors.protocol import Reply
from joins.work import COUNTERS, NO_WORK, Work
from netsim.cost import load_profile
from netsim.kernel import Kernel
from netsim.trace import Trace
from scenarios.networks import build_network
from scenarios.plan import Plan
from scenarios.rehearsal import rehearse


@dataclass(kw_only=True)
class Observed:
    """What a run came to.

    Attributes
    ----------
    seconds
        Processor time in actors, each message serialised as another process would force it to be.
    messages, rows, nbytes
        Received.
    work
        Charged.
    """

    seconds: float = 0.0
    messages: int = 0
    rows: int = 0
    nbytes: int = 0
    work: Work = field(default=NO_WORK)

    @property
    def counts(self) -> np.ndarray:
        """What a profile prices, in its order: messages, rows, bytes, then the counters of work."""
        work = [getattr(self.work, name) for name in COUNTERS[:-1]]
        return np.array([self.messages, self.rows, self.nbytes, *work], np.float64)


class _ObservingHost:
    """Runs actors in this process and adds up in *observed* what they did."""

    def __init__(self, host: InlineHost) -> None:
        self._host = host
        self.observed = Observed()

    def submit(
        self, ticket: int, actor: str, sender: str, port: str, handle: Any, now: int
    ) -> None:
        observed = self.observed
        observed.messages += 1
        if handle is not None:
            observed.rows += handle.rows
            observed.nbytes += handle.nbytes
        start = time.thread_time()
        self._host.submit(ticket, actor, sender, port, handle, now)
        observed.seconds += time.thread_time() - start

    def reply(self, ticket: int) -> Reply:
        reply = self._host.reply(ticket)
        self.observed.work += reply.work
        return reply


def observe(plan: Plan) -> Observed:
    """Run *plan* in this process, its results thrown away, after a rehearsal."""
    rehearse(*plan.rehearsal)
    graph = plan.graph(pairs=False)
    wiring = graph.wiring
    host = _ObservingHost(InlineHost(graph.specs, wiring, plan.config.seed, serialise=True))
    Kernel(
        wiring=wiring,
        placement=graph.placement,
        network=build_network(plan.config.network, dict.fromkeys(graph.placement.values())),
        profile=load_profile(),
        host=host,
        seed=plan.config.seed,
        trace=Trace(Kernel.trace_names(wiring)),
        collect=lambda results: None,
        only_emit=graph.only_emit,
    ).run()
    return host.observed
