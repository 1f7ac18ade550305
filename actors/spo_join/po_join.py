"""The PO-Join PE: a list of sealed segments, probed by every tuple (sections 3.4, 4.2 and 4.3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from actors.probes import Probes
from actors.protocol import Actor, Context, Message
from actors.results import Answers
from actors.spo_join.immutable import Assembly, Sealed, probe_sealed
from actors.spo_join.payloads import (
    MergedCount,
    MergeFlag,
    Offsets,
    Permutations,
    Routed,
    WindowCount,
)
from actors.spo_join.windows.state import WindowState
from joins.batch import Schema
from joins.matches import Matches
from joins.queries.query import JoinQuery


class PoJoinPE(Actor):
    """Holds the segments of the epochs that fall to it, and probes them with every tuple.

    From the flag of an epoch until its arrays have come, tuples are queued for it: they probe the
    segments that are there at once, and the new one when it is built.

    A segment is probed until its window state says that it has expired, and dropped when that is
    true of its epoch in every stream.

    Ports: ``sink``, and what its window state asks for.

    Parameters
    ----------
    query, schemas
        The join.
    window
        Makes the PE's window state.
    immutable
        What epochs are sealed into: a key of `joins.indexes.immutable.segments.SEGMENTS`.
    threads
        Threads over the list of segments.
    pairs
        Whether to report match ids.
    """

    state = ("_sealed", "_assembling", "_queues", "_window")

    def __init__(
        self,
        *,
        query: JoinQuery,
        schemas: tuple[Schema, ...],
        window: Callable[[], WindowState],
        immutable: str = "po_join",
        threads: int = 1,
        pairs: bool,
    ) -> None:
        streams = range(len(query.streams))
        self._conditions = [query.conditions(stream, schemas) for stream in streams]
        self._stored_stream = [query.stored_stream(stream) for stream in streams]
        self._window = window()
        self._immutable = immutable
        self._threads = threads
        self._pairs = pairs
        self._sealed: list[Sealed] = []
        self._assembling: dict[int, Assembly] = {}
        self._queues: dict[int, list[Routed]] = {}

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
                self._window.assigned(payload)
            self._assembling.setdefault(payload.epoch, Assembly()).add(payload)
            self._seal_if_complete(payload.epoch, context)
        elif isinstance(payload, MergedCount | WindowCount):
            self._window.told(payload)
        else:
            raise TypeError(f"a PO-Join PE cannot take a {type(payload).__name__}")
        self._drop_expired()

    def _evaluate(self, routed: Routed, context: Context) -> None:
        self._window.before(context)
        self._probe([routed], self._alive(), context)
        for queue in self._queues.values():
            queue.append(routed)
        self._window.evaluated(routed, context)

    def _seal_if_complete(self, epoch: int, context: Context) -> None:
        """Build the epoch's structure once all arrays and the flag are here; drain its queue."""
        assembly = self._assembling.get(epoch)
        if (
            assembly is None
            or epoch not in self._queues
            or not assembly.is_complete(
                predicates=len(self._conditions[0]), streams=len(self._conditions)
            )
        ):
            return
        del self._assembling[epoch]
        sealed, work = assembly.seal(epoch, self._immutable)
        context.charge(work)
        self._sealed.append(sealed)
        # Queued tuples saw the epoch whole, whatever has expired since.
        queue = self._queues.pop(epoch)
        if queue:
            self._probe(queue, [[sealed]] * len(self._conditions), context)

    def _probe(
        self, queue: Sequence[Routed], structures: list[list[Sealed]], context: Context
    ) -> None:
        """Probe the *structures* of each stored stream, and report to each of *queue* its own.

        All of them probe at once: where epochs are short, messages hold few tuples each, and a call
        costs more than what it finds.
        """
        answers: list[list[tuple[Matches, np.ndarray]]] = [[] for _ in queue]
        for stream, stored in enumerate(self._stored_stream):
            parts = [routed.parts[stream] for routed in queue]
            rows = [len(part) for part in parts]
            if not any(rows) or not structures[stored]:
                continue
            part = Probes.concat(parts)
            matches, work = probe_sealed(
                structures[stored],
                part,
                self._conditions[stream],
                self._window.bounds(part),
                stream=stream,
                stored=stored,
                threads=self._threads,
                pairs=self._pairs,
            )
            context.charge(work)
            for answer, one, found in zip(answers, parts, matches.split(rows), strict=True):
                if len(one):
                    answer.append((found, one.born_ns))
        for routed, answer in zip(queue, answers, strict=True):
            if answer:
                found_by, born_ns = zip(*answer, strict=True)
                context.send("sink", Answers(found_by, born_ns, routed.span))

    def _alive(self) -> list[list[Sealed]]:
        """Return per stored stream the epochs that have not expired."""
        return [
            [
                sealed
                for sealed in self._sealed
                if not self._window.is_expired(stream, sealed.epoch, sealed.stop(stream))
            ]
            for stream in range(len(self._conditions))
        ]

    def _drop_expired(self) -> None:
        alive = {sealed.epoch for stream in self._alive() for sealed in stream}
        self._sealed = [sealed for sealed in self._sealed if sealed.epoch in alive]
