"""SPO-Join's mutable component: the predicate PEs and the logical PEs (sections 3.2 and 4.3).

For every probing tuple a predicate PE finds the stored tuples that satisfy its predicate, in one of
two forms (`BitRows`, the paper's bit arrays, or `IdRows`), splits these partial results among the
logical PEs in one of two ways (`ByHash`, or `InTurns` as in the engine that the paper runs on), and
at a merge sends what the immutable component is built from. A logical PE intersects the predicates'
results for one tuple.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from actors.protocol import Actor, Context, Message, Payload
from actors.results import Found, send_answers
from actors.source import Probes
from actors.spo_join.router import MergeFlag, Routed
from joins.batch import Schema
from joins.bit_array import intersect, keep_window, read_matches
from joins.hashing import partition
from joins.id_sets import intersect_ids
from joins.indexes.b_plus.b_plus_tree import BPlusTree
from joins.indexes.immutable.order_arrays import offset
from joins.indexes.index import Ranges, codes_of, ranges_of
from joins.matches import ProbeResult
from joins.queries.query import JoinQuery, JoinSides
from joins.state import Stateful
from joins.work import Step, Work


@dataclass(frozen=True, slots=True)
class PredicateRows(Payload, ABC):
    """The results of probing with one predicate, a row per probing tuple of one stream.

    Attributes
    ----------
    ids, born_ns
        int64, the probing tuples.
    """

    ids: np.ndarray
    born_ns: np.ndarray

    frame_bytes = 0
    probing: ClassVar[str]
    """The name of a probe's `Step`."""

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    @abstractmethod
    def probe(cls, tree: BPlusTree, base: int, part: Probes, ranges: Ranges) -> tuple[Self, Work]:
        """Probe *tree*, whose tuples are those from position *base* on, for *ranges* of *part*."""

    @abstractmethod
    def take(self, rows: np.ndarray) -> Self:
        """Return some *rows* (int64 places)."""

    @classmethod
    @abstractmethod
    def intersect(cls, parts: Sequence[Any], *, enumerate: bool) -> ProbeResult:
        """Find row by row what all *parts* (one per predicate) have in common."""

    @property
    @abstractmethod
    def intersecting(self) -> Step:
        """The step of intersecting these rows with other predicates'."""


@dataclass(frozen=True, slots=True)
class BitRows(PredicateRows):
    """Bit arrays: the identifiers of the mutable tuples are the places in them (Figure 4).

    Attributes
    ----------
    base
        Position in the probed stream of bit 0.
    words
        uint64, shape (probes, words).
    """

    base: int
    words: np.ndarray

    bytes_of = ("ids", "words")
    probing = "predicate_tree.mark"

    @classmethod
    def probe(cls, tree: BPlusTree, base: int, part: Probes, ranges: Ranges) -> tuple[Self, Work]:
        """Mark the matches, and clear the marks outside the windows."""
        (low,), (high,), (negated,), start, stop = ranges
        words, marking = tree.mark(low, high, negated=negated, base=base, bits=len(tree))
        seen, clearing = keep_window(words, start, stop, base=base)
        return cls(part.batch.id, part.born_ns, base, seen), marking + clearing

    def take(self, rows: np.ndarray) -> Self:
        """Return some *rows* (int64 places)."""
        return type(self)(self.ids[rows], self.born_ns[rows], self.base, self.words[rows])

    @classmethod
    def intersect(cls, parts: Sequence[BitRows], *, enumerate: bool) -> ProbeResult:
        """AND the bit arrays.

        Those of one tuple are alike. Those of different tuples, which meet where there is no hash
        table, are compared as far as the shorter goes; of different epochs they have nothing in
        common.
        """
        same_epoch = len({part.base for part in parts}) == 1
        width = min(part.words.shape[1] for part in parts) if same_epoch else 0
        words, work = intersect([part.words[:, :width] for part in parts])
        result = read_matches(words, base=parts[0].base, enumerate=enumerate)
        return replace(result, work=work + result.work)

    @property
    def intersecting(self) -> Step:
        """The step, whose size is the length of the bit arrays."""
        return Step("bit_rows.intersect", len(self), 64 * self.words.shape[1])


