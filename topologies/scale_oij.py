"""Scale-OIJ: an interval join on one multicore machine, whose threads share the state buffers.

Sources and the sink reach the machine as in the other patterns; within it nothing travels::

    source -> emitter -+
    source -> emitter -+-> shared memory join (threads) -> sink

Where HP-OIJ multicasts the tuples of a split key, here a tuple goes to one thread, and that thread
looks into the buffers of others; so splitting costs no messages, but the other threads' caches.
"""

from __future__ import annotations

from typing import Annotated

from annotated_types import Interval
from pydantic.dataclasses import dataclass

from actors.interval_join.distribution import ByKey, Homes
from actors.interval_join.emitter import Emitter
from actors.interval_join.shared_memory import SharedMemoryJoin
from actors.results import Sink
from topologies.actor_graph import ActorGraph
from topologies.interval_join import IntervalJoinTopology, OijParameters, add_emitters
from topologies.topology import STRICT, Job, Pes

_WHOLE_TURN = 1_000_000
"""Tuples of a batch: emitters pass on what their source brings; threads take tuples one by one."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ScaleOijParameters(OijParameters):
    """What a person may set of Scale-OIJ; *replicas* are its threads.

    Attributes
    ----------
    contention
        Atomic operations' worth of cache misses that one look into another thread's part of a
        buffer costs.
    schedule_messages
        After how many messages the threads of each key are chosen anew; None: each stays at one.
    threshold
        How far above the average the most loaded thread may be.
    """

    contention: Annotated[int, Interval(ge=0, le=1000)] = 5
    schedule_messages: Pes | None = 8
    threshold: Annotated[float, Interval(ge=1, le=1000)] = 1.1


class ScaleOij(IntervalJoinTopology[ScaleOijParameters]):
    """Threads over shared buffers."""

    name = "scale_oij"
    title = "Scale-OIJ: interval join on one machine, threads share buffers and split hot keys"
    paper = (
        "Scalable Online Interval Join on Modern Multicore Processors in OpenMLDB "
        "(Zhang et al., ICDE 2023)"
    )
    parameters_type = ScaleOijParameters

    def assemble(self, job: Job, parameters: ScaleOijParameters) -> ActorGraph:
        """Return sources, emitters and the machine for *job*."""
        p = parameters
        graph = ActorGraph()
        emitters = add_emitters(
            graph,
            job,
            p,
            Emitter,
            {"distribution": ByKey(Homes(1)), "batch_rows": _WHOLE_TURN, "linger_turns": 0},
        )
        machine = graph.add(
            "oij",
            "oij",
            SharedMemoryJoin,
            query=job.query,
            schemas=tuple(file.schema for file in job.files),
            channels=len(emitters),
            threads=p.replicas,
            contention=p.contention,
            schedule_messages=p.schedule_messages,
            threshold=p.threshold,
            pairs=job.pairs,
        )
        sink = graph.add("sink", "sink", Sink, only_emits=True)
        for emitter in emitters:
            graph.connect(emitter, "replicas", machine)
        graph.connect(machine, "sink", sink)
        return graph
