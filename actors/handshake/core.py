"""A core of the chain: what every kind of handshake join does with the tuples that come by."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

from actors.handshake.payloads import LEFTWARD, RIGHTWARD, Flow
from actors.handshake.segment import Segment, Sighting
from actors.probes import Probes
from actors.protocol import FEEDBACK, Actor, Context, Message
from actors.results import Answers
from joins.batch import Schema
from joins.queries.query import JoinQuery
from joins.state import State


class Core(Actor):
    """Meets what arrives with what is here, keeps of it what is to stay, and sends the rest on.

    Both flows are first in, first out, and every message is answered by one in its own direction,
    if only to say how far the flow has come. Leftward tuples travel on the port for answers: two
    neighbours that waited for room in each other's inboxes would wait for ever. The flow to the
    right is held back where a core is busy, and with it the driver, which feeds both.

    Ports: ``right``, ``feedback`` (the neighbour on the left), ``sink``.

    Parameters
    ----------
    core, cores
        Which of them this is, from the left, and how many there are.
    index
        Structure of the local windows (`joins.indexes.windows.window_indexes.WINDOW_INDEXES`).
    """

    def __init__(
        self,
        *,
        query: JoinQuery,
        schemas: tuple[Schema, ...],
        core: int,
        cores: int,
        index: str,
        pairs: bool,
    ) -> None:
        self._core = core
        self._cores = cores
        self._is_end = (core == cores - 1, core == 0)
        self._streams = (0, query.stored_stream(0))
        self._pairs = pairs
        conditions = query.conditions(0, schemas)
        self._seen_by = (tuple(condition.mirrored for condition in conditions), conditions)
        self._schemas = tuple(schemas[stream] for stream in self._streams)
        self._segments = [self._segment(way, index) for way in (RIGHTWARD, LEFTWARD)]
        self._reached = [0, 0]

    def receive(self, message: Message, context: Context) -> None:
        """Let the tuples of a `Flow` meet those here, and send on what goes on."""
        flow: Flow = message.payload
        way, streams = flow.direction, self._streams
        if len(flow.part):
            self._reached[way] = int(flow.part.batch.id[-1]) + 1
        found = []
        for segment, before in self._met_by(flow, context):
            seeing, seen, work = segment.meet(flow.part, before=before, pairs=self._pairs)
            context.charge(work)
            found += [(streams[way], seeing), (streams[1 - way], seen)]
        self._answer(found, flow.span, context)
        leaving = self._settle(flow, context)
        if not self._is_end[way]:
            port = "right" if way == RIGHTWARD else FEEDBACK
            context.send(port, replace(flow, part=leaving, passed=self._passed(flow)))

    @abstractmethod
    def _met_by(self, flow: Flow, context: Context) -> list[tuple[Segment, int]]:
        """Return the segments that arriving tuples meet, each up to a position (exclusive)."""

    @abstractmethod
    def _settle(self, flow: Flow, context: Context) -> Probes:
        """Keep what is to stay of the arriving tuples, let go of others, return what goes on."""

    def _passed(self, flow: Flow) -> int:
        """Return how far the other flow has come, as `Flow.passed` means it for the next core."""
        if flow.direction == RIGHTWARD:
            return self._reached[LEFTWARD]
        return self._reached[RIGHTWARD] if self._is_end[RIGHTWARD] else flow.passed

    def _segment(self, direction: int, index: str) -> Segment:
        """Return an empty segment for tuples that flow in *direction*."""
        return Segment(self._schemas[direction], self._seen_by[direction], index)

    def _answer(
        self, found: list[tuple[int, Sighting]], span: tuple[int, int], context: Context
    ) -> None:
        """Send to the sink what was found, if anything was."""
        some = [(stream, sighting) for stream, sighting in found if len(sighting.seeing)]
        if some:
            matches = tuple(sighting.matches(stream) for stream, sighting in some)
            born_ns = tuple(sighting.seeing.born_ns for _, sighting in some)
            context.send("sink", Answers(matches, born_ns, span))

    def snapshot(self) -> State:
        """Return the segments, and how far either flow has come."""
        segments = [segment.snapshot() for segment in self._segments]
        return {"segments": segments, "reached": list(self._reached)}

    def restore(self, state: State) -> None:
        """Take over a snapshot."""
        for segment, described in zip(self._segments, state["segments"], strict=True):
            segment.restore(described)
        self._reached = list(state["reached"])
