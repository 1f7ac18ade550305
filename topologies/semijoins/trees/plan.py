"""Tree ordering: plans of two-way joins, each of streams or of what the joins below it make.

The paper's tree is left-deep, a stream and the output below in each of its joins (stream semijoin
paper, section 4.2). Here outputs may meet outputs, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import networkx as nx

from joins.semijoins.one_way_join import OneWayJoin
from topologies.semijoins.plan import check_order
from topologies.topology import TopologyError


@dataclass(frozen=True, kw_only=True)
class TwoWayJoin:
    """A node of a join tree.

    Attributes
    ----------
    left, right
        What is joined: a stream, or the output of a join below. In the paper the right one is S_i
        and the left one the output stream S_{1…i-1}.
    up
        A_i1, the one-way join from right to left.
    down
        A_i2, the one-way join from left to right.
    """

    left: Tree
    right: Tree
    up: OneWayJoin
    down: OneWayJoin

    @property
    def site(self) -> int:
        """Where the output is made, by the one-way join from left to right at any rate."""
        return site_of(self.left if self.down.at_source else self.right)


Tree = int | TwoWayJoin
"""A stream by its position, or a join."""


def site_of(tree: Tree) -> int:
    """Return the site of a stream, or of a join's output."""
    return tree if isinstance(tree, int) else tree.site


def leaves(tree: Tree) -> tuple[int, ...]:
    """Return the streams in *tree*, from left to right."""
    return (tree,) if isinstance(tree, int) else leaves(tree.left) + leaves(tree.right)


def joins_of(tree: Tree) -> Iterator[TwoWayJoin]:
    """Give all joins in *tree*, those below before those above."""
    if isinstance(tree, TwoWayJoin):
        yield from joins_of(tree.left)
        yield from joins_of(tree.right)
        yield tree


@dataclass(frozen=True, kw_only=True)
class TreePlan:
    """One tree of two-way joins, for the tuples of all streams.

    Both one-way joins of a two-way join must make their output at one site unless it is the last,
    for the next join looks into one window of it. The paper leaves this out.

    Attributes
    ----------
    streams
        Names, in the order of the query.
    root
        The last join.
    """

    streams: tuple[str, ...]
    root: TwoWayJoin

    def __post_init__(self) -> None:
        check_order(leaves(self.root), self.streams)
        for join in joins_of(self.root):
            if join is not self.root and join.up.at_source == join.down.at_source:
                raise TopologyError(
                    f"the join tree makes the output of {self._text(join)} at two sites: one of "
                    f"{join.up}/{join.down} must work at its source and the other at its "
                    "destination"
                )

    def check(self, graph: nx.Graph) -> None:
        """Raise :exc:`TopologyError` where streams would be joined by no predicate."""
        for join in joins_of(self.root):
            left, right = leaves(join.left), leaves(join.right)
            if not any(graph.has_edge(a, b) for a in left for b in right):
                raise TopologyError(
                    f"the plan joins {self._named(right)} to {self._named(left)}, with which it "
                    "shares no predicate"
                )

    def _named(self, streams: tuple[int, ...]) -> str:
        return ", ".join(self.streams[stream] for stream in streams)

    def __str__(self) -> str:
        return self._text(self.root)

    def _text(self, tree: Tree) -> str:
        return self.streams[tree] if isinstance(tree, int) else f"({self._joined(tree)})"

    def _joined(self, tree: Tree) -> str:
        """Return what is in the brackets: a left-deep part needs one pair of them."""
        if isinstance(tree, int):
            return self.streams[tree]
        return f"{self._joined(tree.left)}, {self._text(tree.right)} {tree.up}/{tree.down}"
