"""Handshake joins: two streams flow past each other through a chain of cores.

R enters at the first core and leaves at the last, S the other way round. The `Driver` gives every
tuple the window it sees and feeds both ends; a `Flow` is what travels from core to core. Where two
tuples pass each other, the newer one may see the older (`Segment.meet`), so that a core needs
nothing but its own tuples. There are two kinds of core:

- `RestingCore`, of the handshake join (Teubner and Mueller, SIGMOD 2011): tuples rest in segments
  and push each other on;
- `LowLatencyCore`, of the low-latency handshake join (Roy, Teubner and Gemulla, PVLDB 2014): tuples
  are forwarded at once and stored at one core on their way.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from actors.protocol import FEEDBACK, Actor, Context, Message, Payload
from actors.results import Found, send_answers
from actors.source import Fed, Probes, as_probes
from actors.window_join import expire
from joins.batch import Schema
from joins.codes import GREATEST, LEAST
from joins.indexes.index import Index, codes_of, ranges_of
from joins.indexes.structures import make_window_index
from joins.matches import Matches, ProbeResult, listed_ids
from joins.queries.conditions import Condition
from joins.queries.query import JoinQuery
from joins.queries.windows import Window, WindowBounds
from joins.sliding_column import SlidingBatch, SlidingColumn, values_at
from joins.state import Stateful
from joins.work import Step, Work, structure_name

RIGHTWARD, LEFTWARD = 0, 1
"""The two flows: R enters at the first core, S at the last."""


@dataclass(frozen=True, slots=True)
class Flow(Payload):
    """Tuples of one flow on their way to the next core; there may be none."""

    direction: int
    """`RIGHTWARD` or `LEFTWARD`."""
    part: Probes
    """The tuples, each with the window it sees in the other flow."""
    passed: int
    """How far the other flow had come when these tuples left: rightward, positions below it have
    reached the core that sends; leftward, they had reached the last core when this entered."""
    horizon: int
    """The least position of the other flow that any tuple behind these can see."""
    last: bool
    """Whether nothing enters behind these."""
    span: tuple[int, int]
    """First and last arrival number of the batch that set them in motion."""

    bytes_of = ("direction", "part", "passed", "horizon")
    rows_of = ("part",)


class Driver(Actor):
    """Gives every tuple its window and sends R to the first core and S to the last.

    The originals' driver watches the windows and sends a message for each tuple that expires, into
    the end opposite to the one where it came in. Here every message says from which position on
    the other stream can still be seen: it is behind all tuples that see more, so it says the same.

    A stream that is joined with itself goes in at both ends: what flows right probes, and what
    flows left is probed and sees nothing.

    Ports: ``first`` and ``last``, the two ends of the chain.
    """

    state = ("_bounds",)

    def __init__(self, *, windows: tuple[Window, ...]) -> None:
        self._bounds = WindowBounds(windows)
        self._self_join = len(windows) == 1

    def receive(self, message: Message, context: Context) -> None:
        """Send the tuples of one `Fed` batch to either end, even where there are none."""
        fed: Fed = message.payload
        parts = as_probes(fed, self._bounds)
        if self._self_join:
            nothing = np.zeros(len(parts[0]), np.int64)
            parts = (*parts, replace(parts[0], start=nothing, stop=nothing))
        horizon = self._bounds.horizon
        for direction, port in ((RIGHTWARD, "first"), (LEFTWARD, "last")):
            flow = Flow(
                direction=direction,
                part=parts[direction],
                passed=0,
                horizon=horizon[0 if self._self_join else 1 - direction],
                last=fed.last,
                span=fed.arrivals.span,
            )
            context.send(port, flow)


@dataclass(eq=False)
class Segment(Stateful):
    """Tuples of one stream at a core, in the order of their positions, and an index over them."""

    schema: Schema
    """Of the stream."""
    conditions: tuple[Condition, ...]
    """The predicates as the other stream's tuples see them."""
    index: str | type[Index]
    """Structure of the index (`make_window_index`)."""

    state = ("_batch", "_windows", "_index")

    def __post_init__(self) -> None:
        self._batch = SlidingBatch(self.schema)
        self._windows = [SlidingColumn(np.int64) for _ in range(3)]  # start, stop, birth
        self._name = structure_name(self.index)
        self._index: Index = make_window_index(self.index, self.conditions)

    def __len__(self) -> int:
        return len(self._batch)

    @property
    def tuples(self) -> Probes:
        """The tuples, as views."""
        return Probes(self._batch.tuples, *(column.values for column in self._windows))

    def store(self, part: Probes, context: Context) -> None:
        """Add *part*, whose positions follow those that are here."""
        self._batch.append(part.batch)
        for column, values in zip(
            self._windows, (part.start, part.stop, part.born_ns), strict=True
        ):
            column.append(values)
        work = self._index.insert(codes_of(self.conditions, part.batch), part.batch.id)
        context.charge(work, Step(f"{self._name}.insert", len(part), len(self._index)))
        context.charge(Work(bytes_copied=part.nbytes))

    def drop(self, before: int, context: Context) -> None:
        """Drop positions less than *before*."""
        gone = self._place(before)
        self._batch.drop(gone)
        for column in self._windows:
            column.drop(gone)
        expire(context, self._name, self._index, before)

    def between(self, first: int, stop: int) -> Probes:
        """Return the tuples at positions *first* to *stop* (exclusive)."""
        return self.tuples.slice(self._place(first), self._place(stop))

    def meet(
        self,
        flow: Flow,
        context: Context,
        *,
        streams: tuple[int, int],
        before: int = GREATEST,
        pairs: bool,
    ) -> list[Found]:
        """Match the arriving tuples of *flow* with the stored ones, in both directions.

        Of two tuples only the newer one can see the other, so that no pair is found both ways.
        Windows only move on: the tuples here that see a given one lie side by side.

        Parameters
        ----------
        streams
            The stream of the arriving tuples, and that of the tuples here.
        before
            Tuples here at positions from this on take no part.
        pairs
            Whether to list the matches.
        """
        arriving, here = flow.part, self.tuples.slice(0, self._place(before))
        ids = here.batch.id
        begin, end = (int(ids[0]), int(ids[-1]) + 1) if len(here) else (0, 0)
        rows, seen = self._probe(
            arriving, np.maximum(arriving.start, begin), np.minimum(arriving.stop, end), pairs=pairs
        )
        seen_rows, seeing = self._probe(
            arriving,
            values_at(ids, np.searchsorted(here.stop, arriving.batch.id, "right"), end),
            values_at(ids, np.searchsorted(here.start, arriving.batch.id, "right"), end),
            pairs=True,
        )
        positions, row = np.unique(listed_ids(seeing), return_inverse=True)
        inverted = Matches.of_pairs(
            streams[1],
            positions,
            row,
            arriving.batch.id[seen_rows],
            seeing.count,
            enumerate=pairs,
        )
        for probing, found in ((rows, seen), (seen_rows, seeing)):
            step = Step(f"{self._name}.probe", len(probing), len(self._index))
            context.charge(found.work, step)
        context.charge(Work(comparisons=2 * len(arriving) * len(here).bit_length()))
        return [
            _found(arriving, seen.of(streams[0], arriving.batch.id[rows]), flow.span),
            _found(here, inverted, flow.span),
        ]

    def _place(self, position: int) -> int:
        return int(np.searchsorted(self.tuples.batch.id, position))

    def _probe(
        self, arriving: Probes, start: np.ndarray, stop: np.ndarray, *, pairs: bool
    ) -> tuple[np.ndarray, ProbeResult]:
        """Probe with those of *arriving* that see any tuples; return which, and the result."""
        rows = np.flatnonzero(start < stop)
        ranges = ranges_of(self.conditions, arriving.batch, start[rows], stop[rows], rows)
        return rows, self._index.probe(ranges, enumerate=pairs)


