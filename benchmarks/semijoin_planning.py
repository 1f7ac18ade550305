"""Planning distributed joins by semijoins: how long the searches take.

In the clock: the search for a plan alone, processor time.

Random queries of Table 2 of the stream semijoin paper, every stream connected to every other, which
leaves the most orders to choose from.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from benchmarks.measure import Result, report
from topologies.semijoins.costing import Costing
from topologies.semijoins.plans import JoinPlan
from topologies.semijoins.random_queries import QueryValues, random_query
from topologies.semijoins.searches import exhaustive_plan, exhaustive_tree, greedy_plan, greedy_tree

_QUERIES = 9


def main() -> None:
    """Time all searches, statistics given."""
    report(
        "semijoin planning",
        [
            _timed("greedy, 12 streams", greedy_plan, 12, 50),
            _timed("greedy, 5 streams", greedy_plan, 5),
            _timed("exhaustive, 5 streams", exhaustive_plan, 5, 10_000),
            _timed("exhaustive, 8 streams", exhaustive_plan, 8),
            _timed("greedy tree, 12 streams", greedy_tree, 12, 50),
            _timed("exhaustive tree, 5 streams", exhaustive_tree, 5, 10_000),
            _timed("exhaustive tree, 8 streams", exhaustive_tree, 8),
        ],
    )


def _timed(
    name: str,
    search: Callable[[Costing], JoinPlan],
    streams: int,
    target: float | None = None,
) -> Result:
    rng = np.random.default_rng(1)
    values = QueryValues(join_graph="fully connected", streams=streams)
    spent_ms = []
    for _ in range(_QUERIES):
        query = random_query(values, rng)
        start = time.process_time()
        search(Costing(query))
        spent_ms.append((time.process_time() - start) * 1e3)
    return Result.of(name, spent_ms, unit="ms", target=target, at_least=False)


if __name__ == "__main__":
    main()
