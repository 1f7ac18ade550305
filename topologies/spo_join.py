"""SPO-Join (Aslam, Beedkar and Simonini), Figure 3, with all variants of its operators.

Every tuple goes from the router to the mutable component (one operator per predicate, then the
logical operator) and to all PO-Join PEs. At a merge the predicate PEs send offset arrays straight
to one PO-Join PE, in turns, and sorted fields to it by way of the permutation PEs::

    source -> router -+-> predicate PEs -+-> logical PEs -----------------------------+-> sink
                      |                  +-> permutation PEs -+-----> PO-Join PEs ----+
                      |                  +--------------------+            |
                      +----------------------------------------------------+

With ``window_state = "cache"`` a cache joins them, which the PO-Join PEs write to and read from.

Exact are the variants in which partial results are combined by tuple and every probe has its
window. The paper shows what happens without (Figures 18 and 19); so do these variants, which claim
no exactness.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Literal

from annotated_types import Interval
from pydantic.dataclasses import dataclass

from actors.protocol import FEEDBACK
from actors.source import Source
from actors.spo_join.logical_pe import LogicalPE
from actors.spo_join.permutation_pe import PermutationPE
from actors.spo_join.po_join_pe import PoJoinPE
from actors.spo_join.predicate_pe import PredicatePE
from actors.spo_join.router import Router
from actors.spo_join.window_state import (
    Cache,
    Cached,
    Carried,
    MergedCounts,
    OwnSlide,
    WindowState,
)
from joins.epochs import MergeThreshold
from joins.indexes.immutable.segment import ImmutableSegment
from joins.indexes.structures import SEGMENTS
from joins.queries.query import JoinQuery
from joins.queries.windows import Window, read_extent
from topologies.actor_graph import ActorGraph
from topologies.own_class import OrOwnClass, derived_from
from topologies.quantities import Duration, Extent
from topologies.topology import STRICT, Job, Pes, Topology, TopologyError

_INTERVAL_NS = 10_000_000
"""Between two messages of a PO-Join PE to the cache, if not set: 50 to 70 tuples at the rates of
Figure 19, whose differences are of that order."""

_MERGES, _LEAST_MERGED = 20, 64
"""Merges a window at the most, and tuples of one at the least, where slides are short."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SpoJoinParameters:
    """What a person may set of SPO-Join.

    Attributes
    ----------
    predicate_pes
        PEs that share the probes of each predicate.
    logical_pes
        PEs of the logical operator.
    permutation_pes
        PEs that compute permutation arrays; None takes one per stream, as in Figure 3.
    po_join_pes
        PEs of the immutable component.
    merge_threshold
        δ: ``slide`` is W_s, ``slide/pes`` is W_s over the number of PO-Join PEs; or a number of
        tuples or a time, as the windows are, up to the window's length. None is the slide, as in
        the paper; where windows are carried, it is several short ones: a window has 20 merges at
        the most, and a merge 64 tuples at the least if the window counts as many.
    mutable
        What predicates find in the mutable component and how it is intersected: ``bits`` are bit
        arrays, ``hash`` lists of ids that go through a hash table.
    immutable
        What epochs are sealed into, a structure of `joins.indexes.structures`, or a class
        that derives from `joins.indexes.immutable.segment.ImmutableSegment`.
    threads
        Threads over the segments of one PO-Join PE (Algorithm 4).
    logical_partitioning
        How partial results get to the logical PEs: by ``hash`` of the tuple's id, or
        ``round_robin``, with which they seldom meet.
    hash_table
        Whether logical PEs separate partial results by tuple (section 4.3); without, they combine
        whatever comes.
    window_state
        How PO-Join PEs learn what has expired (section 4.2): every tuple has ``carried`` its window
        from the router; a PE's ``own_slide`` expires when a new one is assigned to it; the
        partitioner sends counts ``round_robin``; or the first PE shares its count through a
        ``cache``. All but the first find expired tuples, and need windows by count.
    publish_interval
        With the cache: least time between two messages of the first PE to it; None is 10 ms.
    sync_interval
        With the cache: least time between two messages of another PE to it; None is 10 ms.
    nodes
        Machines that the PEs share in turns; None: each has a machine of its own.
    """

    predicate_pes: Pes = 1
    logical_pes: Pes = 2
    permutation_pes: Pes | None = None
    po_join_pes: Pes = 4
    merge_threshold: Annotated[str, Extent(words=("slide", "slide/pes"))] | None = None
    mutable: Literal["bits", "hash"] = "bits"
    immutable: Annotated[
        Literal[tuple(SEGMENTS)],  # type: ignore[valid-type]
        OrOwnClass(derived_from(ImmutableSegment)),
    ] = "po_join"
    threads: Annotated[int, Interval(ge=1, le=64)] = 1
    logical_partitioning: Literal["hash", "round_robin"] = "hash"
    hash_table: bool = True
    window_state: Literal["carried", "own_slide", "round_robin", "cache"] = "carried"
    publish_interval: Duration | None = None
    sync_interval: Duration | None = None
    nodes: Pes | None = None


