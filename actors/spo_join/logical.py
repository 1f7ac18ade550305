"""The logical PE: intersects the predicates' results for one tuple (sections 3.2 and 4.3)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from actors.protocol import Actor, Context, Message
from actors.results import Found, send_answers
from actors.spo_join.predicate import Partial, Rows
from joins.state import Stateful

Complete = tuple[int, list[Rows]]
"""A probing stream, and one result per predicate to intersect; the last names the tuples."""


class Provenance(Stateful, ABC):
    """Stores partial results until there is one of every predicate."""

    state: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *, predicates: int, streams: int, replicas: int) -> None:
        self._predicates = predicates
        self._streams = streams
        self._replicas = replicas

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

    state = ("_table",)

    def __init__(self, *, predicates: int, streams: int, replicas: int) -> None:
        super().__init__(predicates=predicates, streams=streams, replicas=replicas)
        self._table: dict[tuple[int, int], dict[int, Partial]] = {}

    def add(self, partial: Partial) -> list[Complete]:
        """Complete a share when its last partial result is here."""
        self._drop_incomplete(partial)
        key = (partial.number, partial.share)
        waiting = self._table.setdefault(key, {})
        waiting[partial.predicate] = partial
        if len(waiting) < self._predicates:
            return []
        del self._table[key]
        return [
            (stream, [one.parts[stream] for one in waiting.values()])
            for stream in range(self._streams)
        ]

    def _drop_incomplete(self, latest: Partial) -> None:
        """Drop the oldest entries that, as *latest* shows, can never become complete."""
        while self._table:
            (number, share), waiting = next(iter(self._table.items()))
            behind = latest.number - number
            if behind <= 0 or behind % self._replicas or latest.predicate in waiting:
                return
            del self._table[number, share]


class Slots(Provenance):
    """No hash table, the case that the paper shows to be wrong: one slot per predicate.

    A result goes into its predicate's slot, over whatever waits there. When all slots are full
    their contents are combined, whichever tuples they belong to, under the name of the tuple whose
    result came last, and the slots are emptied. Results of the two streams of a join never meet:
    their matches lie in different streams.

    Tuples of one message are taken one after the other. The first may fill the last empty slot; the
    others then find the other predicates' slots empty, and each takes the place of the one before.
    """

    state = ("_slots",)

    def __init__(self, *, predicates: int, streams: int, replicas: int) -> None:
        super().__init__(predicates=predicates, streams=streams, replicas=replicas)
        self._slots: list[dict[int, Rows]] = [{} for _ in range(streams)]

    def add(self, partial: Partial) -> list[Complete]:
        """Complete what the slots contain, tuple by tuple."""
        complete = []
        for stream, rows in enumerate(partial.parts):
            if not len(rows):
                continue
            if self._predicates == 1:
                complete.append((stream, [rows]))
                continue
            slots = self._slots[stream]
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
    predicates, streams
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
        streams: int,
        replicas: int = 1,
        hash_table: bool = True,
        pairs: bool,
    ) -> None:
        kind = HashTable if hash_table else Slots
        self._provenance: Provenance = kind(
            predicates=predicates, streams=streams, replicas=replicas
        )
        self._pairs = pairs

    def receive(self, message: Message, context: Context) -> None:
        """Add one predicate's results, and report what they complete."""
        partial: Partial = message.payload
        found = []
        for stream, rows in self._provenance.add(partial):
            result = type(rows[0]).intersect(rows, enumerate=self._pairs)
            context.charge(result.work)
            found.append(Found(result.of(stream, rows[-1].ids), rows[-1].born_ns, partial.span))
        send_answers(found, context)
