"""Handshake joins: two streams flow past each other through a chain of cores.

R enters at the first core and leaves at the last, S the other way round; both windows lie along the
chain, a segment of each at every core::

    source -> driver -+-> core.0 <-> core.1 <-> ... <-> core.n <-+
                      |     |          |                   |     |
                      |     +----------+----> sink <-------+     |
                      +------------------------------------------+

Cores talk to their neighbours alone and no tuple is stored twice. Windows are exact because every
tuple carries the window it sees: the driver alone knows who came before whom. What flows past
unseen costs a comparison of positions and no more.

In the handshake join (Teubner and Mueller) a tuple is only through when its followers have pushed
it along: a pair may have to wait for half a window. The low-latency handshake join (Roy, Teubner
and Gemulla) does not wait. A tuple is forwarded from core to core as fast as they take it and
stored on its way at one of them, its home, in turns; so it has met all others when it comes out at
the far end, and every core stores an equal share of both windows. A message crosses every core for
every batch of either stream: 2n messages for n cores, twice a broadcast's.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, ClassVar, Literal

from pydantic.dataclasses import dataclass

from actors.handshake import Core, Driver, LowLatencyCore, RestingCore
from actors.protocol import FEEDBACK
from actors.source import Source
from topologies.actor_graph import ActorGraph
from topologies.own_class import OR_OWN_INDEX
from topologies.topology import STRICT, Job, Pes, Topology


@dataclass(frozen=True, kw_only=True, config=STRICT)
class HandshakeParameters:
    """What a person may set of a handshake join.

    Attributes
    ----------
    pes
        Cores in the chain.
    index
        Structure of the local windows: nested loops in the originals; PIM-Tree's section 5 puts
        B+-trees there.
    """

    pes: Pes = 4
    index: Annotated[Literal["nested_loop", "b_plus_tree"], OR_OWN_INDEX] = "nested_loop"


class HandshakeJoinTopology(Topology[HandshakeParameters]):
    """A chain of cores in which tuples rest."""

    name = "handshake_join"
    title = "Handshake join: streams flow past each other through a chain of cores"
    paper = "How Soccer Players Would do Stream Joins (Teubner and Mueller, SIGMOD 2011)"
    exact = True
    parameters_type = HandshakeParameters
    core: ClassVar[type[Core]] = RestingCore

    def assemble(self, job: Job, parameters: HandshakeParameters) -> ActorGraph:
        """Return the chain."""
        p = parameters
        graph = ActorGraph()
        source = graph.add("source", "source", Source, **job.input)
        driver = graph.add("driver", "driver", Driver, **job.windows)
        local = {"cores": p.pes, "index": p.index, "pairs": job.pairs}
        cores = graph.add_each("core", p.pes, self.core, "core", **job.join, **local)
        graph.connect(source, "out", driver)
        graph.connect(driver, "first", cores[0])
        graph.connect(driver, "last", cores[-1])
        for left, right in pairwise(cores):
            graph.connect(left, "right", right)
            graph.connect(right, FEEDBACK, left)
        graph.add_sink(*cores)
        return graph


class LowLatencyHandshakeJoinTopology(HandshakeJoinTopology):
    """A chain of cores through which tuples are forwarded at once."""

    name = "low_latency_handshake_join"
    title = "Low-latency handshake join: tuples pass all cores at once and are stored at one"
    paper = "Low-latency handshake join (Roy, Teubner and Gemulla, PVLDB 7(9), 2014)"
    core = LowLatencyCore
