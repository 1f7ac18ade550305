"""The graph that PPOIJ's three patterns share (Figures 3 and 7).

Each stream has its sources, each source an emitter beside it, and every emitter reaches every
replica; they differ in how emitters distribute and collectors gather (Table 1)::

    source -> emitter -+   +-> [collector] replica -+
    source -> emitter -+ x +-> [collector] replica -+-> sink
    source -> emitter -+   +-> [collector] replica -+
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any, TypeVar

from annotated_types import Interval
from pydantic.dataclasses import dataclass

from actors.interval_join.distribution import Homes, KeyHash
from actors.interval_join.emitter import Emitter
from actors.interval_join.replica import Order, Replica
from actors.interval_join.source import StreamSource
from actors.results import Sink
from topologies.actor_graph import ActorGraph
from topologies.topology import STRICT, Job, P, Pes, Topology

Turns = Annotated[int, Interval(ge=0, le=1000)]
BatchRows = Annotated[int, Interval(ge=1, le=1_000_000)]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class OijParameters:
    """What a person may set of every pattern.

    Attributes
    ----------
    replicas
        Replicas of the join.
    base_emitters, probe_emitters
        Sources of each stream, each with an emitter.
    """

    replicas: Pes = 4
    base_emitters: Pes = 1
    probe_emitters: Pes = 1

    @property
    def batching(self) -> dict[str, int]:
        """How emitters gather tuples in batches: not at all, each tuple is a message."""
        return {"batch_rows": 1, "linger_turns": 0}


@dataclass(frozen=True, kw_only=True, config=STRICT)
class KeyedParameters(OijParameters):
    """What a person may set of a pattern in which keys have a home among the replicas.

    Attributes
    ----------
    key_hash
        How homes are chosen: ``mixed``, or ``identity`` as in WindFlow, where keys that are whole
        numbers go to the replicas in turns.
    """

    key_hash: KeyHash = "mixed"

    @property
    def homes(self) -> Homes:
        """Where each key is at home."""
        return Homes(self.replicas, self.key_hash)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class BatchingParameters(OijParameters):
    """What a person may set of a pattern that sends tuples in batches.

    Attributes
    ----------
    batch_rows
        Tuples that an emitter sends in one message at the most; the paper's experiments take 32.
    linger_turns
        For how many of its source's messages an emitter lets a tuple wait for its batch to fill.
    """

    batch_rows: BatchRows = 32
    linger_turns: Turns = 2

    @property
    def batching(self) -> dict[str, int]:
        """How emitters gather tuples in batches."""
        return {"batch_rows": self.batch_rows, "linger_turns": self.linger_turns}


@dataclass(frozen=True, kw_only=True, config=STRICT)
class CollectedParameters(BatchingParameters):
    """What a person may set of a pattern in which a tuple may reach several replicas.

    Attributes
    ----------
    collector
        ``ordered``, or ``naive`` to see the duplicate and missing pairs of Examples 4.1 to 4.3.
    """

    collector: Order = "ordered"


class IntervalJoinTopology(Topology[P]):
    """A system that joins within an interval."""

    exact = True
    within_interval = True
    example_query = (
        "SELECT * FROM A, B WHERE A.key = B.key "
        "AND B.ts BETWEEN A.ts - INTERVAL '100 ms' AND A.ts + INTERVAL '100 ms'"
    )


OijP = TypeVar("OijP", bound=OijParameters)


class OijPattern(IntervalJoinTopology[OijP]):
    """One pattern of interval join; where a tuple reaches one replica, collectors are naive."""

    paper = "PPOIJ: Shared-Nothing Parallel Patterns for Efficient Online Interval Joins"

    def claims_exact(self, parameters: OijP) -> bool:
        """Return whether collectors are as the pattern needs them."""
        return not isinstance(parameters, CollectedParameters) or parameters.collector == "ordered"

    def assemble(self, job: Job, parameters: OijP) -> ActorGraph:
        """Return Figure 7 for *job*."""
        p = parameters
        graph = ActorGraph()
        actor, arguments = self.emitter(p)
        emitters = add_emitters(graph, job, p, actor, arguments | p.batching)
        collector = p.collector if isinstance(p, CollectedParameters) else "naive"
        replicas = add_replicas(graph, job, p.replicas, channels=len(emitters), collector=collector)
        sink = graph.add("sink", "sink", Sink, only_emits=True)
        for emitter in emitters:
            graph.connect(emitter, "replicas", *replicas)
        for replica in replicas:
            graph.connect(replica, "sink", sink)
        self.add_feedback(graph, emitters, replicas, p)
        return graph

    @abstractmethod
    def emitter(self, parameters: OijP) -> tuple[type[Emitter], dict[str, Any]]:
        """Return the class of emitters, and their arguments beside those of `add_emitters`."""

    def add_feedback(
        self, graph: ActorGraph, emitters: list[str], replicas: list[str], parameters: OijP
    ) -> None:
        """Add the actors that control emitters, if any."""


def add_replicas(
    graph: ActorGraph, job: Job, replicas: int, *, channels: int, collector: Order
) -> list[str]:
    """Add the replicas of the join."""
    return [
        graph.add(
            "oij",
            f"oij.{replica}",
            Replica,
            query=job.query,
            schemas=tuple(file.schema for file in job.files),
            replica=replica,
            channels=channels,
            collector=collector,
            pairs=job.pairs,
        )
        for replica in range(replicas)
    ]


def add_emitters(
    graph: ActorGraph,
    job: Job,
    parameters: OijParameters,
    actor: type[Emitter],
    arguments: dict[str, Any],
) -> list[str]:
    """Add each source with its emitter, an *actor* with *arguments* beside those that all have.

    Return the emitters in the order of their channels.
    """
    query, p = job.query, parameters
    replicas = [p.probe_emitters, p.probe_emitters]
    replicas[query.reach.base] = p.base_emitters
    emitters = []
    for channel, (stream, replica) in enumerate(_alternating(query.reach.base, replicas)):
        number = f"{query.streams[stream]}.{replica}"
        source = graph.add(
            "source",
            f"source.{number}",
            StreamSource,
            files=job.files,
            feeding=job.feeding,
            stream=stream,
            replica=replica,
            replicas=replicas[stream],
        )
        emitter = graph.add(
            "emitter",
            f"emitter.{number}",
            actor,
            site=source,  # as an engine chains the two into one thread
            query=query,
            schemas=tuple(file.schema for file in job.files),
            stream=stream,
            channel=channel,
            **arguments,
        )
        graph.connect(source, "out", emitter)
        emitters.append(emitter)
    return emitters


def _alternating(base: int, replicas: list[int]) -> list[tuple[int, int]]:
    """Return (stream, replica) of every channel, base and probe in turns while both have more."""
    return [
        (stream, replica)
        for replica in range(max(replicas))
        for stream in (base, 1 - base)
        if replica < replicas[stream]
    ]
