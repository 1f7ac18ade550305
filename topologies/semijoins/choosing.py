"""The choice of a plan: the searches by name."""

from __future__ import annotations

from collections.abc import Callable

from topologies.semijoins.costs.costing import Costing
from topologies.semijoins.exhaustive import exhaustive_plan
from topologies.semijoins.greedy import greedy_plan
from topologies.semijoins.plan import LinearPlan
from topologies.semijoins.reading import JoinPlan
from topologies.semijoins.trees.search import exhaustive_tree, greedy_tree

EXHAUSTIVE_STREAMS = 8
"""Most streams whose plans are searched exhaustively in less than a second."""


def auto_plan(costing: Costing) -> LinearPlan:
    """Return the best plan where finding it takes less than a second, else the greedy one."""
    few = len(costing.statistics.streams) <= EXHAUSTIVE_STREAMS
    return exhaustive_plan(costing) if few else greedy_plan(costing)


SEARCHES: dict[str, Callable[[Costing], JoinPlan]] = {
    "greedy": greedy_plan,
    "exhaustive": exhaustive_plan,
    "auto": auto_plan,
    "greedy-tree": greedy_tree,
    "exhaustive-tree": exhaustive_tree,
}
"""How a plan is searched for, by name; linear ones where it does not say tree."""
