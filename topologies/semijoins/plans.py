"""Join execution plans: in which order, by which algorithm and at which site streams are joined.

Streams are positions in the query, and each has the site it arrives at to itself, so that a site is
named by its stream's position (stream semijoin paper, section 2.2). A plan is a join sequence per
head stream, or one tree of two-way joins; either way it is carried out, and costed, as one-way
joins.

As text, a linear plan has a join sequence per head, ``A: B SP-D, C SM-S1``, each on its own line or
separated by semicolons. A tree is one order from the bottom up in brackets, with the algorithm from
the stream to the output below and the one back: ``(A, B SP-S/SP-D, C SM-S1/SP-D)``. Another such
tree may take the place of a stream: ``(A, B SP-S/SP-D, (C, D SP-D/SP-S) SM-S1/SP-D)``.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TypeVar

import networkx as nx

from joins.queries.query import JoinQuery
from joins.semijoins.one_way_join import OneWayJoin
from topologies.topology import TopologyError


@dataclass(frozen=True, kw_only=True)
class PlannedJoin:
    """A one-way join S_1 → S_2 of a plan."""

    probe: tuple[int, ...]
    stored: tuple[int, ...]
    """Streams in S_1 and in S_2, in the order of joining. In a sequence the first of S_1 is the
    head, whose tuple is the newest of a combination; in a tree any stream's may be."""
    source: int
    destination: int
    """Sites of S_1 and S_2."""
    algorithm: OneWayJoin
    """By which it is computed."""


@dataclass(frozen=True, kw_only=True)
class JoinPlan(ABC):
    """A plan of either ordering; its ``str`` is the text that `parse_plan` reads."""

    streams: tuple[str, ...]
    """Names, in the order of the query."""

    @property
    @abstractmethod
    def one_way_joins(self) -> tuple[PlannedJoin, ...]:
        """The one-way joins, of which each comes after those whose output it joins."""

    @property
    def one_line(self) -> str:
        """The plan's text on one line."""
        return str(self).replace("\n", "; ")

    def check(self, graph: nx.Graph) -> None:
        """Raise :exc:`TopologyError` where streams would be joined by no predicate of *graph*."""
        for join in self.one_way_joins:
            if not any(graph.has_edge(a, b) for a in join.probe for b in join.stored):
                raise TopologyError(
                    f"the plan joins {self._names_of(join.stored)} to {self._names_of(join.probe)}"
                    ", with which it shares no predicate"
                )

    def _names_of(self, streams: Iterable[int]) -> str:
        return ", ".join(self.streams[stream] for stream in streams)

    def _check_each_once(self, order: Sequence[int]) -> None:
        if sorted(order) != list(range(len(self.streams))):
            raise TopologyError(
                f"a plan joins each of {', '.join(self.streams)} once; it joins "
                f"{self._names_of(order)}"
            )


@dataclass(frozen=True, kw_only=True)
class JoinStep:
    """A pair ⟨S_ij, A_ij⟩ of a join sequence: the stream joined next, and how."""

    stream: int
    algorithm: OneWayJoin


@dataclass(frozen=True, kw_only=True)
class LinearPlan(JoinPlan):
    """Linear ordering: a join sequence per head stream (Definition 1), in the streams' order.

    P_i has the streams that a new tuple of the head S_i is joined with, one after the other. The
    output stays where it is by an algorithm at the source, and by one at the destination moves to
    the site of the stream just joined.
    """

    sequences: tuple[tuple[JoinStep, ...], ...]

    def __post_init__(self) -> None:
        for head, steps in enumerate(self.sequences):
            self._check_each_once([head, *(step.stream for step in steps)])

    @property
    def one_way_joins(self) -> tuple[PlannedJoin, ...]:
        """The steps of all sequences, one sequence after the other."""
        joins = []
        for head, steps in enumerate(self.sequences):
            joined: tuple[int, ...] = (head,)
            site = head
            for step in steps:
                joins.append(
                    PlannedJoin(
                        probe=joined,
                        stored=(step.stream,),
                        source=site,
                        destination=step.stream,
                        algorithm=step.algorithm,
                    )
                )
                joined = (*joined, step.stream)
                site = site if step.algorithm.at_source else step.stream
        return tuple(joins)

    def __str__(self) -> str:
        lines = []
        for head, steps in zip(self.streams, self.sequences, strict=True):
            joined = ", ".join(f"{self.streams[step.stream]} {step.algorithm}" for step in steps)
            lines.append(f"{head}: {joined}")
        return "\n".join(lines)


