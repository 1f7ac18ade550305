"""The exhaustive search: the cheapest of all plans, breadth first with pruning.

What a sequence still costs depends on the streams that are joined and on the site the output is at,
not on how it came there. So of all beginnings with the same head, streams and site only the
cheapest is followed: no plan that is thrown away can be the best one. The paper prunes "simply" and
does not say by what.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from topologies.semijoins.costs.costing import Costing, Frontier
from topologies.semijoins.plan import JoinSequence, LinearPlan, Step


@dataclass(frozen=True, kw_only=True)
class _Level:
    """The beginnings that joined equally many streams, and how each came from the level before."""

    frontier: Frontier
    spent_s: np.ndarray
    before: np.ndarray
    stream: np.ndarray
    algorithm: np.ndarray


def exhaustive_plan(costing: Costing) -> LinearPlan:
    """Return the plan of the least estimated time."""
    names = costing.statistics.names
    nothing = np.zeros(len(names), np.int64)
    levels = [
        _Level(
            frontier=Frontier.of_heads(len(names)),
            spent_s=np.zeros(len(names)),
            before=nothing,
            stream=nothing,
            algorithm=nothing,
        )
    ]
    for _ in names[1:]:
        levels.append(_next_level(costing, levels[-1]))
    last = levels[-1]
    sequences = []
    for head in range(len(names)):
        mine = np.flatnonzero(last.frontier.head == head)
        best = int(mine[last.spent_s[mine].argmin()])
        sequences.append(JoinSequence(head=head, steps=_steps(costing, levels, best)))
    return LinearPlan(streams=names, sequences=tuple(sequences))


def _next_level(costing: Costing, level: _Level) -> _Level:
    seconds = costing.seconds(level.frontier)
    row, stream, algorithm = np.nonzero(np.isfinite(seconds))
    spent_s = level.spent_s[row] + seconds[row, stream, algorithm]
    frontier = level.frontier.take(row).joined(stream, costing.at_source[algorithm])
    # In the order of cost, so that the first of equals is the cheapest.
    order = np.argsort(spent_s, kind="stable")
    alike = np.column_stack([frontier.head, frontier.site, frontier.done])[order]
    _, first = np.unique(alike, axis=0, return_index=True)
    kept = order[first]
    return _Level(
        frontier=frontier.take(kept),
        spent_s=spent_s[kept],
        before=row[kept],
        stream=stream[kept],
        algorithm=algorithm[kept],
    )


def _steps(costing: Costing, levels: list[_Level], row: int) -> tuple[Step, ...]:
    """Return the steps that led to *row* of the last level."""
    steps = []
    for level in reversed(levels[1:]):
        algorithm = costing.algorithms[level.algorithm[row]]
        steps.append(Step(stream=int(level.stream[row]), algorithm=algorithm))
        row = int(level.before[row])
    return tuple(reversed(steps))
