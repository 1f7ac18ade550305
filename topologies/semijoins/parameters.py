"""What a person may set of the semijoin system, and the plan that it says."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Any, Literal

from annotated_types import Interval
from pydantic.dataclasses import dataclass

from actors.source import NS_PER_S
from joins.queries.query import JoinQuery
from joins.semijoins.kept_values import KeptValues
from joins.semijoins.one_way_join import PAPER_ALGORITHMS, OneWayJoin
from topologies.quantities import Duration
from topologies.semijoins.choosing import SEARCHES
from topologies.semijoins.plan import join_graph, uniform_plan
from topologies.semijoins.reading import JoinPlan, read_plan
from topologies.topology import STRICT

Intervals = Annotated[int, Interval(ge=1, le=1_000_000)]
BytesPerSecond = Annotated[int, Interval(ge=1, le=10**12)]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SemijoinParameters:
    """What a person may set of the semijoin system.

    Attributes
    ----------
    algorithm
        Of every one-way join, in sequences breadth first along the join graph.
    plan
        Sequences with an algorithm for each step, such as "A: B SP-D, C SM-S1; B: ...", in place of
        *algorithm*; or a tree of two-way joins, such as "(A, B SP-S/SP-D, C SM-S1/SP-D)"; or
        ``greedy``, ``exhaustive``, ``auto``, ``greedy-tree`` or ``exhaustive-tree``: searched for
        by estimated costs.
    bloom
        Whether a search may choose semijoins by Bloom filters, too.
    execution
        *delayed* is the paper's model, exact as long as messages take less than *delta*.
    tau
        τ, the execution interval.
    delta
        δ, the longest accumulated delay that the paper's model allows for.
    replan_every
        Execution intervals, those in which any stream has a tuple, after which the plan is looked
        at anew and changed where rates or selectivities have drifted; needs *punctuated*. With a
        *byte_budget* never to one that ships more over its busiest link.
    tuple_bytes
        Stream to the size of its full tuples, where they carry more than is joined on.
    byte_budget
        Most bytes a second that any link may carry, both ways together, on average over the run: of
        the streams so much is shed that estimates are within it.
    kept
        What is kept of the streams, by values of their join attribute, such as ``{ share = 0.1 }``.
        Left to *byte_budget*, and without that all.
    """

    algorithm: Literal[tuple(OneWayJoin)] = OneWayJoin.SP_D  # type: ignore[valid-type]
    plan: str | None = None
    bloom: bool = False
    execution: Literal["delayed", "punctuated"] = "punctuated"
    tau: Duration = 100_000_000
    delta: Duration = 80_000_000
    replan_every: Intervals | None = None
    tuple_bytes: dict[str, int] = field(default_factory=dict)
    byte_budget: BytesPerSecond | None = None
    kept: KeptValues | None = None

    @property
    def algorithms(self) -> tuple[OneWayJoin, ...]:
        """What a search chooses from."""
        return tuple(OneWayJoin) if self.bloom else PAPER_ALGORITHMS

    @property
    def approximates(self) -> bool:
        """Whether anything may be shed."""
        if self.kept is None:
            return self.byte_budget is not None
        return self.kept.share < 1 or bool(self.kept.never)

    @property
    def timing(self) -> dict[str, Any]:
        """What statistics hold of it."""
        return {
            "interval_s": self.tau / NS_PER_S,
            "delay_s": self.delta / NS_PER_S,
            "punctuated": self.execution == "punctuated",
        }


def plan_of(query: JoinQuery, parameters: SemijoinParameters) -> JoinPlan:
    """Return the plan that *parameters* say, or name the algorithm of.

    Raise :exc:`TopologyError` for one that does not fit the query.
    """
    joins = join_graph(query)
    if parameters.plan is None or parameters.plan in SEARCHES:  # not yet searched for
        return uniform_plan(query.streams, joins, OneWayJoin(parameters.algorithm))
    plan = read_plan(parameters.plan, query.streams)
    plan.check(joins)
    return plan
