"""The logical PE: intersects the predicates' bit arrays of one tuple (sections 3.2 and 4.3)."""

from __future__ import annotations

from actors.protocol import Actor, Context, Message, State
from actors.results import Answers
from actors.spo_join.payloads import BitRows, PartialBits
from actors.state import plain, revive
from joins.bit_array import find_matches, intersect
from joins.matches import Matches


class LogicalPE(Actor):
    """Waits for a tuple's bit arrays from every predicate, ANDs them, and reports its matches.

    The small hash table of section 4.3 keeps what has come until all of it is there. Tuples that
    left the router in one message stay together, so the table's key is that message's number: with
    one tuple a message it is the paper's key, the tuple's id.

    Port: ``sink``.
    """

    def __init__(self, *, predicates: int, pairs: bool) -> None:
        self._predicates = predicates
        self._pairs = pairs
        self._table: dict[int, list[PartialBits]] = {}

    def receive(self, message: Message, context: Context) -> None:
        """Take one predicate's bit arrays; the last one of a message completes it."""
        partial: PartialBits = message.payload
        held = self._table.setdefault(partial.number, [])
        held.append(partial)
        if len(held) < self._predicates:
            return
        del self._table[partial.number]
        found = [
            self._combine([p.parts[stream] for p in held], stream, context)
            for stream in range(len(partial.parts))
        ]
        context.send(
            "sink", Answers(tuple(found), tuple(p.born_ns for p in partial.parts), partial.span)
        )

    def _combine(self, rows: list[BitRows], stream: int, context: Context) -> Matches:
        words, work = intersect([row.words for row in rows])
        context.charge(work)
        found = find_matches(words, base=rows[0].base, enumerate=self._pairs)
        context.charge(found.work)
        return Matches(
            stream=stream,
            probe_id=rows[0].ids,
            count=found.count,
            fingerprint=found.fingerprint,
            match_id=found.match_id,
        )

    def snapshot(self) -> State:
        """Return the hash table."""
        return {"table": plain(self._table)}

    def restore(self, state: State) -> None:
        """Take over a snapshot."""
        self._table = revive(state["table"])