def _found(tuples: Probes, matches: Matches, span: tuple[int, int]) -> Found:
    """Return the *matches* without the tuples that have none."""
    some = matches.count > 0
    matches = replace(
        matches,
        probe_id=matches.probe_id[some],
        count=matches.count[some],
        fingerprint=matches.fingerprint[some],
    )
    probing = tuples.take(np.searchsorted(tuples.batch.id, matches.probe_id))
    return Found(matches, probing.born_ns, span)


@dataclass(kw_only=True, eq=False)
class Core(Actor):
    """Lets arriving tuples meet those that are here, stores some, and sends the rest on.

    Both flows are first in, first out, and every message is answered by one in its own direction,
    if only to say how far the flow has come. Leftward tuples travel on the port for answers: two
    neighbours that waited for room in each other's inboxes would wait for ever. The flow to the
    right stops where a core is busy, and with it the driver, which feeds both.

    Ports: ``right``, ``feedback`` (the neighbour on the left), ``sink``.
    """

    query: JoinQuery
    schemas: tuple[Schema, ...]
    core: int
    cores: int
    """Which of them this is, from the left, and how many there are."""
    index: str | type[Index]
    """Structure of the local windows (`make_window_index`)."""
    pairs: bool

    state: ClassVar[tuple[str, ...]] = ("_segments", "_reached")

    def __post_init__(self) -> None:
        self._is_end = (self.core == self.cores - 1, self.core == 0)
        self._streams = (0, self.query.stored_stream(0))
        conditions = self.query.conditions(0, self.schemas)
        self._seen_by = (tuple(condition.mirrored for condition in conditions), conditions)
        self._schemas = tuple(self.schemas[stream] for stream in self._streams)
        self._segments = [self._segment(way, self.index) for way in (RIGHTWARD, LEFTWARD)]
        self._reached = [0, 0]

    def receive(self, message: Message, context: Context) -> None:
        """Let the tuples of a `Flow` meet those here, and send on what goes on."""
        flow: Flow = message.payload
        way, streams = flow.direction, self._streams
        if len(flow.part):
            self._reached[way] = int(flow.part.batch.id[-1]) + 1
        found = []
        for segment, before in self._met_by(flow, context):
            both = streams[way], streams[1 - way]
            found += segment.meet(flow, context, streams=both, before=before, pairs=self.pairs)
        send_answers(found, context)
        leaving = self._settle(flow, context)
        if not self._is_end[way]:
            port = "right" if way == RIGHTWARD else FEEDBACK
            context.send(port, replace(flow, part=leaving, passed=self._passed(flow)))

    @abstractmethod
    def _met_by(self, flow: Flow, context: Context) -> list[tuple[Segment, int]]:
        """Return the segments that arriving tuples meet, each up to a position (exclusive)."""

    @abstractmethod
    def _settle(self, flow: Flow, context: Context) -> Probes:
        """Store those of the arriving tuples that stay, drop others, return what goes on."""

    def _passed(self, flow: Flow) -> int:
        """Return how far the other flow has come, as `Flow.passed` means it for the next core."""
        if flow.direction == RIGHTWARD:
            return self._reached[LEFTWARD]
        return self._reached[RIGHTWARD] if self._is_end[RIGHTWARD] else flow.passed

    def _segment(self, direction: int, index: str | type[Index]) -> Segment:
        """Return an empty segment for tuples that flow in *direction*."""
        return Segment(self._schemas[direction], self._seen_by[direction], index)


