"""Searches for join trees: every one by dynamic programming, and a greedy one.

What the joins above cost depends on which streams a tree has joined and on the site its output is
at, not on how it came there. So of all trees of the same streams and site only the cheapest is
kept, and no tree that is thrown away can be part of the best one. Joins of streams that share no
predicate are not among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np

from joins.semijoins.one_way_join import OneWayJoin
from topologies.semijoins.costs.costing import Costing
from topologies.semijoins.trees.costing import TreeCosting
from topologies.semijoins.trees.plan import Tree, TreePlan, TwoWayJoin, leaves, site_of


@dataclass(frozen=True, kw_only=True)
class _Candidate:
    """A tree, and the time of all of its joins."""

    seconds: float
    tree: Tree


def exhaustive_tree(costing: Costing) -> TreePlan:
    """Return the tree of the least estimated time, bushy ones included."""
    graph = costing.statistics.graph
    streams = sorted(graph)
    sets = [members for members in _subsets(streams) if nx.is_connected(graph.subgraph(members))]
    place = {members: at for at, members in enumerate(sets)}
    pricing = _Pricing(costing, sets)
    best: list[dict[int, _Candidate]] = []
    for members in sets:
        if len(members) == 1:
            best.append({members[0]: _Candidate(seconds=0.0, tree=members[0])})
            continue
        here: dict[int, _Candidate] = {}
        last = len(members) == len(streams)
        for left, right in _splits(members):
            if left in place and right in place:
                at = place[left], place[right]
                for found in pricing.joined(*at, best[at[0]], best[at[1]], last=last):
                    _keep_cheapest(here, found)
        best.append(here)
    return _plan(costing, min(best[-1].values(), key=lambda one: one.seconds))


def greedy_tree(costing: Costing) -> TreePlan:
    """Return the left-deep tree in which each next join is the cheapest: Algorithm 10 for trees.

    It begins with the cheapest join of two streams.
    """
    graph = costing.statistics.graph
    streams = sorted(graph)
    singles = [(stream,) for stream in streams]
    leaf = {stream: {stream: _Candidate(seconds=0.0, tree=stream)} for stream in streams}
    pairs = [(a, b) for a in streams for b in streams if a < b and graph.has_edge(a, b)]
    pricing = _Pricing(costing, singles)
    last = len(streams) == 2
    current = min(
        (one for a, b in pairs for one in pricing.joined(a, b, leaf[a], leaf[b], last=last)),
        key=lambda one: one.seconds,
    )
    while len(done := leaves(current.tree)) < len(streams):
        near = [s for s in streams if s not in done and any(graph.has_edge(s, d) for d in done)]
        pricing = _Pricing(costing, [tuple(sorted(done)), *((stream,) for stream in near)])
        current = min(
            (
                one
                for at, stream in enumerate(near, start=1)
                for one in pricing.joined(
                    0,
                    at,
                    {site_of(current.tree): current},
                    leaf[stream],
                    last=len(done) + 1 == len(streams),
                )
            ),
            key=lambda one: one.seconds,
        )
    return _plan(costing, current)


class _Pricing:
    """Joins of sets of streams with each other."""

    def __init__(self, costing: Costing, sets: Sequence[tuple[int, ...]]) -> None:
        self._pricing = TreeCosting(costing)
        self._algorithms = costing.algorithms
        self._at_source = np.flatnonzero(costing.at_source)
        self._at_destination = np.flatnonzero(~costing.at_source)
        done = np.zeros((len(sets), len(costing.statistics.streams)), dtype=bool)
        for row, members in enumerate(sets):
            done[row, members] = True
        self._costs = self._pricing.one_way(done, done)

    def joined(
        self,
        one: int,
        two: int,
        left: dict[int, _Candidate],
        right: dict[int, _Candidate],
        *,
        last: bool,
    ) -> Iterator[_Candidate]:
        """Give the cheapest joins of two operands, each the best by its site, at either site.

        *one* and *two* are the places of their sets; the *last* join's output may be at both sites.
        """
        here, there = np.array(list(left)), np.array(list(right))
        spent_s = np.add.outer(
            [candidate.seconds for candidate in left.values()],
            [candidate.seconds for candidate in right.values()],
        )
        down = self._pricing.seconds(self._costs, one, two, here, there)
        up = self._pricing.seconds(self._costs, two, one, there, here).swapaxes(0, 1)
        everything = np.arange(len(self._algorithms))
        ways = (
            [(everything, everything)]
            if last
            else [
                (self._at_source, self._at_destination),
                (self._at_destination, self._at_source),
            ]
        )
        for downwards, upwards in ways:
            total_s = spent_s + down[:, :, downwards].min(axis=2) + up[:, :, upwards].min(axis=2)
            a, b = np.unravel_index(total_s.argmin(), total_s.shape)
            yield _Candidate(
                seconds=float(total_s[a, b]),
                tree=TwoWayJoin(
                    left=left[int(here[a])].tree,
                    right=right[int(there[b])].tree,
                    up=self._cheapest(up[a, b], upwards),
                    down=self._cheapest(down[a, b], downwards),
                ),
            )

    def _cheapest(self, seconds: np.ndarray, among: np.ndarray) -> OneWayJoin:
        return self._algorithms[among[seconds[among].argmin()]]


def _keep_cheapest(best: dict[int, _Candidate], found: _Candidate) -> None:
    site = site_of(found.tree)
    if site not in best or found.seconds < best[site].seconds:
        best[site] = found


def _subsets(streams: list[int]) -> list[tuple[int, ...]]:
    """Return all sets of one stream or more, those of few streams first."""
    masks = range(1, 1 << len(streams))
    found = [tuple(s for at, s in enumerate(streams) if mask >> at & 1) for mask in masks]
    return sorted(found, key=lambda members: (len(members), members))


def _splits(members: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Give each way to part streams in two once."""
    first, *rest = members
    for mask in range((1 << len(rest)) - 1):
        with_first = (first, *(s for at, s in enumerate(rest) if mask >> at & 1))
        yield with_first, tuple(s for at, s in enumerate(rest) if not mask >> at & 1)


def _plan(costing: Costing, found: _Candidate) -> TreePlan:
    assert isinstance(found.tree, TwoWayJoin)  # of two streams or more
    return TreePlan(streams=costing.statistics.names, root=found.tree)