@dataclass(frozen=True, kw_only=True)
class TwoWayJoin:
    """A node of a join tree.

    The paper's tree is left-deep, a stream and the output below in each of its joins (section 4.2).
    Here outputs may meet outputs, too.
    """

    left: Tree
    right: Tree
    """What is joined: a stream, or the output of a join below. In the paper the right one is S_i
    and the left one the output stream S_{1…i-1}."""
    up: OneWayJoin
    """A_i1, the one-way join from right to left."""
    down: OneWayJoin
    """A_i2, the one-way join from left to right."""

    @property
    def site(self) -> int:
        """Where the output is made; at the root, where the join from left to right makes it."""
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
    """Yield all joins in *tree*, those below before those above."""
    if isinstance(tree, TwoWayJoin):
        yield from joins_of(tree.left)
        yield from joins_of(tree.right)
        yield tree


@dataclass(frozen=True, kw_only=True)
class TreePlan(JoinPlan):
    """Tree ordering: one tree of two-way joins, for the tuples of all streams.

    Both one-way joins of a two-way join must make their output at one site unless it is the root,
    for the next join looks into one window of it. The paper does not mention this.
    """

    root: TwoWayJoin

    def __post_init__(self) -> None:
        self._check_each_once(leaves(self.root))
        for join in joins_of(self.root):
            if join is not self.root and join.up.at_source == join.down.at_source:
                raise TopologyError(
                    f"the join tree makes the output of {self._text(join)} at two sites: one of "
                    f"{join.up}/{join.down} must work at its source and the other at its "
                    "destination"
                )

    @property
    def one_way_joins(self) -> tuple[PlannedJoin, ...]:
        """Two for each two-way join from the bottom up: from left to right, and back."""
        return tuple(
            PlannedJoin(
                probe=leaves(probe),
                stored=leaves(stored),
                source=site_of(probe),
                destination=site_of(stored),
                algorithm=algorithm,
            )
            for join in joins_of(self.root)
            for probe, stored, algorithm in (
                (join.left, join.right, join.down),
                (join.right, join.left, join.up),
            )
        )

    def __str__(self) -> str:
        return self._text(self.root)

    def _text(self, tree: Tree) -> str:
        return self.streams[tree] if isinstance(tree, int) else f"({self._in_brackets(tree)})"

    def _in_brackets(self, tree: Tree) -> str:
        """Return what is in the brackets: a left-deep part needs one pair of them."""
        if isinstance(tree, int):
            return self.streams[tree]
        return f"{self._in_brackets(tree.left)}, {self._text(tree.right)} {tree.up}/{tree.down}"


def join_graph(query: JoinQuery) -> nx.Graph:
    """Return the join graph G: streams as positions, an edge where a predicate compares two.

    Raise :exc:`TopologyError` naming the streams that no predicate connects to the others.
    """
    graph = nx.Graph()
    graph.add_nodes_from(range(len(query.streams)))
    graph.add_edges_from((p.left.stream, p.right.stream) for p in query.predicates)
    parts = [sorted(part) for part in nx.connected_components(graph)]
    if len(parts) > 1:
        names = "; ".join(", ".join(query.streams[s] for s in part) for part in parts)
        raise TopologyError(
            f"the join graph falls into {len(parts)} parts: {names}; every stream needs a "
            "predicate that connects it to the others"
        )
    return graph


def uniform_plan(
    streams: Sequence[str], graph: nx.Graph, algorithm: OneWayJoin = OneWayJoin.SP_D
) -> LinearPlan:
    """Return the plan that joins breadth first along *graph*, by one algorithm everywhere."""
    sequences = tuple(
        tuple(
            JoinStep(stream=stream, algorithm=algorithm)
            for _, stream in nx.bfs_edges(graph, head, sort_neighbors=sorted)
        )
        for head in range(len(streams))
    )
    return LinearPlan(streams=tuple(streams), sequences=sequences)