@dataclass(frozen=True, slots=True)
class IdRows(PredicateRows):
    """Lists of the matching tuples' ids, to be intersected by hashing (section 5.4).

    Attributes
    ----------
    count
        int64, matches of each probe.
    match_id
        int64, the matches of the first probe, then of the second, ...
    """

    count: np.ndarray
    match_id: np.ndarray

    bytes_of = ("ids", "count", "match_id")
    probing = "predicate_tree.list"

    @classmethod
    def probe(cls, tree: BPlusTree, base: int, part: Probes, ranges: Ranges) -> tuple[Self, Work]:
        """List the matches in the windows."""
        result = tree.probe(ranges, enumerate=True)
        assert result.match_id is not None
        copied = Work(bytes_copied=result.match_id.nbytes)
        rows = cls(part.batch.id, part.born_ns, result.count, result.match_id)
        return rows, result.work + copied

    def take(self, rows: np.ndarray) -> Self:
        """Return some *rows* (int64 places)."""
        count = self.count[rows]
        # Each id's place: where its row begins in the list, and how far it is into the row.
        begins = (np.cumsum(self.count) - self.count)[rows]
        places = np.arange(count.sum()) + np.repeat(begins - (np.cumsum(count) - count), count)
        return type(self)(self.ids[rows], self.born_ns[rows], count, self.match_id[places])

    @classmethod
    def intersect(cls, parts: Sequence[IdRows], *, enumerate: bool) -> ProbeResult:
        """Intersect the lists through a hash table."""
        return intersect_ids(
            [part.count for part in parts], [part.match_id for part in parts], enumerate=enumerate
        )

    @property
    def intersecting(self) -> Step:
        """The step, whose size is how many ids a row has on average."""
        return Step("id_rows.intersect", len(self), len(self.match_id) // max(len(self), 1))


ROWS: dict[str, type[PredicateRows]] = {"bits": BitRows, "hash": IdRows}
"""Form of the mutable component's results by name."""


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
    """One predicate's results for the tuples that one logical PE is responsible for.

    Attributes
    ----------
    number
        The `Routed` message they come from.
    share
        Which share of that message: the shares of one number are alike in every predicate.
    predicate
        Position of the predicate in the query.
    parts
        One per probing stream.
    span
        Of the `Routed` message.
    """

    number: int
    share: int
    predicate: int
    parts: tuple[PredicateRows, ...]
    span: tuple[int, int]

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
    """One predicate's sorted keys of an epoch, and where one stream's fall among the other's.

    Attributes
    ----------
    epoch, predicate
        What they belong to.
    keys
        Per stored stream its sorted keys.
    offsets
        Algorithm 3's array: for every key of stream 0 its place among the keys of stream 1; None in
        a self join.
    """

    epoch: int
    predicate: int
    keys: tuple[np.ndarray, ...]
    offsets: np.ndarray | None

    bytes_of = ("keys", "offsets")
    rows_of = ("keys",)


class PredicatePE(Actor):
    """Indexes each stream's field of one predicate in a B+-tree, and probes the other's.

    Within a message all tuples are inserted before any is probed, and what a probe finds is cut to
    the window that the router gave it, so a tuple sees its predecessors and nothing else.

    Several replicas may share a predicate: each indexes every tuple, and they take turns in
    probing, by the number of the router's message. Replica 0 sends the arrays of a merge.

    Ports: ``logical`` (by share), ``permutation`` (by epoch and stream), ``po_join`` (by epoch,
    round robin).

    Parameters
    ----------
    query, schemas, predicate
        The join, and the position of this PE's predicate in it.
    replica, replicas
        Which of the PEs that share the predicate this is.
    mutable
        Form of its results: a key of `ROWS`.
    partitioning
        How they are split among the logical PEs: a key of `PARTITIONINGS`.
    """

    state = ("_partitioning", "_trees", "_base")

    def __init__(
        self,
        *,
        query: JoinQuery,
        schemas: tuple[Schema, ...],
        predicate: int,
        replica: int,
        replicas: int,
        mutable: str,
        partitioning: str,
    ) -> None:
        self._predicate = predicate
        self._replica = replica
        self._replicas = replicas
        self._rows = ROWS[mutable]
        self._partitioning = PARTITIONINGS[partitioning]()
        self._sides = JoinSides(query, schemas, [predicate])
        self._trees = [BPlusTree() for _ in self._sides.storing]
        self._base = [0] * len(self._trees)

    def receive(self, message: Message, context: Context) -> None:
        """Store and probe tuples, or merge at a flag."""
        payload = message.payload
        if isinstance(payload, MergeFlag):
            self._merge(payload, context)
        else:
            self._store(payload, context)
            if payload.number % self._replicas == self._replica:
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
            partial = Partial(routed.number, share, self._predicate, parts, routed.span)
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
        if self._replica == 0:
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
            sorted_field = SortedField(flag.epoch, stream, self._predicate, first, flag.last, ids)
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
            Offsets(flag.epoch, self._predicate, tuple(keys), offsets),
            to=flag.epoch % len(context.peers("po_join")),
        )


