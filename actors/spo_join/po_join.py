"""The PO-Join PE: a list of sealed segments, probed by every tuple (sections 3.4, 4.2 and 4.3)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from actors.protocol import Actor, Context, Message, State
from actors.results import Answers
from actors.spo_join.payloads import MergeFlag, Offsets, Permutations, Probes, Routed
from actors.state import plain, revive
from joins.batch import Schema
from joins.indexes.po_join import PoJoinSegment
from joins.indexes.search import Brackets
from joins.matches import Matches
from joins.query import JoinQuery


@dataclass(slots=True)
class _Sealed:
    """One epoch's immutable structure: a segment per stream and the offsets between them."""

    epoch: int
    segments: tuple[PoJoinSegment, ...]
    offsets: tuple[np.ndarray, ...] | None


@dataclass(slots=True)
class _Assembly:
    """A record of the assembling table: an epoch's arrays as they come in (section 4.3)."""

    offsets: dict[int, Offsets] = field(default_factory=dict)
    permutations: dict[int, Permutations] = field(default_factory=dict)


class PoJoinPE(Actor):
    """Holds the segments of the epochs that fall to it, and probes them with every tuple.

    From the flag of an epoch until its arrays have come, tuples are queued for it: they probe the
    segments that are there at once, and the new one when it is built.

    A probe carries the positions it may see, so a segment is probed only where it is inside the
    window; segments that no further probe can see are dropped whole.

    Port: ``sink``.
    """

    def __init__(self, *, query: JoinQuery, schemas: tuple[Schema, ...], pairs: bool) -> None:
        streams = range(len(query.streams))
        self._conditions = [query.conditions(stream, schemas) for stream in streams]
        self._stored_stream = [query.stored_stream(stream) for stream in streams]
        self._predicates = len(self._conditions[0])
        self._pairs = pairs
        self._sealed: list[_Sealed] = []
        self._assembling: dict[int, _Assembly] = {}
        self._queues: dict[int, list[Routed]] = {}
        self._horizon = [0] * len(streams)

    def receive(self, message: Message, context: Context) -> None:
        """Probe tuples, start a queue at a flag, or take an array of an epoch."""
        payload = message.payload
        if isinstance(payload, Routed):
            self._probe(payload, self._sealed, context)
            for queue in self._queues.values():
                queue.append(payload)
            self._expire(payload)
        elif isinstance(payload, MergeFlag):
            self._queues[payload.epoch] = []
            self._seal_if_complete(payload.epoch, context)
        else:
            assembly = self._assembling.setdefault(payload.epoch, _Assembly())
            if isinstance(payload, Offsets):
                assembly.offsets[payload.predicate] = payload
            else:
                assembly.permutations[payload.stream] = payload
            self._seal_if_complete(payload.epoch, context)

    def _seal_if_complete(self, epoch: int, context: Context) -> None:
        """Build the epoch's structure once all arrays and the flag are here; drain its queue."""
        assembly = self._assembling.get(epoch)
        if (
            assembly is None
            or epoch not in self._queues
            or len(assembly.offsets) < self._predicates
            or len(assembly.permutations) < len(self._conditions)
        ):
            return
        del self._assembling[epoch]
        sealed = self._seal(epoch, assembly, context)
        self._sealed.append(sealed)
        for routed in self._queues.pop(epoch):
            self._probe(routed, [sealed], context)

    def _seal(self, epoch: int, assembly: _Assembly, context: Context) -> _Sealed:
        predicates = range(self._predicates)
        segments = []
        for stream, permutations in sorted(assembly.permutations.items()):
            segment = PoJoinSegment(
                [assembly.offsets[p].keys[stream] for p in predicates],
                permutations.lead_ids,
                permutations.arrays,
                first=permutations.first,
            )
            context.charge(segment.work)
            segments.append(segment)
        offsets = [assembly.offsets[p].offsets for p in predicates]
        known = tuple(array for array in offsets if array is not None)
        return _Sealed(epoch, tuple(segments), known if len(known) == len(offsets) else None)

    def _probe(self, routed: Routed, structures: list[_Sealed], context: Context) -> None:
        if not structures:
            return
        found = [
            self._probe_stream(stream, part, structures, context)
            for stream, part in enumerate(routed.parts)
        ]
        context.send(
            "sink", Answers(tuple(found), tuple(part.born_ns for part in routed.parts), routed.span)
        )

    def _probe_stream(
        self, stream: int, part: Probes, structures: list[_Sealed], context: Context
    ) -> Matches:
        stored = self._stored_stream[stream]
        conditions = self._conditions[stream]
        low, high = zip(
            *(c.bounds(part.batch.fields[c.probe_field]) for c in conditions), strict=True
        )
        partial = []
        for sealed in structures:
            brackets = None
            if sealed.offsets is not None and stream == 0:
                brackets = Brackets(sealed.segments[0].keys, sealed.offsets)
            found = sealed.segments[stored].probe(
                low,
                high,
                negated=[c.negated for c in conditions],
                start=part.start,
                stop=part.stop,
                brackets=brackets,
                enumerate=self._pairs,
            )
            context.charge(found.work)
            partial.append(
                Matches(
                    stream=stream,
                    probe_id=part.batch.id,
                    count=found.count,
                    fingerprint=found.fingerprint,
                    match_id=found.match_id,
                )
            )
        return Matches.sum(partial)

    def _expire(self, routed: Routed) -> None:
        """Drop what no later probe can see: windows only move forward."""
        for stream, part in enumerate(routed.parts):
            if len(part):
                self._horizon[self._stored_stream[stream]] = int(part.start[-1])
        self._sealed = [
            sealed
            for sealed in self._sealed
            if any(
                segment.first + len(segment) > horizon
                for segment, horizon in zip(sealed.segments, self._horizon, strict=True)
            )
        ]

    def snapshot(self) -> State:
        """Return the segments, the assembling table, the queues and the horizon."""
        return plain(
            {
                "sealed": self._sealed,
                "assembling": self._assembling,
                "queues": self._queues,
                "horizon": self._horizon,
            }
        )

    def restore(self, state: State) -> None:
        """Take over a snapshot."""
        revived = revive(state)
        self._sealed = revived["sealed"]
        self._assembling = revived["assembling"]
        self._queues = revived["queues"]
        self._horizon = revived["horizon"]
