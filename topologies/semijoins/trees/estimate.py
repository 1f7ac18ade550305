"""What a whole join tree is estimated to cost, one-way join by one-way join."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from joins.semijoins.one_way_join import OneWayJoin
from topologies.semijoins.costs.costing import Costing
from topologies.semijoins.costs.plan_estimate import OneWayEstimate, PlanEstimate
from topologies.semijoins.trees.costing import TreeCosting
from topologies.semijoins.trees.plan import Tree, TreePlan, joins_of, leaves, site_of


@dataclass(frozen=True, kw_only=True)
class TreeStepEstimate(OneWayEstimate):
    """A one-way join of a tree.

    Attributes
    ----------
    one, two
        Streams in S_1 and in S_2.
    seconds_by
        Estimated time by each algorithm there is, between the same sites.
    """

    one: tuple[int, ...]
    two: tuple[int, ...]
    seconds_by: dict[OneWayJoin, float]


@dataclass(frozen=True, kw_only=True)
class TreeEstimate(PlanEstimate):
    """A tree and what it is estimated to cost."""

    plan: TreePlan
    steps: tuple[TreeStepEstimate, ...]


def estimate_tree(costing: Costing, plan: TreePlan) -> TreeEstimate:
    """Return what *plan* costs."""
    pricing = TreeCosting(Costing(costing.statistics, tuple(OneWayJoin)))
    steps = []
    for join in joins_of(plan.root):
        steps += [
            _step(pricing, join.left, join.right, join.down),
            _step(pricing, join.right, join.left, join.up),
        ]
    return TreeEstimate(plan=plan, steps=tuple(steps))


def _step(pricing: TreeCosting, one: Tree, two: Tree, algorithm: OneWayJoin) -> TreeStepEstimate:
    costing = pricing.costing
    sets = [np.isin(range(len(costing.statistics.streams)), leaves(tree)) for tree in (one, two)]
    ones, twos = sets[0][None], sets[1][None]
    costs = pricing.one_way(ones, twos)
    at = costing.algorithms.index(algorithm)
    sites = np.array([site_of(one)]), np.array([site_of(two)])
    headers = costs.shipments[0, 0, at] * costing.statistics.header_bytes
    seconds = pricing.seconds(costs, 0, 0, *sites)[0, 0].tolist()
    return TreeStepEstimate(
        one=leaves(one),
        two=leaves(two),
        source=site_of(one),
        destination=site_of(two),
        algorithm=algorithm,
        seconds=seconds[at],
        seconds_by=dict(zip(costing.algorithms, seconds, strict=True)),
        nbytes=float(costs.shipped_bytes[0, 0, at] + headers),
        rate_in_tps=float(costing.outputs.rates(pricing.outputs(ones)).sum()),
    )
