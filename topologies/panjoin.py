"""PanJoin (Pan and Jacobsen), Figures 1 and 2.

A manager cuts each stream into a chain of subwindows, assigns these to workers in turns, and sends
every worker its commands about each batch of tuples; workers do not talk to each other. Results go
straight on, or back to the manager, from a BI-Sort as records::

    source -> (spreader -> prefilters) -> manager -+-> worker.0 -+-> sink
                                            ^  |   +-> ...      -+
                                            |  |          |
                                            |  +----------|-------> sink
                                            +-- feedback -+

Where two streams arrive out of order, over windows of time, the manager has an edge to the sink
too, for tuples that are late.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from annotated_types import Interval
from pydantic.dataclasses import dataclass

from actors.panjoin.chain import ChainRule
from actors.panjoin.manager import Manager, OutOfOrderManager, Prefilter, Spreader
from actors.panjoin.worker import IndexedQuery, OutOfOrderWorker, Worker
from actors.protocol import FEEDBACK
from actors.source import Source
from joins.indexes.panjoin.accelerator import Accelerator
from joins.indexes.panjoin.lookup import StructureName
from joins.indexes.panjoin.subwindow import CAPACITY_MOST, SubwindowShape
from joins.queries.windows import Window
from topologies.actor_graph import ActorGraph
from topologies.quantities import Duration
from topologies.topology import STRICT, Job, Pes, Topology, TopologyError, unused_notes

_SUBWINDOWS_PER_WINDOW = 16
"""As in the paper's experiments: one on each of 16 workers."""
_TIMED_SUBWINDOW = 65_536
"""Most tuples of a subwindow in a window of time, whose number of tuples is not fixed."""
_LARGEST = 1 << 24
"""Most tuples of a subwindow that is not set: it takes its memory when it begins, and a window may
be longer than any stream."""
_TUPLES_PER_PARTITION = 128
"""As in most of the paper's experiments: N_Sub = 8M and P = 64K."""
_BATCH = 1_024
_MILLISECOND = 1_000_000
_WITHOUT = {
    "bi_sort": {"sigma": "a BI-Sort"},
    "rap_table": {"buffer": "a RaP-Table"},
    "wib_tree": {"buffer": "a WiB+-Tree"},
}
"""Structure to the parameter that it does not have, in `unused_notes`'s words."""

UpToCapacity = Annotated[int, Interval(ge=1, le=CAPACITY_MOST)]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class PanJoinParameters:
    """What a person may set of PanJoin.

    Attributes
    ----------
    workers
        Worker nodes.
    structure
        Of the subwindows; ``auto`` chooses for each by batch size, selectivity and drift of values.
    subwindow
        N_Sub, the most tuples of one; None takes a slide, or a sixteenth of the window if that is
        longer, up to 2^24.
    partitions
        P, partitions of a subwindow; None makes them 128 tuples wide.
    sigma
        σ, room of an LLAT entry over an even share, above 1.
    buffer
        Tuples that a BI-Sort's insertion buffer has room for; None takes a share of a subwindow.
    batch_count
        A batch goes out when this many tuples of one stream wait; None takes 1,024, or the
        subwindow if that is less.
    collecting_time
        A batch goes out, too, when its first tuple has waited this long.
    results
        Where workers send them: straight on, or back to the manager.
    prefilters
        Nodes ahead of the manager that retrieve the join fields.
    threads
        Threads in each worker.
    device
        What stores a worker's subwindows: its core, or an accelerator, which stores BI-Sorts only
        and answers with records to the manager.
    """

    workers: Pes = 4
    structure: Literal[StructureName, "auto"] = "bi_sort"
    subwindow: UpToCapacity | None = None
    partitions: UpToCapacity | None = None
    sigma: Annotated[float, Interval(ge=1, le=100)] = 1.25
    buffer: UpToCapacity | None = None
    batch_count: UpToCapacity | None = None
    collecting_time: Duration = _MILLISECOND
    results: Literal["sink", "manager"] = "sink"
    prefilters: Annotated[int, Interval(ge=0, le=1000)] = 0
    threads: Annotated[int, Interval(ge=1, le=64)] = 1
    device: Literal["core", "accelerator"] = "core"


