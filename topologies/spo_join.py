"""SPO-Join (Aslam, Beedkar and Simonini), Figure 3.

Every tuple goes from the router to the mutable component (one operator per predicate, then the
logical operator) and to all PO-Join PEs. At a merge the predicate PEs send offset arrays straight
to one PO-Join PE, in turns, and sorted fields to it by way of the permutation PEs::

    source -> router -+-> predicate PEs -+-> logical PEs -----------------------------+-> sink
                      |                  +-> permutation PEs -+-----> PO-Join PEs ----+
                      |                  +--------------------+            |
                      +----------------------------------------------------+
"""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import Interval
from pydantic.dataclasses import dataclass

from actors.protocol import ActorSpec
from actors.results import Sink
from actors.source import Source
from actors.spo_join.logical import LogicalPE
from actors.spo_join.permutation import PermutationPE
from actors.spo_join.po_join import PoJoinPE
from actors.spo_join.predicate import PredicatePE
from actors.spo_join.router import Router
from joins.epochs import MergeThreshold
from joins.query import JoinQuery
from topologies.topology import STRICT, ActorGraph, Job, Topology, TopologyError

Pes = Annotated[int, Interval(ge=1, le=1000)]


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
        PEs that hold the immutable component.
    merge_threshold
        δ: ``slide`` is W_s, ``slide/pes`` is W_s over the number of PO-Join PEs.
    nodes
        Machines that the PEs share in turns; None gives each a machine of its own.
    """

    predicate_pes: Pes = 1
    logical_pes: Pes = 2
    permutation_pes: Pes | None = None
    po_join_pes: Pes = 4
    merge_threshold: Literal["slide", "slide/pes"] = "slide"
    nodes: Pes | None = None


class SpoJoin(Topology):
    """Mutable B+-trees and immutable permutation and offset arrays, on a graph of PEs."""

    name = "spo_join"
    title = "SPO-Join: mutable B+-trees, immutable permutation and offset arrays"
    paper = "SPO-Join: Efficient Stream Inequality Join, Figure 3"
    exact = True
    parameters_type = SpoJoinParameters
    example_query = (
        "SELECT R.POW_ID, S.POW_ID FROM R, S "
        "WHERE R.POWER < S.POWER AND R.COOL > S.COOL "
        "WINDOW AS (SLIDE INTERVAL '10' ON '60')"
    )

    def build(self, job: Job, parameters: SpoJoinParameters) -> ActorGraph:  # type: ignore[override]
        """Return Figure 3 for *job*.

        Raise :exc:`TopologyError` for a query of more than two streams, or whose two windows are
        of different kinds.
        """
        query, p = job.query, parameters
        if len(query.streams) > 2:
            raise TopologyError(
                f"spo_join joins one stream with itself or two streams; the query has "
                f"{len(query.streams)}: {', '.join(query.streams)}"
            )
        schemas = tuple(file.schema for file in job.files)
        graph = ActorGraph()

        def add(role: str, index: str, actor: type, **arguments: object) -> str:
            name = f"{role}.{index}" if index else role
            site = f"node.{len(graph) % p.nodes}" if p.nodes else None
            spec = ActorSpec(actor=actor, arguments=arguments)
            return graph.add_actor(name, role=role, spec=spec, site=site)

        source = add("source", "", Source, files=job.files, feeding=job.feeding)
        router = add(
            "router", "", Router, query=query, schemas=schemas, threshold=_threshold(query, p)
        )
        predicates = range(len(query.predicates))
        predicate_pes = [
            [
                add(
                    "predicate",
                    f"{predicate}.{replica}",
                    PredicatePE,
                    query=query,
                    schemas=schemas,
                    predicate=predicate,
                    replica=replica,
                    replicas=p.predicate_pes,
                )
                for replica in range(p.predicate_pes)
            ]
            for predicate in predicates
        ]
        logical_pes = [
            add("logical", f"{i}", LogicalPE, predicates=len(predicates), pairs=job.pairs)
            for i in range(p.logical_pes)
        ]
        permutation_pes = [
            add("permutation", f"{i}", PermutationPE, predicates=len(predicates))
            for i in range(p.permutation_pes or len(query.streams))
        ]
        po_join_pes = [
            add("po_join", f"{i}", PoJoinPE, query=query, schemas=schemas, pairs=job.pairs)
            for i in range(p.po_join_pes)
        ]
        sink = graph.add_actor("sink", role="sink", spec=ActorSpec(actor=Sink, only_emits=True))

        graph.connect(source, "out", router)
        graph.connect(router, "po_join", *po_join_pes)
        for predicate, replicas in enumerate(predicate_pes):
            graph.connect(router, f"predicate{predicate}", *replicas)
            for replica in replicas:
                graph.connect(replica, "logical", *logical_pes)
                graph.connect(replica, "permutation", *permutation_pes)
                graph.connect(replica, "po_join", *po_join_pes)
        for pe in permutation_pes:
            graph.connect(pe, "po_join", *po_join_pes)
        for pe in [*logical_pes, *po_join_pes]:
            graph.connect(pe, "sink", sink)
        return graph


def _threshold(query: JoinQuery, p: SpoJoinParameters) -> MergeThreshold:
    kinds = {window.kind for window in query.windows}
    if len(kinds) > 1:
        raise TopologyError("spo_join needs windows of one kind: all by count or all by time")
    return MergeThreshold(
        kind=kinds.pop(),
        length=min(window.slide for window in query.windows),
        parts=p.po_join_pes if p.merge_threshold == "slide/pes" else 1,
    )
