"""Searches for the cheapest plan: greedy (Algorithm 10) and exhaustive, of sequences and of trees.

What a plan still costs depends on which streams are joined, on the site the output is at, and in a
sequence on its head, not on how it came there. So of all beginnings that agree in these only the
cheapest is followed: no plan that is thrown away can be the best one. The paper prunes "simply" and
does not state by what. Joins of streams that share no predicate are not among the plans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, combinations
from typing import NamedTuple

import networkx as nx
import numpy as np

from joins.semijoins.one_way_join import OneWayJoin
from topologies.semijoins.costing import Costing
from topologies.semijoins.plans import (
    JoinPlan,
    JoinStep,
    LinearPlan,
    Tree,
    TreePlan,
    TwoWayJoin,
    leaves,
    site_of,
)

EXHAUSTIVE_STREAMS = 8
"""Most streams whose plans are searched exhaustively in less than a second."""


def greedy_plan(costing: Costing) -> LinearPlan:
    """Return the plan in which every step of every join sequence is the cheapest to take next.

    Of equal costs the first stream's and the first algorithm's counts.
    """
    return _linear_plan(costing, greedy=True)


def exhaustive_plan(costing: Costing) -> LinearPlan:
    """Return the plan of the least estimated time."""
    return _linear_plan(costing, greedy=False)


def _linear_plan(costing: Costing, *, greedy: bool) -> LinearPlan:
    """Search breadth first, and of steps that rival each other follow the cheapest alone.

    A *greedy* search has one beginning for each head, whose next steps are all rivals. Otherwise
    rivals are those after which all that follows costs the same.
    """
    statistics = costing.statistics
    names = statistics.names
    streams = np.arange(len(names))
    bits = 1 << streams[::-1]
    # Beginnings of join sequences, one per row: the head, which streams are joined already, bool,
    # (rows, streams), the site of the output, the time so far (seconds a second), and the steps.
    head = site = streams
    done = np.eye(len(names), dtype=bool)
    spent_s = np.zeros(len(names))
    taken: list[tuple[JoinStep, ...]] = [() for _ in names]
    for _ in names[1:]:
        costs = costing.costs(costing.outputs(done, costing.alone.done[head]), costing.alone)
        step_s = costs.seconds(statistics.latency_s[site], statistics.bandwidth_bps[site])
        allowed = (done @ costing.adjacent) & ~done  # those that share a predicate
        total_s = spent_s[:, None, None] + np.where(allowed[:, :, None], step_s, np.inf)
        row, stream, algorithm = np.nonzero(np.isfinite(total_s))
        after = np.where(
            costing.at_source[algorithm], site[row], stream
        )  # where the output then is
        rivals = head[row]
        if not greedy:
            joined = (done @ bits)[row] | bits[stream]
            rivals = (rivals * len(names) + after) << len(names) | joined
        order = np.lexsort((total_s[row, stream, algorithm], rivals))
        chosen = order[np.diff(rivals[order], prepend=-1) > 0]
        row, stream, algorithm = row[chosen], stream[chosen], algorithm[chosen]
        spent_s = total_s[row, stream, algorithm]
        head, site, done = head[row], after[chosen], done[row]
        done[np.arange(len(done)), stream] = True
        steps = np.column_stack((row, stream, algorithm)).tolist()
        taken = [
            (*taken[before], JoinStep(stream=joined_next, algorithm=costing.algorithms[by]))
            for before, joined_next, by in steps
        ]
    sequences = []
    for place in range(len(names)):
        mine = np.flatnonzero(head == place)
        sequences.append(taken[int(mine[spent_s[mine].argmin()])])
    return LinearPlan(streams=names, sequences=tuple(sequences))


def auto_plan(costing: Costing) -> LinearPlan:
    """Return the best linear plan where a search takes less than a second, else the greedy one."""
    few = len(costing.statistics.streams) <= EXHAUSTIVE_STREAMS
    return exhaustive_plan(costing) if few else greedy_plan(costing)


class _Candidate(NamedTuple):
    """A tree, and the time of all of its joins."""

    seconds: float
    tree: Tree


def exhaustive_tree(costing: Costing) -> TreePlan:
    """Return the tree of the least estimated time, bushy ones included."""
    graph = costing.statistics.graph
    streams = sorted(graph)
    subsets = chain.from_iterable(combinations(streams, n + 1) for n in range(len(streams)))
    sets = [members for members in subsets if nx.is_connected(graph.subgraph(members))]
    place = {members: at for at, members in enumerate(sets)}
    pricing = _TwoWayPricing(costing, sets)
    best: list[dict[int, _Candidate]] = []
    for members in sets:
        if len(members) == 1:
            best.append({members[0]: _Candidate(0.0, members[0])})
            continue
        connected = [
            (place[left], place[right])
            for left, right in _splits(members)
            if left in place and right in place
        ]
        best.append(
            _cheapest_by_site(
                one
                for left, right in connected
                for one in pricing.joined(left, right, best[left], best[right])
            )
        )
    return _tree_plan(costing, _cheapest(best[-1].values()))


def _cheapest_by_site(candidates: Iterable[_Candidate]) -> dict[int, _Candidate]:
    """Return for each site the cheapest tree whose results are there; of equal ones the first."""
    cheapest: dict[int, _Candidate] = {}
    for one in candidates:
        site = site_of(one.tree)
        if site not in cheapest or one.seconds < cheapest[site].seconds:
            cheapest[site] = one
    return cheapest


def greedy_tree(costing: Costing) -> TreePlan:
    """Return the left-deep tree in which each next join is the cheapest: Algorithm 10 for trees.

    It begins with the cheapest join of two streams.
    """
    graph = costing.statistics.graph
    streams = sorted(graph)
    leaf = {stream: {stream: _Candidate(0.0, stream)} for stream in streams}
    pairs = [(a, b) for a in streams for b in streams if a < b and graph.has_edge(a, b)]
    pricing = _TwoWayPricing(costing, [(stream,) for stream in streams])
    current = _cheapest(one for a, b in pairs for one in pricing.joined(a, b, leaf[a], leaf[b]))
    while len(done := leaves(current.tree)) < len(streams):
        near = [s for s in streams if s not in done and any(graph.has_edge(s, d) for d in done)]
        pricing = _TwoWayPricing(costing, [done, *((stream,) for stream in near)])
        output = {site_of(current.tree): current}
        current = _cheapest(
            one
            for at, stream in enumerate(near, start=1)
            for one in pricing.joined(0, at, output, leaf[stream])
        )
    return _tree_plan(costing, current)


class _TwoWayPricing:
    """Two-way joins of sets of streams with each other."""

    def __init__(self, costing: Costing, sets: Sequence[tuple[int, ...]]) -> None:
        self._sets = sets
        self._statistics = costing.statistics
        self._algorithms = costing.algorithms
        everything = np.arange(len(self._algorithms))
        at_source, at_destination = everything[costing.at_source], everything[~costing.at_source]
        self._last_ways = [(everything, everything)]
        self._ways = [(at_source, at_destination), (at_destination, at_source)]
        outputs = costing.outputs(costing.members(sets))
        self._costs = costing.costs(outputs, outputs)

    def joined(
        self, one: int, two: int, left: dict[int, _Candidate], right: dict[int, _Candidate]
    ) -> Iterator[_Candidate]:
        """Yield the cheapest joins of two operands, each the best by its site, at either site.

        *one* and *two* are the places of their sets; the last join's output may be at both sites.
        """
        last = len(self._sets[one]) + len(self._sets[two]) == len(self._statistics.streams)
        here, there = np.array(list(left)), np.array(list(right))
        spent_s = np.add.outer(
            [candidate.seconds for candidate in left.values()],
            [candidate.seconds for candidate in right.values()],
        )
        down = self._seconds(one, two, here, there)
        up = self._seconds(two, one, there, here).swapaxes(0, 1)
        for downwards, upwards in self._last_ways if last else self._ways:
            total_s = spent_s + down[:, :, downwards].min(axis=2) + up[:, :, upwards].min(axis=2)
            a, b = np.unravel_index(total_s.argmin(), total_s.shape)
            yield _Candidate(
                seconds=float(total_s[a, b]),
                tree=TwoWayJoin(
                    left=left[int(here[a])].tree,
                    right=right[int(there[b])].tree,
                    up=self._fastest(up[a, b], upwards),
                    down=self._fastest(down[a, b], downwards),
                ),
            )

    def _seconds(self, one: int, two: int, sites: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return the time by the site of either output and by algorithm."""
        links = np.ix_(sites, others)
        return self._costs.between(one, two).seconds(
            self._statistics.latency_s[links], self._statistics.bandwidth_bps[links]
        )

    def _fastest(self, seconds: np.ndarray, among: np.ndarray) -> OneWayJoin:
        return self._algorithms[int(among[seconds[among].argmin()])]


def _cheapest(candidates: Iterable[_Candidate]) -> _Candidate:
    return min(candidates, key=lambda one: one.seconds)


def _splits(members: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield each way to split streams in two once."""
    first, *rest = members
    for mask in range((1 << len(rest)) - 1):
        with_first = (first, *(s for at, s in enumerate(rest) if mask >> at & 1))
        yield with_first, tuple(s for at, s in enumerate(rest) if not mask >> at & 1)


def _tree_plan(costing: Costing, best: _Candidate) -> TreePlan:
    assert isinstance(best.tree, TwoWayJoin)  # of two streams or more
    return TreePlan(streams=costing.statistics.names, root=best.tree)


SEARCHES: dict[str, Callable[[Costing], JoinPlan]] = {
    "greedy": greedy_plan,
    "exhaustive": exhaustive_plan,
    "auto": auto_plan,
    "greedy-tree": greedy_tree,
    "exhaustive-tree": exhaustive_tree,
}
"""The searches by name; those of linear plans unless it ends in tree."""
