"""What a logical PE knows of whose partial results it has (section 4.3)."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from actors.spo_join.payloads import Partial
from actors.spo_join.rows import Rows
from joins.state import Stateful

Complete = tuple[int, list[Rows]]
"""A probing stream, and one result per predicate to intersect; the last speaks for them."""


class Provenance(Stateful, ABC):
    """Keeps partial results until there is one of every predicate."""

    state = ()

    def __init__(self, *, predicates: int, streams: int, replicas: int) -> None:
        self._predicates = predicates
        self._streams = streams
        self._replicas = replicas

    @abstractmethod
    def take(self, partial: Partial) -> list[Complete]:
        """Take one partial result and return what it completed."""


class HashTable(Provenance):
    """The paper's small hash table: results wait under their tuple's key for their fellows.

    Tuples that left the router in one message and have one logical PE stay together, so the key is
    that message's number and share: with one tuple a message it is the paper's key, the tuple's id.

    Where predicates deal in turns most fellows go elsewhere. Channels are FIFO, so when the same
    replica of a predicate sends something later, what it has not sent of a message before will not
    come; such entries are forgotten, or the table would grow with the stream.
    """

    state = ("_table",)

    def __init__(self, *, predicates: int, streams: int, replicas: int) -> None:
        super().__init__(predicates=predicates, streams=streams, replicas=replicas)
        self._table: dict[tuple[int, int], dict[int, Partial]] = {}

    def take(self, partial: Partial) -> list[Complete]:
        """Complete a share when it is the last."""
        self._forget(partial)
        key = (partial.number, partial.share)
        held = self._table.setdefault(key, {})
        held[partial.predicate] = partial
        if len(held) < self._predicates:
            return []
        del self._table[key]
        return [
            (stream, [one.parts[stream] for one in held.values()])
            for stream in range(self._streams)
        ]

    def _forget(self, latest: Partial) -> None:
        """Forget the oldest entries as far as *latest* tells that they wait in vain."""
        while self._table:
            (number, share), held = next(iter(self._table.items()))
            behind = latest.number - number
            if behind <= 0 or behind % self._replicas or latest.predicate in held:
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

    def take(self, partial: Partial) -> list[Complete]:
        """Complete what the slots hold, tuple by tuple."""
        complete = []
        for stream, rows in enumerate(partial.parts):
            if not len(rows):
                continue
            if self._predicates == 1:
                complete.append((stream, [rows]))
                continue
            slots = self._slots[stream]
            slots.pop(partial.predicate, None)
            slots[partial.predicate] = rows.take(np.array([0]))  # put last: it speaks for them
            if len(slots) == self._predicates:
                complete.append((stream, list(slots.values())))
                slots.clear()
            if len(rows) > 1:
                slots[partial.predicate] = rows.take(np.array([len(rows) - 1]))
        return complete