Complete = tuple[int, Sequence[PredicateRows]]
"""A probing stream, and one result per predicate to intersect; the last names the tuples."""


class Provenance(Stateful, ABC):
    """Stores partial results, indexed by key, until there is one of every predicate."""

    state = ("_waiting",)

    def __init__(self, *, predicates: int, replicas: int) -> None:
        self._predicates = predicates
        self._replicas = replicas
        self._waiting: dict[Any, dict[int, Any]] = {}

    @abstractmethod
    def add(self, partial: Partial) -> list[Complete]:
        """Add one partial result and return what it completed."""


class HashTable(Provenance):
    """The paper's small hash table: partial results of a tuple wait under its key for the others.

    Tuples that left the router in one message and have one logical PE stay together, so the key is
    that message's number and share: with one tuple a message it is the paper's key, the tuple's id.

    Where predicates partition round robin, most of the others go elsewhere. Channels are FIFO, so
    when the same replica of a predicate sends something later, what it has not sent of a message
    before will not come; such entries are dropped, or the table would grow with the stream.
    """

    def add(self, partial: Partial) -> list[Complete]:
        """Complete a share when its last partial result is here."""
        self._drop_incomplete(partial)
        key = (partial.number, partial.share)
        waiting = self._waiting.setdefault(key, {})
        waiting[partial.predicate] = partial.parts
        if len(waiting) < self._predicates:
            return []
        del self._waiting[key]
        return list(enumerate(zip(*waiting.values(), strict=True)))

    def _drop_incomplete(self, latest: Partial) -> None:
        """Drop the oldest entries that, as *latest* shows, can never become complete."""
        while self._waiting:
            (number, share), waiting = next(iter(self._waiting.items()))
            behind = latest.number - number
            if behind <= 0 or behind % self._replicas or latest.predicate in waiting:
                return
            del self._waiting[number, share]


class Slots(Provenance):
    """No hash table, the case that the paper shows to be wrong: one slot per predicate.

    A result goes into its predicate's slot, over whatever waits there. When all slots are full
    their contents are combined, whichever tuples they belong to, under the name of the tuple whose
    result came last, and the slots are emptied. Results of the two streams of a join never meet:
    their matches lie in different streams.

    Tuples of one message are taken one after the other. The first may fill the last empty slot; the
    others then find the other predicates' slots empty, and each takes the place of the one before.
    """

    def add(self, partial: Partial) -> list[Complete]:
        """Add partial results; return those now complete."""
        complete: list[Complete] = []
        for stream, rows in enumerate(partial.parts):
            if not len(rows):
                continue
            if self._predicates == 1:
                complete.append((stream, [rows]))
                continue
            slots = self._waiting.setdefault(stream, {})
            slots.pop(partial.predicate, None)
            slots[partial.predicate] = rows.take(np.array([0]))  # put last: it names the tuple
            if len(slots) == self._predicates:
                complete.append((stream, list(slots.values())))
                slots.clear()
            if len(rows) > 1:
                slots[partial.predicate] = rows.take(np.array([len(rows) - 1]))
        return complete


class LogicalPE(Actor):
    """Waits for a tuple's results from every predicate, intersects them, and reports its matches.

    What never becomes complete is never reported.

    Port: ``sink``.

    Parameters
    ----------
    predicates
        Of the query.
    replicas
        PEs that share each predicate.
    hash_table
        Whether partial results wait by tuple (`HashTable`), or one per predicate (`Slots`).
    pairs
        Whether to report match ids.
    """

    state = ("_provenance",)

    def __init__(
        self,
        *,
        predicates: int,
        replicas: int,
        hash_table: bool,
        pairs: bool,
    ) -> None:
        kind = HashTable if hash_table else Slots
        self._provenance: Provenance = kind(predicates=predicates, replicas=replicas)
        self._pairs = pairs

    def receive(self, message: Message, context: Context) -> None:
        """Add one predicate's results, and report what they complete."""
        partial: Partial = message.payload
        found = []
        for stream, rows in self._provenance.add(partial):
            result = type(rows[0]).intersect(rows, enumerate=self._pairs)
            context.charge(result.work, rows[0].intersecting)
            found.append(Found(result.of(stream, rows[-1].ids), rows[-1].born_ns, partial.span))
        send_answers(found, context)
