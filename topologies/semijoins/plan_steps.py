"""A plan as sites carry it out: its one-way joins, output streams and delays.

In the paper's model an output stream of a tree has an interval's tuples when everything that is in
it has had the time to come: δ after both operands of its join have theirs, and as much again where
a copy of a window must be complete before it is looked into. So much later than in a linear plan do
results come, and so much longer must windows be stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import networkx as nx

from actors.semijoins.one_way import OneWayStep
from actors.semijoins.site import OutputSpec
from joins.batch import Schema
from joins.queries.query import JoinQuery
from joins.semijoins.one_way_join import JoinAttributes
from joins.semijoins.operand import Operand
from joins.semijoins.operand_windows import OperandWindow
from netsim.network import link_between
from topologies.semijoins.plans import JoinPlan, PlannedJoin, TreePlan
from topologies.topology import TopologyError


@dataclass(frozen=True, kw_only=True)
class PlanSteps:
    """What all sites of a plan have in common."""

    steps: tuple[OneWayStep, ...]
    """All one-way joins, numbered."""
    outputs: tuple[OutputSpec, ...] = ()
    """The output streams; none in a linear plan."""
    removal_ns: int
    """By which removals are delayed in the paper's model."""


def plan_steps(
    query: JoinQuery, plan: JoinPlan, schemas: Sequence[Schema], delta_ns: int
) -> PlanSteps:
    """Return what sites need to carry out *plan*; *delta_ns* is δ.

    Raise :exc:`TopologyError` for a Bloom filter where there is no equality, and for a tree over
    windows that count tuples.
    """
    if isinstance(plan, TreePlan):
        return _tree_steps(query, plan, schemas, delta_ns)
    steps = [
        _one_way_step(
            query,
            schemas,
            join,
            [Operand.of_stream(stream) for stream in join.probe],
            Operand.of_stream(join.destination),
            number=number,
            window=query.windows[join.destination],
            following=None if len(join.probe) + 1 == len(plan.streams) else number + 1,
        )
        for number, join in enumerate(plan.one_way_joins)
    ]
    return PlanSteps(steps=tuple(steps), removal_ns=_delay_ns(plan.one_way_joins, delta_ns))


def _tree_steps(
    query: JoinQuery, plan: TreePlan, schemas: Sequence[Schema], delta_ns: int
) -> PlanSteps:
    """Return the one-way joins of a tree, two for each two-way join, and its output streams."""
    _refuse_windows_by_count(query, plan)
    count = len(schemas)
    operands: dict[tuple[int, ...], Operand] = {
        (stream,): Operand.of_stream(stream) for stream in range(count)
    }
    late_ns = dict.fromkeys(operands, 0)
    steps: list[OneWayStep] = []
    outputs: list[OutputSpec] = []
    # Of the one-way joins each two are the two directions of a two-way join.
    for place, both in enumerate(zip(*[iter(plan.one_way_joins)] * 2, strict=True)):
        left, right = (tuple(sorted(streams)) for streams in (both[0].probe, both[0].stored))
        streams = tuple(sorted(left + right))
        last = len(streams) == count
        operands[streams] = Operand(number=count + place, streams=streams)
        late_ns[streams] = max(late_ns[left], late_ns[right]) + _delay_ns(both, delta_ns)
        windows = [
            OperandWindow(
                probe=operands[probe], stored=operands[stored], windows=query.windows, last=last
            )
            for probe, stored in ((left, right), (right, left))
        ]
        steps += [
            _one_way_step(
                query,
                schemas,
                join,
                [window.probe],
                window.stored,
                number=2 * place + direction,
                window=window,
                output=None if last else operands[streams].number,
                late_ns=late_ns[window.stored.streams],
            )
            for direction, (join, window) in enumerate(zip(both, windows, strict=True))
        ]
        outputs += [
            OutputSpec(
                operand=window.stored,
                window=window,
                steps=_steps_that_make(window.stored, count),
                site=join.destination,
                late_ns=late_ns[window.stored.streams],
            )
            for join, window in zip(reversed(both), reversed(windows), strict=True)
            if window.stored.is_output
        ]
    return PlanSteps(
        steps=tuple(steps), outputs=tuple(outputs), removal_ns=late_ns[tuple(range(count))]
    )


def _refuse_windows_by_count(query: JoinQuery, plan: TreePlan) -> None:
    counting = [query.streams[s] for s, w in enumerate(query.windows) if w.kind == "count"]
    if counting:
        raise TopologyError(
            f"plan {plan}: a tree joins over windows of time; that of {counting[0]} counts tuples, "
            "and an output stream lacks those that matched nothing. Linear plans can count them"
        )


def _steps_that_make(output: Operand, streams: int) -> tuple[int, int]:
    """Return the numbers of the two one-way joins whose results are an output stream."""
    first = 2 * (output.number - streams)
    return first, first + 1


def _delay_ns(joins: Sequence[PlannedJoin], delta_ns: int) -> int:
    """Return δ, and once more where probes wait δ themselves."""
    return delta_ns * (2 if any(join.algorithm.delayed for join in joins) else 1)


def _one_way_step(
    query: JoinQuery,
    schemas: Sequence[Schema],
    join: PlannedJoin,
    joined: Sequence[Operand],
    stored: Operand,
    **more: Any,
) -> OneWayStep:
    """Return the step that joins what is *joined* so far with *stored*; *more* are its fields."""
    attributes = JoinAttributes.between(query, joined, stored, schemas)
    schema = stored.schema(schemas)
    if join.algorithm.filters and not attributes.equalities:
        raise TopologyError(
            f"{join.algorithm} from {joined[-1].schema(schemas).stream} to {schema.stream}: a "
            "Bloom filter needs a predicate with ="
        )
    return OneWayStep(
        algorithm=join.algorithm,
        source=join.source,
        destination=join.destination,
        streams=tuple(operand.number for operand in joined),
        stored=stored.number,
        attributes=attributes,
        schema=schema,
        **more,
    )


def longest_path(
    plan: JoinPlan, network: nx.Graph, sites: Sequence[str]
) -> tuple[int, tuple[str, ...]]:
    """Return the largest accumulated latency (ns), and the path of sites that has it (section 2.2).

    What lies between a link's latency and the time a message takes (its bytes, queues at ports, the
    tail of a distribution beyond one spread) is not in it. *sites* are their names in *network*, in
    the order of the streams.
    """
    paths = (tuple(sites[place] for place in path) for path in _paths(plan))
    return max((sum(_latency_ns(network, a, b) for a, b in pairwise(path)), path) for path in paths)


def _paths(plan: JoinPlan) -> Iterator[tuple[int, ...]]:
    """Yield the ways of tuples through one-way joins, and of new tuples to copies of their window.

    Through a join sequence ways add up; an output stream of a tree waits until its interval is
    whole.
    """
    path: tuple[int, ...] = ()
    for join in plan.one_way_joins:
        ends = join.destination, join.source
        yield ends
        if isinstance(plan, TreePlan) or len(join.probe) == 1:
            path = (join.source,)
        path += tuple(ends[crossing % 2] for crossing in range(join.algorithm.crossings))
        yield path


def _latency_ns(network: nx.Graph, a: str, b: str) -> int:
    link = link_between(network, a, b)
    return link.latency.mean_ns + link.latency.spread_ns if link else 0