class SpoJoinTopology(Topology[SpoJoinParameters]):
    """Mutable B+-trees and immutable permutation and offset arrays, on a graph of PEs."""

    name = "spo_join"
    title = "SPO-Join: mutable B+-trees, immutable permutation and offset arrays"
    paper = "SPO-Join: Efficient Stream Inequality Join, Figure 3"
    exact = True
    parameters_type = SpoJoinParameters

    def claims_exact(self, parameters: SpoJoinParameters) -> bool:
        """Return whether results are combined by tuple and windows are carried."""
        return (
            parameters.hash_table
            and parameters.logical_partitioning == "hash"
            and parameters.window_state == "carried"
        )

    def in_miniature(self, parameters: SpoJoinParameters) -> SpoJoinParameters:
        """Return the parameters with a threshold that some dozens of tuples reach."""
        small = super().in_miniature(parameters)
        fits = small.merge_threshold in ("slide", "slide/pes")
        return small if fits else replace(small, merge_threshold="slide")

    def assemble(self, job: Job, parameters: SpoJoinParameters) -> ActorGraph:
        """Return Figure 3; refuse parameters that contradict the query or each other."""
        query, p = job.query, parameters
        _refuse_contradictions(query, p)
        threshold = _threshold(query, p)
        predicates = len(query.predicates)
        announces = p.window_state == "round_robin" and p.po_join_pes > 1
        graph = ActorGraph(machines=p.nodes)

        source = graph.add("source", "source", Source, **job.input)
        router = graph.add("router", "router", Router, **job.join, threshold=threshold)
        predicate_pes = [
            _add_predicate_pes(graph, job, p, predicate) for predicate in range(predicates)
        ]
        logical_pes = graph.add_each(
            "logical",
            p.logical_pes,
            LogicalPE,
            predicates=predicates,
            replicas=p.predicate_pes,
            hash_table=p.hash_table,
            pairs=job.pairs,
        )
        permutation_pes = graph.add_each(
            "permutation",
            p.permutation_pes or len(query.streams),
            PermutationPE,
            predicates=predicates,
            announces=announces,
        )
        po_join_pes = [
            graph.add(
                "po_join",
                f"po_join.{pe}",
                PoJoinPE,
                **job.join,
                window=window,
                immutable=p.immutable,
                threads=p.threads,
                pairs=job.pairs,
            )
            for pe, window in enumerate(_window_states(query, p, threshold))
        ]

        graph.connect(source, "out", router)
        graph.connect(router, "po_join", *po_join_pes)
        for predicate, replicas in enumerate(predicate_pes):
            graph.connect(router, f"predicate{predicate}", *replicas)
            for pe in replicas:
                graph.connect(pe, "logical", *logical_pes)
                graph.connect(pe, "permutation", *permutation_pes)
                graph.connect(pe, "po_join", *po_join_pes)
        for pe in permutation_pes:
            graph.connect(pe, "po_join", *po_join_pes)
            if announces:
                graph.connect(pe, "window", *po_join_pes)
        if p.window_state == "cache":
            _add_cache(graph, po_join_pes)
        graph.add_sink(*logical_pes, *po_join_pes)
        return graph


