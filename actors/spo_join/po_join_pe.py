"""SPO-Join's immutable component: PO-Join PEs (sections 3.4, 4.2 and 4.3).

Each has a list of sealed epochs, probed by every tuple. Permutation PEs give it the arrays that an
epoch is sealed from (`actors.spo_join.permutation_pe`); how it learns what has left the window is
in `actors.spo_join.window_state`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from actors.protocol import Actor, Context, Message
from actors.results import Found, send_answers
from actors.source import Probes
from actors.spo_join.permutation_pe import Permutations
from actors.spo_join.predicate_pe import Offsets
from actors.spo_join.router import MergeFlag, Routed
from actors.spo_join.window_state import WindowState
from joins.batch import Schema
from joins.indexes.immutable.segment import ImmutableSegment, probe_all
from joins.indexes.index import ranges_of
from joins.indexes.range_search import Brackets
from joins.indexes.structures import SEGMENTS
from joins.matches import ProbeResult
from joins.queries.query import JoinQuery, JoinSides
from joins.state import storable
from joins.work import Step, Work, structure_name


@storable
@dataclass(slots=True)
class Sealed:
    """One epoch's immutable structure: a segment per stream and the offsets between them."""

    epoch: int
    segments: tuple[ImmutableSegment, ...]
    offsets: tuple[np.ndarray, ...] | None

    @property
    def brackets(self) -> Brackets | None:
        """Stream 0's sorted keys and where they fall among stream 1's; None in a self join."""
        return None if self.offsets is None else Brackets(self.segments[0].keys, self.offsets)

    def stop(self, stream: int) -> int:
        """Return the position after the epoch's last of *stream*."""
        return self.segments[stream].first + len(self.segments[stream])

    def is_overdue(self, overdue: Sequence[int]) -> bool:
        """Return whether all its tuples are below the positions *overdue* of their streams."""
        return all(
            not len(segment) or self.stop(stream) <= overdue[stream]
            for stream, segment in enumerate(self.segments)
        )


@storable
@dataclass(slots=True)
class Assembly:
    """A record of the assembling table: an epoch's arrays as they come in (section 4.3)."""

    offsets: dict[int, Offsets] = field(default_factory=dict)
    permutations: dict[int, Permutations] = field(default_factory=dict)

    def add(self, arrays: Offsets | Permutations) -> None:
        """Add one array."""
        if isinstance(arrays, Offsets):
            self.offsets[arrays.predicate] = arrays
        else:
            self.permutations[arrays.stream] = arrays

    def is_complete(self, *, predicates: int, streams: int) -> bool:
        """Return whether every array is here."""
        return len(self.offsets) == predicates and len(self.permutations) == streams

    def seal(self, epoch: int, structure: type[ImmutableSegment]) -> Sealed:
        """Build *structure* for every stream."""
        by_predicate = [arrays for _, arrays in sorted(self.offsets.items())]
        segments = tuple(
            structure(
                [arrays.keys[stream] for arrays in by_predicate],
                permutations.lead_ids,
                permutations.arrays,
                first=permutations.first,
            )
            for stream, permutations in sorted(self.permutations.items())
        )
        offsets = [arrays.offsets for arrays in by_predicate]
        known = tuple(array for array in offsets if array is not None)
        return Sealed(epoch, segments, known if len(known) == len(offsets) else None)


