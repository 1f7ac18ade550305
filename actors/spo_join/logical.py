"""The logical PE: intersects what the predicates found for one tuple (sections 3.2 and 4.3)."""

from __future__ import annotations

from actors.protocol import Actor, Context, Message
from actors.results import Answers
from actors.spo_join.payloads import Partial
from actors.spo_join.provenance import HashTable, Provenance, Slots
from actors.spo_join.rows import Rows
from joins.matches import Matches


class LogicalPE(Actor):
    """Waits for a tuple's results from every predicate, intersects them, and reports its matches.

    What never becomes complete is never reported.

    Port: ``sink``.
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
        """Take one predicate's results, and report what they complete."""
        partial: Partial = message.payload
        complete = self._provenance.take(partial)
        if not complete:
            return
        found = tuple(self._combine(rows, stream, context) for stream, rows in complete)
        born_ns = tuple(rows[-1].born_ns for _, rows in complete)
        context.send("sink", Answers(found, born_ns, partial.span))

    def _combine(self, rows: list[Rows], stream: int, context: Context) -> Matches:
        found = type(rows[0]).intersect(rows, enumerate=self._pairs)
        context.charge(found.work)
        return Matches(
            stream=stream,
            probe_id=rows[-1].ids,
            count=found.count,
            fingerprint=found.fingerprint,
            match_id=found.match_id,
        )
