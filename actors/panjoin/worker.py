"""PanJoin's worker: it stores its subwindows and executes the manager's commands (steps 4 and 5).

It and the manager see the query as an `IndexedQuery`, one predicate of which subwindows index.
`OutOfOrderWorker` does it for streams that arrive out of order (section III-G2).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from actors.panjoin.messages import (
    Commands,
    Create,
    Feedback,
    Insert,
    ResultsTo,
    Status,
    WorkerResult,
)
from actors.protocol import FEEDBACK, Actor, Context, Message
from actors.results import Found, send_answers
from actors.source import Probes
from joins.batch import Batch, Schema
from joins.codes import encode
from joins.event_time import Candidates, Paired, select_pairs
from joins.indexes.index import Ranges, codes_of, ranges_of
from joins.indexes.panjoin.accelerator import Accelerator
from joins.indexes.panjoin.bi_sort import Records
from joins.indexes.panjoin.subwindow import (
    STRUCTURES,
    OutOfOrderSubwindow,
    Subwindow,
    SubwindowShape,
    probe_subwindows,
)
from joins.matches import Matches, ProbeResult
from joins.queries.query import JoinQuery, JoinSides
from joins.state import Stateful
from joins.work import NO_WORK, Step, Work


def indexed_predicate(query: JoinQuery) -> int:
    """Return the predicate whose field subwindows index.

    The paper's queries have one. Of several an equality finds the fewest candidates, then a band,
    then a comparison; with ``!=`` nearly everything is one.
    """

    def rank(place: int) -> tuple[int, int]:
        operator = query.predicates[place].operator
        if operator.is_equality:
            return 0, place
        if operator.negated:
            return 3, place
        return 1 if operator.subtracts else 2, place

    return min(range(len(query.predicates)), key=rank)


class IndexedQuery(JoinSides):
    """The query's conditions by stream, the indexed one first."""

    def __init__(self, query: JoinQuery, schemas: tuple[Schema, ...]) -> None:
        indexed = indexed_predicate(query)
        others = [place for place in range(len(query.predicates)) if place != indexed]
        super().__init__(query, schemas, [indexed, *others])

    def stored_codes(self, stream: int, batch: Batch) -> list[np.ndarray]:
        """Return what is stored of tuples of *stream*, a column per condition."""
        return codes_of(self.storing[stream], batch)

    def indexed_codes(self, stream: int, batch: Batch) -> np.ndarray:
        """Return the codes that tuples of *stream* are indexed by."""
        return codes_of(self.storing[stream][:1], batch)[0]

    def probes_as_stored(self, stream: int) -> bool:
        """Return whether tuples of *stream* probe with the field that they are indexed by."""
        return self.probing[stream][0].probe_field == self.storing[stream][0].stored_field

    def probing_codes(self, stream: int, batch: Batch) -> np.ndarray:
        """Return the codes of what tuples of *stream* probe the indexed field with."""
        indexed = self.probing[stream][0]
        return encode(batch.fields[indexed.probe_field].astype(indexed.dtype, copy=False))

    def ranges(self, stream: int, part: Probes) -> Ranges:
        """Return the ranges that tuples of *stream* probe with."""
        return ranges_of(self.probing[stream], part.batch, part.start, part.stop)