def _add_predicate_pes(
    graph: ActorGraph, job: Job, p: SpoJoinParameters, predicate: int
) -> list[str]:
    """Add the PEs of one predicate, and return their names."""
    return [
        graph.add(
            "predicate",
            f"predicate.{predicate}.{replica}",
            PredicatePE,
            **job.join,
            predicate=predicate,
            replica=replica,
            replicas=p.predicate_pes,
            mutable=p.mutable,
            partitioning=p.logical_partitioning,
        )
        for replica in range(p.predicate_pes)
    ]


def _add_cache(graph: ActorGraph, po_join_pes: Sequence[str]) -> None:
    """Add the cache, which the PO-Join PEs report to and which answers them."""
    cache = graph.add("cache", "cache", Cache)
    graph.connect(cache, FEEDBACK, *po_join_pes)
    for pe in po_join_pes:
        graph.connect(pe, "cache", cache)


def _refuse_contradictions(query: JoinQuery, p: SpoJoinParameters) -> None:
    if p.window_state != "carried" and query.windows[0].kind == "time":
        raise TopologyError(
            f"window_state = {p.window_state!r} counts tuples, and the query's windows are of time:"
            " 'carried' is allowed, or windows by count"
        )
    for key in ("publish_interval", "sync_interval"):
        if getattr(p, key) is not None and p.window_state != "cache":
            raise TopologyError(
                f"{key} is how often PO-Join PEs speak to the cache: with window_state = "
                f"{p.window_state!r} there is none; leave it out, or set window_state = 'cache'"
            )


def _threshold(query: JoinQuery, p: SpoJoinParameters) -> MergeThreshold:
    window = query.windows[0]
    if p.merge_threshold is None and p.window_state == "carried":
        return MergeThreshold(kind=window.kind, length=_merged_slides(window) * window.slide)
    if p.merge_threshold in (None, "slide", "slide/pes"):
        parts = p.po_join_pes if p.merge_threshold == "slide/pes" else 1
        return MergeThreshold(kind=window.kind, length=window.slide, parts=parts)
    kind, length = read_extent(p.merge_threshold)
    if kind != window.kind or length > window.length:
        unit = "tuples" if window.kind == "count" else "ns"
        raise TopologyError(
            f"merge_threshold = {p.merge_threshold!r}: the query's windows are {window.length} "
            f"{unit} long; 'slide', 'slide/pes' and 1 to {window.length} {unit} are allowed"
        )
    return MergeThreshold(kind=kind, length=length)


def _merged_slides(window: Window) -> int:
    """Return how many slides are merged at once.

    A merge has a message for each array and PE, and until they have come every tuple waits for it:
    a merge of one tuple takes as long as one of hundreds.
    """
    slides = window.length // window.slide
    least = -(-_LEAST_MERGED // window.slide) if window.kind == "count" else 1
    return max(1, min(slides, least), -(-slides // _MERGES))


def _window_states(
    query: JoinQuery, p: SpoJoinParameters, threshold: MergeThreshold
) -> list[Callable[[], WindowState]]:
    """Return what makes the window state of each PO-Join PE."""
    windows, pes = query.windows, range(p.po_join_pes)
    if p.window_state == "carried":
        stored = [query.stored_stream(stream) for stream in range(len(windows))]
        return [partial(Carried, stored=stored) for _ in pes]
    if p.window_state == "own_slide":
        # Of the epochs in a window, one is still mutable; a PE gets one of every len(pes).
        epochs = -(-windows[0].length * threshold.parts // threshold.length)
        of_one = -(-(epochs - 1) // len(pes))
        return [partial(OwnSlide, pes=len(pes), epochs=of_one) for _ in pes]
    if p.window_state == "round_robin":
        return [partial(MergedCounts, windows=windows) for _ in pes]
    intervals = [p.publish_interval, *[p.sync_interval] * (len(pes) - 1)]
    return [
        partial(Cached, windows=windows, pe=pe, interval_ns=interval or _INTERVAL_NS)
        for pe, interval in enumerate(intervals)
    ]