class RestingCore(Core):
    """Stores an equal share of either window and passes the excess to its neighbour.

    Every tuple comes by every core in the end, and meets each tuple of the other stream once, where
    the two come by each other. As they may do so between two cores, leftward tuples stay here as a
    copy until the neighbour on the left has them: what comes from there and has not met them meets
    the copy (the original's acknowledgements, on one side only as there; here each message from the
    left says what has arrived). At its end of the chain a tuple stays until no tuple that is still
    to enter at that end can see it.

    Where the original leaves open how long segments are, a window of time gives each core the same
    stretch of it. Tuples move only as others follow, so with the last of all rightward ones go
    through to the end: else the pairs between cores would wait for ever.
    """

    state = ("_sent",)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._window = self.query.windows[0]  # the same over every stream
        self._share = -(-self._window.length // self.cores)
        self._sent = [0, 0]

    def _met_by(self, flow: Flow, context: Context) -> list[tuple[Segment, int]]:
        if flow.direction == RIGHTWARD:
            self._segments[LEFTWARD].drop(flow.passed, context)
        return [(self._segments[1 - flow.direction], GREATEST)]

    def _settle(self, flow: Flow, context: Context) -> Probes:
        way, here = flow.direction, self._segments[flow.direction]
        here.store(flow.part, context)
        if self._is_end[1 - way]:
            self._segments[1 - way].drop(flow.horizon, context)
        if self._is_end[way]:
            return here.between(0, 0)
        sent, self._sent[way] = self._sent[way], max(self._sent[way], self._leaves_before(flow))
        leaving = here.between(sent, self._sent[way])
        if way == RIGHTWARD:
            here.drop(self._sent[way], context)
        return leaving

    def _leaves_before(self, flow: Flow) -> int:
        """Return the position before which tuples leave this core."""
        reached = self._reached[flow.direction]
        if flow.last and flow.direction == RIGHTWARD:
            return reached
        if self._window.kind == "count":
            return reached - self._share
        batch = self._segments[flow.direction].tuples.batch
        # Not less than the least int64, which a difference would wrap around to the greatest.
        oldest = np.maximum(batch.ts[-1:], LEAST + self._share) - self._share
        old = int(np.searchsorted(batch.ts, oldest)[0]) if len(batch) else 0
        return reached - (len(batch) - old)


class LowLatencyCore(Core):
    """Stores the tuples whose home it is, in turns, and forwards all of them at once.

    A rightward tuple meets what is stored at each core, a leftward one only the tuples that had
    been through the whole chain when it entered: with the others it is they that meet it, at its
    home, or in flight. It is in flight when it has left a core and not reached the next: a copy
    stays until the neighbour on the left has it, unless it has passed its home and is met there.
    (The original marks stored tuples as expedited until they have been through, and acknowledges
    each leftward tuple; here messages say how far the other flow had come.)
    """

    state = ("_in_flight",)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._in_flight = self._segment(LEFTWARD, "nested_loop")

    def _met_by(self, flow: Flow, context: Context) -> list[tuple[Segment, int]]:
        if flow.direction == LEFTWARD:
            return [(self._segments[RIGHTWARD], self._passed(flow))]
        self._in_flight.drop(flow.passed, context)
        return [(self._segments[LEFTWARD], GREATEST), (self._in_flight, GREATEST)]

    def _settle(self, flow: Flow, context: Context) -> Probes:
        way, part = flow.direction, flow.part
        home = part.batch.id % self.cores
        self._segments[way].store(part.take(home == self.core), context)
        self._segments[1 - way].drop(flow.horizon, context)
        if way == LEFTWARD:
            self._in_flight.store(part.take(home < self.core), context)
        return part
