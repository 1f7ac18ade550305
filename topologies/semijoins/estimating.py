"""What a plan is estimated to cost, whichever its ordering."""

from __future__ import annotations

from topologies.semijoins.costs.costing import Costing
from topologies.semijoins.costs.estimate import Estimate, estimate
from topologies.semijoins.plan import LinearPlan
from topologies.semijoins.reading import JoinPlan
from topologies.semijoins.trees.estimate import TreeEstimate, estimate_tree


def estimate_plan(costing: Costing, plan: JoinPlan) -> Estimate | TreeEstimate:
    """Return what *plan* costs."""
    return estimate(costing, plan) if isinstance(plan, LinearPlan) else estimate_tree(costing, plan)
