"""SPO-Join's logical PEs: they combine the predicates' results for one tuple (section 3.2)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from actors.protocol import Actor, Context, Message
from actors.results import Found, send_answers
from actors.spo_join.predicate_pe import Partial
from actors.spo_join.predicate_rows import PredicateRows
from joins.state import Stateful

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


@dataclass(kw_only=True, eq=False)
class LogicalPE(Actor):
    """Waits for a tuple's results from every predicate, intersects them, and reports its matches.

    What never becomes complete is never reported.

    Port: ``sink``.
    """

    predicates: int
    """Of the query."""
    replicas: int
    """PEs that share each predicate."""
    hash_table: bool
    """Whether partial results wait by tuple (`HashTable`), or one per predicate (`Slots`)."""
    pairs: bool
    """Whether to report match ids."""

    state = ("_provenance",)

    def __post_init__(self) -> None:
        kind = HashTable if self.hash_table else Slots
        self._provenance: Provenance = kind(predicates=self.predicates, replicas=self.replicas)

    def receive(self, message: Message, context: Context) -> None:
        """Add one predicate's results, and report what they complete."""
        partial: Partial = message.payload
        found = []
        for stream, rows in self._provenance.add(partial):
            result = type(rows[0]).intersect(rows, enumerate=self.pairs)
            context.charge(result.work, rows[0].intersecting)
            found.append(Found(result.of(stream, rows[-1].ids), rows[-1].born_ns, partial.span))
        send_answers(found, context)
