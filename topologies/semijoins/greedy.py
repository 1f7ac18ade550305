"""Algorithm 10: a plan found by adding one stream at a time, the one that costs least to join."""

from __future__ import annotations

import numpy as np

from topologies.semijoins.costs.costing import Costing, Frontier
from topologies.semijoins.plan import JoinSequence, LinearPlan, Step


def greedy_plan(costing: Costing) -> LinearPlan:
    """Return the plan in which every step of every join sequence is the cheapest to take next.

    All heads advance together, a step at a time; of equal costs the first stream's and the first
    algorithm's counts.
    """
    names = costing.statistics.names
    heads = np.arange(len(names))
    frontier = Frontier.of_heads(len(names))
    steps: list[list[Step]] = [[] for _ in names]
    for _ in names[1:]:
        seconds = costing.seconds(frontier).reshape(len(names), -1)
        stream, algorithm = np.divmod(seconds[heads].argmin(axis=1), len(costing.algorithms))
        for head in heads:
            chosen = costing.algorithms[algorithm[head]]
            steps[head].append(Step(stream=int(stream[head]), algorithm=chosen))
        frontier = frontier.joined(stream, costing.at_source[algorithm])
    return LinearPlan(
        streams=names,
        sequences=tuple(
            JoinSequence(head=head, steps=tuple(taken)) for head, taken in enumerate(steps)
        ),
    )