class PanJoinTopology(Topology[PanJoinParameters]):
    """Subwindows of sorted or partitioned tuples, chained over workers under one manager."""

    name = "panjoin"
    title = "PanJoin: subwindows as BI-Sort, RaP-Table or WiB+-Tree, commanded by a manager"
    paper = "PanJoin: A Partition-based Adaptive Stream Join (Pan and Jacobsen), Figures 1 and 2"
    exact = True
    parameters_type = PanJoinParameters
    out_of_order = True
    example_query = (
        "SELECT R.id, S.id FROM R, S WHERE ABS(R.value - S.value) <= 5 "
        "WINDOW AS (SLIDE INTERVAL '1000' ON '16000')"
    )

    def notes(self, job: Job, parameters: PanJoinParameters) -> tuple[str, ...]:
        """Return notes on sizes that the chosen structure does not have."""
        return unused_notes(parameters, _WITHOUT.get(parameters.structure, {}))

    def in_miniature(self, parameters: PanJoinParameters) -> PanJoinParameters:
        """Return *parameters* with the sizes that follow from the window."""
        small = super().in_miniature(parameters)
        return replace(small, subwindow=None, partitions=None, buffer=None, batch_count=None)

    def assemble(self, job: Job, parameters: PanJoinParameters) -> ActorGraph:
        """Return Figure 1; refuse subwindows, partitions, batches and σ that do not fit."""
        p = parameters
        shapes, rules = _cut(job, p)
        watermarks = _watermarks(job, p)
        common = {**job.join, "shapes": shapes, "results": p.results, "pairs": job.pairs}
        graph = ActorGraph()
        ahead = graph.add("source", "source", Source, **job.input)
        entrances = [ahead]
        if p.prefilters:
            spreader = graph.add("spreader", "spreader", Spreader, site=ahead)
            entrances = graph.add_each("prefilter", p.prefilters, Prefilter, query=job.query)
            graph.connect(ahead, "out", spreader)
            graph.connect(spreader, "prefilter", *entrances)
        manager = graph.add(
            "manager",
            "manager",
            OutOfOrderManager if watermarks else Manager,
            **common,
            rules=rules,
            batch_count=_batch_count(p, shapes[0].capacity),
            collecting_ns=p.collecting_time,
            **watermarks,
        )
        workers = graph.add_each(
            "worker",
            p.workers,
            OutOfOrderWorker if watermarks else Worker,
            "index",
            **common,
            threads=p.threads,
            accelerator=_accelerator(p),
        )
        for entrance in entrances:
            graph.connect(entrance, "manager" if p.prefilters else "out", manager)
        graph.connect(manager, "worker", *workers)
        for worker in workers:
            graph.connect(worker, FEEDBACK, manager)
        graph.add_sink(
            *(workers if p.results == "sink" else ()),
            *([manager] if watermarks or p.results == "manager" else ()),
        )
        return graph


def _cut(
    job: Job, p: PanJoinParameters
) -> tuple[tuple[SubwindowShape, ...], tuple[ChainRule, ...]]:
    """Return per stream the shape of its subwindows, and how it is cut into them."""
    if p.sigma <= 1:
        raise TopologyError(f"sigma = {p.sigma}: must be above 1, or 2P entries are too few")
    storing = IndexedQuery(job.query, job.schemas).storing
    shapes, rules = [], []
    for stream, window in enumerate(job.query.windows):
        capacity, stretch_ns = _extent(window, p.subwindow)
        partitions = p.partitions or -(-capacity // _TUPLES_PER_PARTITION)
        if partitions > capacity:
            raise TopologyError(
                f"partitions = {partitions}: a subwindow of {capacity} tuples has at most "
                f"{capacity} partitions"
            )
        if p.buffer is not None and p.buffer > capacity:
            raise TopologyError(
                f"buffer = {p.buffer}: an insertion buffer is a part of its subwindow, which has "
                f"at most {capacity} tuples"
            )
        shapes.append(
            SubwindowShape(
                predicates=len(storing[stream]),
                dtype=storing[stream][0].dtype,
                capacity=capacity,
                partitions=partitions,
                sigma=p.sigma,
                buffer=p.buffer,
            )
        )
        rules.append(
            ChainRule(
                capacity=capacity,
                stretch_ns=stretch_ns,
                structure=None if p.structure == "auto" else p.structure,
                workers=p.workers,
                # Else the newest subwindows of both streams would be on one worker.
                first_worker=stream * p.workers // 2,
            )
        )
    return tuple(shapes), tuple(rules)


def _accelerator(p: PanJoinParameters) -> Accelerator | None:
    """Return the board of each worker."""
    if p.device == "core":
        return None
    if p.structure != "bi_sort" or p.results != "manager":
        raise TopologyError(
            "device = 'accelerator': it stores BI-Sorts and answers with records, so "
            f"structure must be 'bi_sort' (not {p.structure!r}) and results 'manager' (not "
            f"{p.results!r})"
        )
    return Accelerator()


def _watermarks(job: Job, p: PanJoinParameters) -> dict[str, Any]:
    """Return a manager's arguments about watermarks; none where streams arrive in order."""
    if job.feeding.disorder is None:
        return {}
    if job.query.is_self_join:
        raise TopologyError(
            "feeding.disorder: panjoin joins two streams out of order, not one with itself: there "
            "the newer tuple of a pair is one side of the predicate, and subwindows are indexed "
            "for that side to probe, not for the other"
        )
    if p.results == "manager":
        raise TopologyError(
            "feeding.disorder with results = 'manager': a record names tuples by their values, and "
            "out of order each pair is tested for its event times; set results = 'sink'"
        )
    return {"lag_ns": job.feeding.lag_ns if job.feeding.watermarks else None}


def _extent(window: Window, subwindow: int | None) -> tuple[int, int | None]:
    """Return the most tuples and the most event time of a subwindow."""
    if subwindow is not None:
        return subwindow, None
    part = max(window.slide, -(-window.length // _SUBWINDOWS_PER_WINDOW))
    if window.kind == "time":
        return _TIMED_SUBWINDOW, part
    return min(part, _LARGEST), None


def _batch_count(p: PanJoinParameters, capacity: int) -> int:
    if p.batch_count is None:
        return min(_BATCH, capacity)
    if p.batch_count > capacity:
        raise TopologyError(
            f"batch_count = {p.batch_count}: a batch fits into a subwindow, which has at most "
            f"{capacity} tuples"
        )
    return p.batch_count