class WorkerSubwindows(Stateful):
    """The subwindows of one worker, by stream and number, in the order of their creation.

    The worker has them, and so has the manager's mirror of it. Commands about structures that are
    not among *kinds* are ignored.
    """

    state = ("_subwindows",)

    def __init__(
        self,
        query: IndexedQuery,
        shapes: tuple[SubwindowShape, ...],
        kinds: Collection[str] = STRUCTURES,
    ) -> None:
        self._query = query
        self._shapes = shapes
        self._kinds = kinds
        self._subwindows: list[dict[int, Subwindow]] = [{} for _ in shapes]

    def insert(self, commands: Commands) -> list[tuple[Work, Step]]:
        """Create and insert as *commands* say; return what each step of it cost."""
        steps = []
        for insert in commands.insert:
            subwindows, create = self._subwindows[insert.stream], insert.create
            if create is not None and create.structure in self._kinds:
                subwindows[insert.number] = self._create(self._shapes[insert.stream], create)
            subwindow = subwindows.get(insert.number)
            if subwindow is None:
                continue
            if len(insert):
                work, size = self._insert(subwindow, insert), len(subwindow)
                steps.append((work, Step(f"{subwindow.kind}.insert", len(insert), size)))
            if insert.fills:
                size = len(subwindow)
                steps.append((subwindow.seal(), Step(f"{subwindow.kind}.seal", size, size)))
        return steps

    def _create(self, shape: SubwindowShape, create: Create) -> Subwindow:
        return Subwindow(shape, create.structure, first=create.first, splitters=create.splitters)

    def _insert(self, subwindow: Subwindow, insert: Insert) -> Work:
        codes = self._query.stored_codes(insert.stream, insert.batch)
        return subwindow.insert(codes, insert.batch.id)

    def expire(self, commands: Commands) -> None:
        """Drop the expired subwindows."""
        for expire in commands.expire:
            self._subwindows[expire.stream].pop(expire.number, None)

    def of_stream(self, stream: int) -> dict[int, Subwindow]:
        """Return the subwindows of a stream by number."""
        return self._subwindows[stream]


@dataclass(kw_only=True, eq=False)
class Worker(Actor):
    """Creates, inserts, probes and expires; answers with results and its running status.

    Workers do not talk to each other. Ports: ``feedback`` (the manager), and ``sink`` where results
    go straight on.
    """

    query: JoinQuery
    schemas: tuple[Schema, ...]
    index: int
    """Which of the workers this is."""
    shapes: tuple[SubwindowShape, ...]
    """Per stream what its subwindows have in common."""
    results: ResultsTo
    """Where results go. To the manager a BI-Sort's go as records."""
    threads: int
    """Threads that share the probes of a batch. In virtual time their work is added up: it is done
    on one core."""
    accelerator: Accelerator | None
    """The board that stores its subwindows, all of them BI-Sorts whose results go to the manager;
    None leaves them to the core."""
    pairs: bool

    state: ClassVar[tuple[str, ...]] = ("_subwindows",)

    subwindows_type: ClassVar[type[WorkerSubwindows]] = WorkerSubwindows

    def __post_init__(self) -> None:
        self._query = IndexedQuery(self.query, self.schemas)
        self._subwindows = self.subwindows_type(self._query, self.shapes)

    def receive(self, message: Message, context: Context) -> None:
        """Execute the manager's commands about one batch."""
        commands: Commands = message.payload
        steps = self._subwindows.insert(commands)
        if self.accelerator is not None:
            inserted = sum(map(len, commands.insert))
            work = sum((work for work, _ in steps), NO_WORK)
            context.charge(self.accelerator.insertion_time(inserted, work))
        else:
            for work, step in steps:
                context.charge(work, step)
        results: tuple[WorkerResult, ...] = ()
        if self.results == "sink":
            totals = self._answer(commands, context)
        else:
            results = tuple(
                self._search(stream, part, context) for stream, part in enumerate(commands.probe)
            )
            totals = [result.total for result in results]
        status = tuple(
            Status(len(part) * len(self._probed(stream)), total, self._sampled(stream, commands))
            for stream, (part, total) in enumerate(zip(commands.probe, totals, strict=True))
        )
        self._subwindows.expire(commands)
        context.send(
            FEEDBACK, Feedback(commands.number, self.index, status, results, commands.span)
        )

    def _probed(self, stream: int) -> dict[int, Subwindow]:
        """Return the subwindows that tuples of *stream* probe, by number."""
        return self._subwindows.of_stream(self._query.stored_stream[stream])

    def _answer(self, commands: Commands, context: Context) -> list[int]:
        """Send the matches straight on; return how many there are per probing stream."""
        found = []
        for stream, part in enumerate(commands.probe):
            matches = self._find(stream, part, list(self._probed(stream).values()), context)
            found.append(Found(matches, part.born_ns, commands.span))
        send_answers(found, context)
        return [one.matches.total for one in found]

    def _find(
        self, stream: int, part: Probes, subwindows: list[Subwindow], context: Context
    ) -> Matches:
        ranges = self._query.ranges(stream, part)
        results = []
        for kind, alike in _by_kind(subwindows):
            found = probe_subwindows(alike, ranges, enumerate=self.pairs, threads=self.threads)
            step = Step(f"{kind}.probe", len(part) * len(alike), sum(map(len, alike)))
            context.charge(found.work, step)
            results.append(found)
        return ProbeResult.sum(results).of(stream, part.batch.id)

    def _search(self, stream: int, part: Probes, context: Context) -> WorkerResult:
        """Answer with records where the structure is sorted, with matches where it is not."""
        if not len(part):
            return WorkerResult({}, None)
        ranges = self._query.ranges(stream, part)
        records: dict[int, Records] = {}
        others = []
        for number, subwindow in self._probed(stream).items():
            if subwindow.kind == "bi_sort":
                records[number], work = subwindow.bi_sort.find_records(ranges)
                if self.accelerator is not None:
                    work = self.accelerator.probing_time(subwindow.bi_sort, records[number])
                    context.charge(work)
                else:
                    context.charge(work, Step("bi_sort.find", len(part), len(subwindow)))
            else:
                others.append(subwindow)
        matches = self._find(stream, part, others, context) if others else None
        return WorkerResult(records, matches)

    def _sampled(self, stream: int, commands: Commands) -> np.ndarray | None:
        """Return the splitters of the last subwindow of *stream* that these commands filled."""
        filled = [i.number for i in commands.insert if i.stream == stream and i.fills]
        return self._subwindows.of_stream(stream)[filled[-1]].sampled if filled else None


