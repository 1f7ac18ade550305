"""CSS-tree: a static B+-tree without pointers (Rao and Ross, VLDB 1999).

SPO-Join compares its immutable component with a CSS-tree per predicate (section 5): see
`joins.indexes.immutable.css_segments`. PIM-Tree's immutable B+-tree is a CSS-tree, too (section 3
and appendix A.3), in another layout: see `joins.indexes.pim_tree.immutable_tree`.

The leaves are the sorted keys themselves, cut into blocks of one cache line; since blocks lie in
order, the next one needs no link. Inner nodes are cache lines of separators in one array, breadth
first from the root. A node with m separators has m + 1 children, and child c of node i of a level
is node i·(m + 1) + c of the next level, so no child is ever stored.

It is built from the bottom up, as PIM-Tree's Algorithm 3 does: a separator is the largest key below
its child, and the largest key below a node's last child goes to the node's parent. The algorithm
walks the leaves and climbs; here each level is cut out of the largest keys of the one below, which
gives the same nodes.

What belongs to a key (a stream position, say) stays with the caller in a column parallel to the
keys, since a search answers with a place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.codes import GREATEST
from joins.indexes.immutable.segment import ImmutableSegment
from joins.indexes.index import Ranges
from joins.indexes.range_search import Brackets
from joins.machine.compiling import inlined, kernel
from joins.machine.memory import LINE, aligned
from joins.work import COMPARISONS, Work

NODE_KEYS = LINE
"""Separators of an inner node and keys of a leaf: 64 bytes, a cache line."""
FANOUT = NODE_KEYS + 1

_ROOT, _KNOWN = 0, -1  # Where a search begins; what stands for a place that needs none.


class CssNodes(NamedTuple):
    """The arrays of a tree that a search reads."""

    keys: np.ndarray
    """The sorted keys; leaf i holds places i·`NODE_KEYS` and following."""
    inner: np.ndarray
    """Shape (nodes, `NODE_KEYS`): separators, root first; a node that is not full ends in copies of
    the largest value there is."""
    level: np.ndarray
    """int64, the row of *inner* where each inner level begins, the root's level first."""
    width: np.ndarray
    """int64, how many nodes each level has; one entry more than *level*, for the leaves."""


def build_css_tree(keys: np.ndarray) -> CssNodes:
    """Return a static search tree over one sorted column of int64 keys."""
    largest = keys[NODE_KEYS - 1 :: NODE_KEYS]
    width = [max(1, -(-len(keys) // NODE_KEYS))]
    levels: list[np.ndarray] = []
    while width[-1] > 1:
        nodes = -(-width[-1] // FANOUT)
        levels.append(_cut_level(largest, nodes))
        largest = largest[FANOUT - 1 :: FANOUT]
        width.append(nodes)
    rows = [len(level) for level in reversed(levels)]
    inner = aligned((sum(rows), NODE_KEYS))
    if levels:
        np.concatenate(levels[::-1], out=inner)
    return CssNodes(
        keys, inner, np.cumsum([0, *rows], dtype=np.int64)[:-1], np.array(width[::-1], np.int64)
    )


def _cut_level(largest: np.ndarray, nodes: int) -> np.ndarray:
    """Return the separators of a level's *nodes*, given the largest key below every full child."""
    slots = np.full(nodes * FANOUT, GREATEST)
    slots[: len(largest)] = largest
    return slots.reshape(nodes, FANOUT)[:, :NODE_KEYS]


@kernel
def child(nodes: CssNodes, level: int, node: int, value: int, after: bool) -> int:
    """Return the node of the next level that a search for *value* comes through."""
    row, passed = nodes.level[level] + node, 0
    # All separators are compared, without a branch: cheaper than guessing where to stop.
    for slot in range(NODE_KEYS):
        key = nodes.inner[row, slot]
        passed += (key < value) | (after & (key == value))
    # Past the last child only when all keys are passed: fillers count as passed too, then.
    return int(min(node * FANOUT + passed, nodes.width[level + 1] - 1))


@kernel
def _place_in_leaf(nodes: CssNodes, leaf: int, value: int, after: bool) -> int:
    """Return the first place of a leaf, or behind it, with a key that `_descend` looks for."""
    begin = leaf * NODE_KEYS
    place = begin
    for i in range(begin, _leaf_end(nodes, leaf)):
        key = nodes.keys[i]
        place += (key < value) | (after & (key == value))
    return place


@kernel
def _leaf_end(nodes: CssNodes, leaf: int) -> int:
    return min((leaf + 1) * NODE_KEYS, len(nodes.keys))


@inlined
def _descend(
    nodes: CssNodes, values: np.ndarray, places: np.ndarray, counters: np.ndarray, after: bool
) -> None:
    """Turn `_ROOT` into the first place with a key of at least values[i], or *after*: greater.

    All searches go down together, a level at a time. Which node is next depends on the one before
    it, so a search alone waits for each of its cache lines; searches wait for theirs at once.
    """
    for level in range(len(nodes.level)):
        for i in range(len(values)):
            if places[i] != _KNOWN:
                places[i] = child(nodes, level, places[i], values[i], after=after)
                counters[COMPARISONS] += NODE_KEYS
    for i in range(len(values)):
        if places[i] != _KNOWN:
            leaf = places[i]
            counters[COMPARISONS] += _leaf_end(nodes, leaf) - leaf * NODE_KEYS
            places[i] = _place_in_leaf(nodes, leaf, values[i], after=after)


@kernel
def find_ranges_in_tree(
    nodes: CssNodes,
    lo: np.ndarray,
    hi: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Fill in the places *begin* to *end* - 1 whose keys are in ``lo[i] <= key <= hi[i]``.

    One end of an inequality's range lies outside all keys: no descent is needed to know that.
    """
    n = len(nodes.keys)
    for i in range(len(lo)):
        begin[i] = end[i] = _KNOWN
        if n > 0 and lo[i] <= hi[i]:
            counters[COMPARISONS] += 2
            begin[i] = _ROOT if lo[i] > nodes.keys[0] else _KNOWN
            end[i] = _ROOT if hi[i] < nodes.keys[n - 1] else _KNOWN
    _descend(nodes, lo, begin, counters, after=False)
    _descend(nodes, hi, end, counters, after=True)
    for i in range(len(lo)):
        if begin[i] == _KNOWN:
            begin[i] = 0
        if end[i] == _KNOWN:
            end[i] = n if lo[i] <= hi[i] else 0


class TreeSearchedSegment(ImmutableSegment):
    """A CSS-tree over every predicate's keys; a subclass adds to what is sealed."""

    def _seal(self) -> Work:
        self._trees = tuple(build_css_tree(column) for column in self.keys)
        # An entry is moved per separator.
        return Work(
            moves=sum(tree.inner.size for tree in self._trees),
            bytes_copied=sum(key.nbytes for key in self.keys),
        )

    def _find_places(
        self,
        predicate: int,
        ranges: Ranges,
        brackets: Brackets | None,
        places: tuple[np.ndarray, np.ndarray],
        counters: np.ndarray,
    ) -> None:
        low, high = ranges.low[predicate], ranges.high[predicate]
        find_ranges_in_tree(self._trees[predicate], low, high, *places, counters)
