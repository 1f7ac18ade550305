"""Interval joins: PPOIJ's three patterns, and what it compares them with.

Each stream has its sources, each source an emitter beside it, and every emitter reaches every
replica (Figures 3 and 7); the patterns differ in how emitters distribute and collectors gather
(Table 1)::

    source -> emitter -+   +-> [collector] replica -+
    source -> emitter -+ x +-> [collector] replica -+-> sink
    source -> emitter -+   +-> [collector] replica -+
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from annotated_types import Interval
from pydantic.dataclasses import dataclass

from actors.interval_join.calibration import CalibratingEmitter, Master
from actors.interval_join.distribution import (
    ByKey,
    BySplitKey,
    Distribution,
    Homes,
    KeyHash,
    ToAll,
)
from actors.interval_join.emitter import Emitter, Sequencer
from actors.interval_join.replica import Order, Replica
from actors.interval_join.shared_memory import SharedMemory, SharedMemoryEmitter, Thread
from actors.protocol import FEEDBACK
from actors.stream_source import StreamSource
from joins.interval_join import with_key
from topologies.actor_graph import ActorGraph
from topologies.topology import STRICT, Job, P, Pes, Topology, unused_notes
from topologies.window_join import Fanout, SplitJoinTopology, add_gate, connect_by_trees

Turns = Annotated[int, Interval(ge=0, le=1000)]
Round = Pes
"""Messages between two looks at the load: in a rehearsal few, as PEs are, or it would end before
the first look."""
BatchRows = Annotated[int, Interval(ge=1, le=1_000_000)]
Threshold = Annotated[float, Interval(ge=1, le=1000)]

_WHOLE_TURN = 1_000_000
"""More tuples than a message of a source has: emitters pass on together what came together."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class OijParameters:
    """What a person may set of every pattern.

    Attributes
    ----------
    replicas
        Replicas of the join.
    base_emitters
        Sources of the base stream, each with an emitter.
    probe_emitters
        Sources of the probe stream, each with an emitter.
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

    @property
    def distribution(self) -> Distribution:
        """How tuples are distributed: point to point."""
        return ByKey(self.homes)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class BatchingParameters(OijParameters):
    """What a person may set of a pattern that sends tuples in batches.

    Attributes
    ----------
    batch_rows
        Tuples that an emitter sends in one message at the most; the paper's experiments take 32.
        None: all that one message of its source has for a group, as tuples have gathered there.
    linger_turns
        For how many of its source's messages an emitter lets a tuple wait for its batch to fill.
    """

    batch_rows: BatchRows | None = None
    linger_turns: Turns = 0

    @property
    def batching(self) -> dict[str, int]:
        """How emitters gather tuples in batches."""
        rows = _WHOLE_TURN if self.batch_rows is None else self.batch_rows
        return {"batch_rows": rows, "linger_turns": self.linger_turns}


@dataclass(frozen=True, kw_only=True, config=STRICT)
class CollectedParameters(BatchingParameters):
    """What a person may set of a pattern in which a tuple may reach several replicas.

    Attributes
    ----------
    collector
        ``ordered``, or ``naive`` to see the duplicate and missing pairs of Examples 4.1 to 4.3.
    """

    collector: Order = "ordered"

    @property
    def distribution(self) -> Distribution:
        """How tuples are distributed: each to all replicas."""
        return ToAll(self.replicas)


class IntervalJoinTopology(Topology[P]):
    """A system that joins within an interval."""

    exact = True
    within_interval = True
    example_query = (
        "SELECT * FROM A, B WHERE A.key = B.key "
        "AND B.ts BETWEEN A.ts - INTERVAL '100 ms' AND A.ts + INTERVAL '100 ms'"
    )


OijP = TypeVar("OijP", bound=KeyedParameters | CollectedParameters)


class PatternTopology(IntervalJoinTopology[OijP]):
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
        emitters = add_emitters(graph, job, p, actor, **arguments)
        collector = p.collector if isinstance(p, CollectedParameters) else "naive"
        replicas = add_replicas(graph, job, p.replicas, channels=len(emitters), collector=collector)
        for emitter in emitters:
            graph.connect(emitter, "replicas", *replicas)
        graph.add_sink(*replicas)
        if job.live:
            graph.set_loads(source_loads(job, graph))
            distribution = arguments.get("distribution")
            if isinstance(distribution, ByKey):
                graph.set_loads(loads_by_key(job, distribution, replicas))
        return graph

    def emitter(self, parameters: OijP) -> tuple[type[Emitter], dict[str, Any]]:
        """Return the class of emitters, and their arguments beside those of `add_emitters`."""
        return Emitter, {"distribution": parameters.distribution}


def add_replicas(
    graph: ActorGraph, job: Job, replicas: int, *, channels: int, collector: Order
) -> list[str]:
    """Add the replicas of the join."""
    order = {"channels": channels, "collector": collector, "pairs": job.pairs}
    return graph.add_each("oij", replicas, Replica, "replica", **job.join, **order)


def add_emitters(
    graph: ActorGraph, job: Job, parameters: OijParameters, actor: type[Emitter], **arguments: Any
) -> list[str]:
    """Add each source with its emitter, an *actor* with *arguments* beside those that all have.

    Return the emitters in the order of their channels: base and probe in turns while both have
    more.
    """
    p, names, base = parameters, job.query.streams, job.query.bound_interval.base
    replicas = [p.probe_emitters, p.probe_emitters]
    replicas[base] = p.base_emitters
    arguments |= p.batching
    emitters: list[str] = []
    for replica in range(max(replicas)):
        for stream in (base, 1 - base):
            if replica >= replicas[stream]:
                continue
            number = f"{names[stream]}.{replica}"
            source = graph.add(
                "source",
                f"source.{number}",
                StreamSource,
                **job.input,
                stream=stream,
                replica=replica,
                replicas=replicas[stream],
            )
            emitter = graph.add(
                "emitter",
                f"emitter.{number}",
                actor,
                site=source,  # as an engine chains the two into one thread
                **job.join,
                stream=stream,
                channel=len(emitters),
                **arguments,
            )
            graph.connect(source, "out", emitter)
            emitters.append(emitter)
    return emitters


def source_loads(job: Job, graph: ActorGraph) -> dict[str, float]:
    """Return how many tuples each source has, of what sources have on average."""
    specs = graph.specs
    streams = {source: specs[source].arguments["stream"] for source in sorted(graph.sources)}
    sources = Counter(streams.values())
    tuples = [file.tuples for file in job.files]
    return _over_mean({name: tuples[at] / sources[at] for name, at in streams.items()})


def loads_by_key(job: Job, distribution: ByKey, replicas: Sequence[str]) -> dict[str, float]:
    """Return how many tuples have a key of each replica, of what replicas have on average.

    It is estimated from the first tuples of each stream.
    """
    tuples = np.zeros(len(replicas))
    for stream, file in enumerate(job.files):
        of_stream = file.tuples
        if not of_stream:
            continue
        first = next(file.batches())
        homes = distribution.groups(with_key(job.query, job.schemas, stream, first))
        share = np.bincount(homes, minlength=len(replicas)) / len(first)
        tuples += of_stream * share
    return _over_mean(dict(zip(replicas, tuples.tolist(), strict=True)))


def _over_mean(tuples: Mapping[str, float]) -> dict[str, float]:
    """Return each figure over their mean; 1 where there are no tuples."""
    usual = sum(tuples.values()) / len(tuples)
    return {name: one / usual if usual else 1.0 for name, one in tuples.items()}


@dataclass(frozen=True, kw_only=True, config=STRICT)
class KpOijParameters(BatchingParameters, KeyedParameters):
    """What a person may set of KP-OIJ."""


class KpOijTopology(PatternTopology[KpOijParameters]):
    """KP-OIJ (PPOIJ, sections 3.1 and 4.1): each key has one replica.

    Tuples are distributed point to point by key, and collectors take whatever comes. It is the
    cheapest pattern where there are enough keys of about equal frequency; a frequent key is one
    replica's load.
    """

    name = "kp_oij"
    title = "KP-OIJ: interval join, each key at one replica"
    parameters_type = KpOijParameters


class FlinkOijTopology(PatternTopology[KeyedParameters]):
    """Flink's keyed interval join, as PPOIJ compares with it: KP-OIJ with every tuple a message.

    What is Flink's here is the pattern: a key has one parallel instance, and every tuple is a
    record of its own on the wire. The kernels and what they cost are those of the other patterns,
    so no virtual machine or serialisation makes it slower than KP-OIJ without batches.
    """

    name = "flink_oij"
    title = "Flink's keyed interval join: each key at one replica, tuples handed over one by one"
    parameters_type = KeyedParameters


class DpOijTopology(PatternTopology[CollectedParameters]):
    """DP-OIJ (PPOIJ, sections 3.2 and 4.2): every replica probes with every tuple.

    The state of each key is spread over all replicas, so they are equally loaded however keys are
    distributed; the price is that every tuple travels to each of them. Collectors take the channels
    in turns.
    """

    name = "dp_oij"
    title = "DP-OIJ: interval join, every tuple to all replicas and stored at one"
    parameters_type = CollectedParameters


@dataclass(frozen=True, kw_only=True, config=STRICT)
class HpOijParameters(CollectedParameters, KeyedParameters):
    """What a person may set of HP-OIJ.

    Attributes
    ----------
    splitting
        Over how many replicas every key is split; None measures how frequent each key is and
        splits them accordingly.
    heuristic
        How they are split then: the paper's Algorithm 1, or our own, which splits fewer keys.
    calibration_turns
        For how many of its source's messages an emitter measures.
    recalibration_turns
        For how many it measures again and again after that, to split keys anew when their
        distribution has drifted; None measures once, as the paper does.
    threshold
        θ: how far above the average the most loaded replica may be.
    max_splitting
        Most replicas of a key; None allows all.
    """

    splitting: Pes | None = None
    heuristic: Literal["algorithm_1", "busiest_first"] = "algorithm_1"
    calibration_turns: Round = 4
    recalibration_turns: Round | None = None
    threshold: Threshold = 1.1
    max_splitting: Pes | None = None


_MEASURED = (
    "heuristic", "calibration_turns", "recalibration_turns", "threshold", "max_splitting",
)  # fmt: skip
"""Parameters of HP-OIJ that have an effect while *splitting* is None."""


class HpOijTopology(PatternTopology[HpOijParameters]):
    """HP-OIJ (PPOIJ, sections 3.3 and 4.3): a key is split over some of the replicas.

    It is between KP-OIJ, which cannot share a frequent key's load, and DP-OIJ, which sends every
    tuple to all replicas: a partial multicast, with batches of one key and watermarks of keys.
    """

    name = "hp_oij"
    title = "HP-OIJ: interval join, each key split over as many replicas as it needs"
    parameters_type = HpOijParameters

    def notes(self, job: Job, parameters: HpOijParameters) -> tuple[str, ...]:
        """Return notes on a splitting that is set: what it leaves unused, and where it is cut."""
        p = parameters
        if p.splitting is None:
            return ()
        notes = unused_notes(p, dict.fromkeys(_MEASURED, "a splitting that is set"))
        if p.splitting > p.replicas:
            notes += (f"splitting = {p.splitting}: cut to the number of replicas, {p.replicas}",)
        return notes

    def emitter(self, parameters: HpOijParameters) -> tuple[type[Emitter], dict[str, Any]]:
        """Return emitters that multicast, calibrated unless the splitting degree is set."""
        p = parameters
        if p.splitting is not None:
            return Emitter, {"distribution": BySplitKey(p.homes, p.splitting)}
        return CalibratingEmitter, {
            "calibration_turns": p.calibration_turns,
            "recalibration_turns": p.recalibration_turns,
            "homes": p.homes,
        }

    def assemble(self, job: Job, parameters: HpOijParameters) -> ActorGraph:
        """Return Figure 7 for *job*, with the master where emitters are calibrated."""
        p, graph = parameters, super().assemble(job, parameters)
        if p.splitting is not None:
            return graph
        emitters, replicas = graph.operators["emitter"], graph.operators["oij"]
        master = graph.add(
            "master",
            "master",
            Master,
            site=replicas[0],
            channels=len(emitters),
            homes=p.homes,
            heuristic=p.heuristic,
            threshold=p.threshold,
            max_splitting=p.max_splitting or p.replicas,
        )
        for emitter in emitters:
            graph.connect(emitter, "master", master)
        graph.connect(master, FEEDBACK, *emitters)
        return graph


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
    schedule_messages: Round | None = 8
    threshold: Threshold = 1.1

    @property
    def batching(self) -> dict[str, int]:
        """How emitters gather tuples in batches: what came together goes on together."""
        return {"batch_rows": _WHOLE_TURN, "linger_turns": 0}


class ScaleOijTopology(IntervalJoinTopology[ScaleOijParameters]):
    """Scale-OIJ: one multicore machine, whose threads share the state buffers.

    Sources and the sink reach the machine as in the other patterns; within it a tuple goes through
    memory into the queue of one thread::

        source -> emitter -+             +-> oij (thread) -+
        source -> emitter -+-> memory ---+-> oij (thread) -+-> sink
                                         +-> oij (thread) -+

    Where HP-OIJ multicasts the tuples of a split key, here a tuple goes to one thread, and that
    thread looks into the buffers of others; so splitting costs no messages, but the other threads'
    caches.
    """

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
        to_memory = ByKey(Homes(1))
        emitters = add_emitters(graph, job, p, SharedMemoryEmitter, distribution=to_memory)
        memory = graph.add(
            "memory",
            "memory",
            SharedMemory,
            **job.join,
            channels=len(emitters),
            threads=p.replicas,
            contention=p.contention,
            schedule_messages=p.schedule_messages,
            threshold=p.threshold,
            pairs=job.pairs,
        )
        for emitter in emitters:
            graph.connect(emitter, "replicas", memory)
        threads = graph.add_each("oij", p.replicas, Thread)
        graph.connect(memory, "threads", *threads)
        graph.add_sink(memory, *threads)
        return graph


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SplitOijParameters:
    """What a person may set.

    Attributes
    ----------
    replicas
        Replicas of the join.
    fanout
        Most branches of a node in the two trees.
    batch_rows
        Tuples of one message at the most; None: all that become due at a time.
    """

    replicas: Pes = 4
    fanout: Fanout = 2
    batch_rows: BatchRows | None = None


class SplitOijTopology(IntervalJoinTopology[SplitOijParameters]):
    """SplitJoin as an interval join: one ordered input, and trees to the replicas and back.

    PPOIJ (section 6) names what sets it apart from DP-OIJ, which also sends every tuple to all
    replicas and stores it at one: both streams come in as one physical stream, strictly in order,
    and nodes of their own distribute the tuples and collect the results::

        source -+-> sequencer -> (distributors) -+-> oij -+-> (collectors) -> sink
        source -+                                +-> oij -+

    The original's input is in order to begin with. Here the sequencer puts it in order, by delaying
    tuples until the watermark has passed them; it reports late ones to the sink itself. The
    original stores tuples in turns; here, as in DP-OIJ, a hash of a tuple's position chooses the
    replica.
    """

    name = "split_oij"
    title = "SplitJoin as an interval join: one ordered input, every tuple to all down a tree"
    paper = SplitJoinTopology.paper
    parameters_type = SplitOijParameters

    def assemble(self, job: Job, parameters: SplitOijParameters) -> ActorGraph:
        """Return sources, sequencer, trees and replicas for *job*."""
        p = parameters
        graph = ActorGraph()
        sending = {"replicas": p.replicas, "batch_rows": p.batch_rows or _WHOLE_TURN}
        sequencer = add_gate(graph, job, "sequencer", Sequencer, **job.join, **sending)
        replicas = add_replicas(graph, job, p.replicas, channels=1, collector="naive")
        graph.connect(sequencer, "replicas", *connect_by_trees(graph, replicas, p.fanout))
        graph.connect(sequencer, "sink", "sink")
        return graph
