"""SPO-Join's predicate PEs: the mutable component (sections 3.2 and 4.3).

For every probing tuple a predicate PE finds the stored tuples that satisfy its predicate
(`actors.spo_join.predicate_rows`), splits these partial results among the logical PEs in one of two
ways (`ByHash`, or `InTurns` as in the engine that the paper runs on), and at a merge sends what the
immutable component is built from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from actors.protocol import Actor, Context, Message, Payload
from actors.source import Probes
from actors.spo_join.predicate_rows import ROWS, PredicateRows
from actors.spo_join.router import MergeFlag, Routed
from joins.batch import Schema
from joins.hashing import partition
from joins.indexes.b_plus.b_plus_tree import BPlusTree
from joins.indexes.immutable.order_arrays import offset
from joins.indexes.index import codes_of, ranges_of
from joins.queries.query import JoinQuery, JoinSides
from joins.state import Stateful
from joins.work import Step


class Partitioning(Stateful, ABC):
    """Splits the tuples of a message into shares, and chooses a logical PE for each share.

    Every predicate makes the same shares, so that partial results can wait for each other by share.
    """

    @abstractmethod
    def split(
        self, ids: Sequence[np.ndarray], pes: int, rng: np.random.Generator
    ) -> tuple[list[np.ndarray], Sequence[int]]:
        """Return per stream the share (int64) of each of its tuples, and each share's PE."""


class ByHash(Partitioning):
    """By the tuple's id: all partial results of a tuple meet."""

    state = ()

    def split(
        self, ids: Sequence[np.ndarray], pes: int, rng: np.random.Generator
    ) -> tuple[list[np.ndarray], Sequence[int]]:
        """Send share i to PE i."""
        return [partition(part, pes) for part in ids], range(pes)


class InTurns(Partitioning):
    """Tuple after tuple to the next PE, whatever its id.

    As in the engine that the paper runs on, every sender goes round the PEs in an order of its own,
    drawn when it starts. Partial results of a tuple meet only where the orders of the predicates
    agree: with k PEs, for one tuple in k on average.
    """

    state = ("_turn", "_order")

    def __init__(self) -> None:
        self._turn = 0
        self._order: list[int] = []

    def split(
        self, ids: Sequence[np.ndarray], pes: int, rng: np.random.Generator
    ) -> tuple[list[np.ndarray], Sequence[int]]:
        """Put every tuple whose turn is i into share i, one stream after the other."""
        if not self._order:
            self._order = rng.permutation(pes).tolist()
        shares = []
        for part in ids:
            shares.append((self._turn + np.arange(len(part))) % pes)
            self._turn = (self._turn + len(part)) % pes
        return shares, self._order


PARTITIONINGS: dict[str, type[Partitioning]] = {"hash": ByHash, "round_robin": InTurns}
"""How partial results reach the logical PEs, by name."""


@dataclass(frozen=True, slots=True)
class Partial(Payload):
    """One predicate's results for the tuples that one logical PE is responsible for."""

    number: int
    """The `Routed` message they come from."""
    share: int
    """Which share of that message: the shares of one number are alike in every predicate."""
    predicate: int
    """Position of the predicate in the query."""
    parts: tuple[PredicateRows, ...]
    """One per probing stream."""
    span: tuple[int, int]
    """Of the `Routed` message."""

    bytes_of = ("parts",)
    rows_of = ("parts",)


@dataclass(frozen=True, slots=True)
class SortedField(Payload):
    """One field of one stream's epoch in sorted order, as ids (predicate PE to permutation PE).

    *first* is the position of the epoch's first tuple in its stream, *last* the arrival number of
    its last tuple.
    """

    epoch: int
    stream: int
    predicate: int
    first: int
    last: int
    ids: np.ndarray

    bytes_of = ("first", "last", "ids")
    rows_of = ("ids",)


@dataclass(frozen=True, slots=True)
class Offsets(Payload):
    """One predicate's sorted keys of an epoch, and where one stream's fall among the other's."""

    epoch: int
    predicate: int
    """What they belong to."""
    keys: tuple[np.ndarray, ...]
    """Per stored stream its sorted keys."""
    offsets: np.ndarray | None
    """Algorithm 3's array: for every key of stream 0 its place among the keys of stream 1; None in
    a self join."""

    bytes_of = ("keys", "offsets")
    rows_of = ("keys",)