class OutOfOrderSubwindows(WorkerSubwindows):
    """Subwindows with event times, and with a buffer each for what comes when they are full."""

    def insert(self, commands: Commands) -> list[tuple[Work, Step]]:
        """Create and insert as *commands* say, as a new batch."""
        for subwindows in self._subwindows:
            for subwindow in subwindows.values():
                _timed(subwindow).begin_batch()
        return super().insert(commands)

    def _create(self, shape: SubwindowShape, create: Create) -> Subwindow:
        return OutOfOrderSubwindow(shape, create.structure, splitters=create.splitters)

    def _insert(self, subwindow: Subwindow, insert: Insert) -> Work:
        timed, batch = _timed(subwindow), insert.batch
        store = timed.insert_late if insert.late else timed.insert_timed
        return store(self._query.stored_codes(insert.stream, batch), batch.id, batch.ts)


class OutOfOrderWorker(Worker):
    """Finds pairs in both directions of event time; its results go straight on."""

    subwindows_type = OutOfOrderSubwindows
    state = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self._precise = self.query.windows[0].semantics == "precise"

    def _answer(self, commands: Commands, context: Context) -> list[int]:
        found, totals = [], []
        for stream, part in enumerate(commands.probe):
            paired = self._pair(stream, part, context)
            found += [
                Found(paired.seen, part.born_ns, commands.span),
                Found(paired.seeing, part.born_ns[paired.row], commands.span),
            ]
            totals.append(paired.seen.total + paired.seeing.total)
        send_answers(found, context)
        return totals

    def _pair(self, stream: int, part: Probes, context: Context) -> Paired:
        ranges = self._query.ranges(stream, part)
        candidates: list[Candidates] = []
        for subwindow in self._probed(stream).values():
            found, work = _timed(subwindow).find_candidates(
                ranges, part.start, part.stop, self.threads
            )
            context.charge(work, Step(f"{subwindow.kind}.probe", len(part), len(subwindow)))
            candidates += found
        return select_pairs(
            stream,
            part.batch,
            (part.start, part.stop),
            Candidates.concat(candidates),
            precise=self._precise,
            enumerate=self.pairs,
        )


def _by_kind(subwindows: Sequence[Subwindow]) -> list[tuple[str, list[Subwindow]]]:
    """Return the *subwindows* of each kind, at least one kind."""
    kinds = dict.fromkeys(subwindow.kind for subwindow in subwindows) or {"bi_sort": None}
    return [(kind, [one for one in subwindows if one.kind == kind]) for kind in kinds]


def _timed(subwindow: Subwindow) -> OutOfOrderSubwindow:
    assert isinstance(subwindow, OutOfOrderSubwindow)
    return subwindow