@dataclass(kw_only=True, eq=False)
class PoJoinPE(Actor):
    """Seals the epochs that fall to it into segments, and probes them with every tuple.

    From the flag of an epoch until its arrays have come, tuples are queued for it: they probe the
    segments that are there at once, and the new one when it is built.

    A segment is probed until it has expired, as the window state sees it, and dropped when that is
    true of its epoch in every stream. While one stream is silent, the tuples that would show it do
    not come: epochs that have tuples of the other stream alone are then dropped when the router
    reports them overdue.

    Ports: ``sink``, and what its window state asks for.
    """

    query: JoinQuery
    schemas: tuple[Schema, ...]
    """The join."""
    window: Callable[[], WindowState]
    """Makes the PE's window state."""
    immutable: str | type[ImmutableSegment]
    """What epochs are sealed into: a name in `joins.indexes.structures.SEGMENTS`, or a class."""
    threads: int
    """Threads over the list of segments."""
    pairs: bool
    """Whether to report match ids."""

    state = ("_sealed", "_assembling", "_queues", "_window", "_overdue")

    def __post_init__(self) -> None:
        self._sides = JoinSides(self.query, self.schemas)
        self._window = self.window()
        self._segment = (
            self.immutable if isinstance(self.immutable, type) else SEGMENTS[self.immutable]
        )
        self._structure = structure_name(self.immutable)
        self._sealed: list[Sealed] = []
        self._assembling: dict[int, Assembly] = {}
        self._queues: dict[int, list[Routed]] = {}
        self._overdue = (0,) * len(self.query.streams)

    def receive(self, message: Message, context: Context) -> None:
        """Probe tuples, start a queue at a flag, take an array of an epoch, or a count."""
        payload = message.payload
        if isinstance(payload, Routed):
            self._evaluate(payload, context)
        elif isinstance(payload, MergeFlag):
            self._queues[payload.epoch] = []
            self._seal_if_complete(payload.epoch, context)
        elif isinstance(payload, Offsets | Permutations):
            if isinstance(payload, Permutations):
                self._window.on_permutations(payload)
            self._assembling.setdefault(payload.epoch, Assembly()).add(payload)
            self._seal_if_complete(payload.epoch, context)
        else:
            self._window.on_count(payload)
        self._drop_expired()

    def _evaluate(self, routed: Routed, context: Context) -> None:
        self._window.before_evaluation(context)
        self._probe([routed], self._alive(), context)
        for queue in self._queues.values():
            queue.append(routed)
        self._window.after_evaluation(routed, context)
        self._overdue = routed.overdue or self._overdue

    def _seal_if_complete(self, epoch: int, context: Context) -> None:
        """Build the epoch's structure once all arrays and the flag are here; drain its queue."""
        assembly = self._assembling.get(epoch)
        if (
            assembly is None
            or epoch not in self._queues
            or not assembly.is_complete(
                predicates=len(self._sides.probing[0]), streams=len(self._sides.probing)
            )
        ):
            return
        del self._assembling[epoch]
        sealed = assembly.seal(epoch, self._segment)
        for segment in sealed.segments:
            step = Step(f"{self._structure}.seal", len(segment), len(segment))
            context.charge(segment.work, step)
        self._sealed.append(sealed)
        # Queued tuples saw the epoch whole, whatever has expired since. Where slides are short and
        # arrays take long to come, most came too late to see any of it.
        stops = [sealed.stop(stored) for stored in self._sides.stored_stream]
        queue = [
            routed
            for routed in self._queues.pop(epoch)
            if any(map(self._window.may_see, routed.parts, stops))
        ]
        if queue:
            self._probe(queue, [[sealed]] * len(self._sides.probing), context)

    def _probe(
        self, queue: Sequence[Routed], structures: list[list[Sealed]], context: Context
    ) -> None:
        """Probe each stored stream's *structures*; report the matches of each message in *queue*.

        All of them probe at once: where epochs are short, messages have few tuples each, and a call
        costs more than its matches.
        """
        answers: list[list[Found]] = [[] for _ in queue]
        for stream, stored in enumerate(self._sides.stored_stream):
            parts = [routed.parts[stream] for routed in queue]
            rows = [len(part) for part in parts]
            if not any(rows) or not structures[stored]:
                continue
            part = Probes.concat(parts)
            results = self._find(structures[stored], part, stream)
            size = sum(len(sealed.segments[stored]) for sealed in structures[stored])
            step = Step(f"{self._structure}.probe", len(part), size)
            for work in busiest([one.work for one in results], self.threads):
                context.charge(work, step)
            matches = ProbeResult.sum(results).of(stream, part.batch.id)
            for i, of_part in enumerate(matches.split(rows)):
                answers[i].append(Found(of_part, parts[i].born_ns, queue[i].span))
        for answer in answers:
            send_answers(answer, context)

    def _find(
        self, structures: Sequence[Sealed], part: Probes, stream: int
    ) -> Sequence[ProbeResult]:
        """Probe the segments that *stream* probes in *structures* (at least one) with *part*."""
        stored, conditions = self._sides.stored_stream[stream], self._sides.probing[stream]
        return probe_all(
            [sealed.segments[stored] for sealed in structures],
            ranges_of(conditions, part.batch, *self._window.bounds(part)),
            brackets=[sealed.brackets if stream == 0 else None for sealed in structures],
            threads=self.threads,
            enumerate=self.pairs,
        )

    def _alive(self) -> list[list[Sealed]]:
        """Return per stored stream the epochs that have not expired."""
        return [
            [
                sealed
                for sealed in self._sealed
                if not self._window.is_expired(stream, sealed.epoch, sealed.stop(stream))
            ]
            for stream in range(len(self._sides.probing))
        ]

    def _drop_expired(self) -> None:
        alive = {sealed.epoch for stream in self._alive() for sealed in stream}
        self._sealed = [
            sealed
            for sealed in self._sealed
            if sealed.epoch in alive and not sealed.is_overdue(self._overdue)
        ]


def busiest(works: Sequence[Work], threads: int) -> list[Work]:
    """Return which *works* the busiest thread does when each takes the next one as it is free.

    In Algorithm 4 threads take the segments of the list one by one, under a lock. The result is the
    time until the last thread is done, on a machine with a core for each; which thread is free
    first follows from counted operations, all taken as equally long.
    """
    shares: list[list[Work]] = [[] for _ in range(min(threads, len(works)))]
    spent = [0] * len(shares)
    for work in works:
        free = spent.index(min(spent))
        shares[free].append(work)
        spent[free] += sum(work)
    return shares[spent.index(max(spent))]