@dataclass(kw_only=True, eq=False)
class PredicatePE(Actor):
    """Indexes each stream's field of one predicate in a B+-tree, and probes the other's.

    Within a message all tuples are inserted before any is probed, and what a probe finds is cut to
    the window that the router gave it, so a tuple sees its predecessors and nothing else.

    Several replicas may share a predicate: each indexes every tuple, and they take turns in
    probing, by the number of the router's message. Replica 0 sends the arrays of a merge.

    Ports: ``logical`` (by share), ``permutation`` (by epoch and stream), ``po_join`` (by epoch,
    round robin).
    """

    query: JoinQuery
    schemas: tuple[Schema, ...]
    predicate: int
    """The join, and the position of this PE's predicate in it."""
    replica: int
    replicas: int
    """Which of the PEs that share the predicate this is."""
    mutable: str
    """Form of its results: a key of `ROWS`."""
    partitioning: str
    """How they are split among the logical PEs: a key of `PARTITIONINGS`."""

    state = ("_partitioning", "_trees", "_base")

    def __post_init__(self) -> None:
        self._rows = ROWS[self.mutable]
        self._partitioning = PARTITIONINGS[self.partitioning]()
        self._sides = JoinSides(self.query, self.schemas, [self.predicate])
        self._trees = [BPlusTree() for _ in self._sides.storing]
        self._base = [0] * len(self._trees)

    def receive(self, message: Message, context: Context) -> None:
        """Store and probe tuples, or merge at a flag."""
        payload = message.payload
        if isinstance(payload, MergeFlag):
            self._merge(payload, context)
        else:
            self._store(payload, context)
            if payload.number % self.replicas == self.replica:
                self._probe(payload, context)

    def _store(self, routed: Routed, context: Context) -> None:
        for stream, part in enumerate(routed.parts):
            (keys,) = codes_of(self._sides.storing[stream], part.batch)
            tree = self._trees[stream]
            work = tree.insert(keys, part.batch.id)
            context.charge(work, Step("predicate_tree.insert", len(part), len(tree)))

    def _probe(self, routed: Routed, context: Context) -> None:
        results = [self._find(stream, part, context) for stream, part in enumerate(routed.parts)]
        shares, receivers = self._partitioning.split(
            [part.batch.id for part in routed.parts], len(context.peers("logical")), context.rng
        )
        for share in np.unique(np.concatenate(shares)).tolist():
            places = [np.flatnonzero(shared == share) for shared in shares]
            parts = tuple(rows.take(at) for rows, at in zip(results, places, strict=True))
            partial = Partial(routed.number, share, self.predicate, parts, routed.span)
            context.send("logical", partial, to=receivers[share])

    def _find(self, stream: int, part: Probes, context: Context) -> PredicateRows:
        """Return a row for every probe: the stored tuples it matches, inside its window."""
        conditions, stored = self._sides.probing[stream], self._sides.stored_stream[stream]
        ranges = ranges_of(conditions, part.batch, part.start, part.stop)
        tree = self._trees[stored]
        rows, work = self._rows.probe(tree, self._base[stored], part, ranges)
        context.charge(work, Step(self._rows.probing, len(part), len(tree)))
        return rows

    def _merge(self, flag: MergeFlag, context: Context) -> None:
        """Send the epoch's sorted ids and keys on, and start the next epoch empty."""
        if self.replica == 0:
            self._send_arrays(flag, context)
        for stream, tree in enumerate(self._trees):
            tree.clear()
            self._base[stream] = flag.ends[stream]

    def _send_arrays(self, flag: MergeFlag, context: Context) -> None:
        """Send what the immutable component is built from.

        The leaves have each field in order already; what is left to compute here is Algorithm 3.
        """
        keys = []
        pes = len(context.peers("permutation"))
        for stream, tree in enumerate(self._trees):
            sorted_keys, ids, work = tree.scan()
            context.charge(work, Step("predicate_tree.scan", len(ids), len(ids)))
            keys.append(sorted_keys)
            first = self._base[stream]
            sorted_field = SortedField(flag.epoch, stream, self.predicate, first, flag.last, ids)
            context.send(
                "permutation", sorted_field, to=(flag.epoch * len(self._trees) + stream) % pes
            )
        offsets = None
        if len(keys) == 2:
            offsets, work = offset(keys[0], keys[1])
            tuples = len(keys[0]) + len(keys[1])
            context.charge(work, Step("order_arrays.offset", tuples, tuples))
        context.send(
            "po_join",
            Offsets(flag.epoch, self.predicate, tuple(keys), offsets),
            to=flag.epoch % len(context.peers("po_join")),
        )