def parse_plan(text: str, streams: Sequence[str]) -> JoinPlan:
    """Return the plan that *text* describes for *streams*, names in the order of the query.

    Raise :exc:`TopologyError` naming the word that is wrong, and what is allowed.
    """
    names = tuple(streams)
    if text.lstrip().startswith("("):
        return TreePlan(streams=names, root=_parse_tree(text, names))
    lines = [line for line in re.split(r"[;\n]", text) if line.strip()]
    parsed = sorted((_parse_sequence(line, names) for line in lines), key=itemgetter(0))
    heads = [head for head, _ in parsed]
    if heads != list(range(len(names))):
        given = ", ".join(names[head] for head in heads) or "none"
        raise TopologyError(
            f"a plan has one join sequence for each of {', '.join(names)}, in this order; it has "
            f"them for {given}"
        )
    return LinearPlan(streams=names, sequences=tuple(steps for _, steps in parsed))


def _parse_sequence(line: str, streams: Sequence[str]) -> tuple[int, tuple[JoinStep, ...]]:
    """Return the head of a join sequence, and its steps."""
    places = {name: place for place, name in enumerate(streams)}
    head, colon, rest = line.partition(":")
    if not colon:
        raise TopologyError(f"plan, {line.strip()!r}: write a sequence as in A: B SP-D, C SM-S1")
    steps = []
    for item in rest.split(","):
        name, algorithm = _words(item)
        if not algorithm:
            raise TopologyError(f"plan, {name!r}: write a stream and its algorithm, B SP-D")
        steps.append(JoinStep(stream=_find(name, places), algorithm=_find_algorithm(algorithm)))
    return _find(head.strip(), places), tuple(steps)


def _parse_tree(text: str, streams: Sequence[str]) -> TwoWayJoin:
    """Read brackets from the innermost outwards; a name stands for each that has been read."""
    operands: dict[str, Tree] = {name: place for place, name in enumerate(streams)}

    def read(brackets: re.Match[str]) -> str:
        first, *others = brackets[1].split(",")
        name, behind = _words(first)
        tree = _find(name, operands)
        if behind:
            raise TopologyError(f"plan, {behind!r}: a tree begins with a stream or a tree alone")
        for item in others:
            name, behind = _words(item)
            right = _find(name, operands)
            up, slash, down = behind.partition("/")
            if not slash:
                raise TopologyError(f"plan, {behind!r}: write a tree's join as in B SP-S/SP-D")
            tree = TwoWayJoin(
                left=tree, right=right, up=_find_algorithm(up), down=_find_algorithm(down)
            )
        name = f"#{len(operands)}"
        operands[name] = tree
        return f"{name} "

    rest = text
    while "(" in rest:
        rest, count = re.subn(r"\(([^()]*)\)", read, rest)
        if not count:
            raise TopologyError(f"plan, {text!r}: the bracket is not closed")
    root = operands.get(rest.strip())
    if root is None:
        raise TopologyError(f"plan, {text!r}: nothing may follow the last bracket")
    if isinstance(root, int):
        raise TopologyError(f"plan, {text!r}: a tree joins two streams or more")
    return root


def _words(item: str) -> tuple[str, str]:
    """Return the first word of an *item*, and what is behind it."""
    name, _, behind = " ".join(item.split()).partition(" ")
    return name, behind


OperandT = TypeVar("OperandT", bound=Tree)


def _find(name: str, operands: Mapping[str, OperandT]) -> OperandT:
    if name not in operands:
        streams = ", ".join(known for known in operands if not known.startswith("#"))
        raise TopologyError(f"plan: there is no stream {name!r}; there are {streams}")
    return operands[name]


def _find_algorithm(name: str) -> OneWayJoin:
    try:
        return OneWayJoin(name.strip().upper())
    except ValueError:
        raise TopologyError(
            f"plan: there is no algorithm {name.strip()!r}; there are {', '.join(OneWayJoin)}"
        ) from None
