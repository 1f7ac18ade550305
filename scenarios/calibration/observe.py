"""One run watched: what its operators did, counted, and the processor time it took them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from actors.hosting.inline import InlineHost
from actors.protocol import Reply
from joins.work import NO_WORK, Work
from netsim.cost import load_profile
from netsim.kernel import Kernel
from netsim.trace import Trace
from scenarios.configuration.networks import build_network
from scenarios.running.plan import Plan
from scenarios.running.rehearsal import rehearse


@dataclass(kw_only=True)
class Observed:
    """What the actors of one operator came to in a run.

    Attributes
    ----------
    seconds
        Processor time in them.
    messages, rows
        Messages and timers received, and tuples: received or, by a source, sent.
    work
        Charged.
    """

    seconds: float = 0.0
    messages: int = 0
    rows: int = 0
    work: Work = field(default=NO_WORK)


class _ObservingHost:
    """Runs actors in this process and adds up what they did, by operator.

    Parameters
    ----------
    host
        Runs them.
    role_of
        Actor name to operator.
    """

    def __init__(self, host: InlineHost, role_of: Mapping[str, str]) -> None:
        self._host = host
        self.observed = {role: Observed() for role in role_of.values()}
        self._of = {name: self.observed[role] for name, role in role_of.items()}
        self._asked: dict[int, tuple[Observed, bool]] = {}

    def submit(
        self, ticket: int, actor: str, sender: str, port: str, handle: Any, now: int
    ) -> None:
        observed = self._of[actor]
        observed.messages += 1
        if handle is not None:
            observed.rows += handle.rows
        self._asked[ticket] = observed, handle is None
        start = time.thread_time()
        self._host.submit(ticket, actor, sender, port, handle, now)
        observed.seconds += time.thread_time() - start

    def reply(self, ticket: int) -> Reply:
        reply = self._host.reply(ticket)
        observed, by_itself = self._asked.pop(ticket)
        observed.work += reply.work
        if by_itself:  # a source's timer
            observed.rows += sum(sent.rows for sent in reply.sends)
        return reply


def observe(plan: Plan) -> dict[str, Observed]:
    """Run *plan* in this process, its results thrown away, after a rehearsal.

    Returns
    -------
    dict
        Operator to what its actors came to.
    """
    rehearse(*plan.rehearsal)
    graph = plan.graph(pairs=False)
    wiring = graph.wiring
    inline = InlineHost(graph.specs, wiring, plan.config.seed)
    host = _ObservingHost(inline, dict(graph.nodes(data="role")))
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
