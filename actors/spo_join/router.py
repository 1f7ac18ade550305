"""The router (SPO-Join, Algorithm 1), and what it sends to the joiner PEs."""

from __future__ import annotations

from dataclasses import dataclass

from actors.probes import Probes, give_windows
from actors.protocol import HEADER_BYTES, NO_SPAN, Actor, Context, Message
from actors.source import Fed
from joins.arrivals import Arrivals
from joins.batch import Schema
from joins.epochs import EpochCut, EpochCutter, MergeThreshold
from joins.queries.query import JoinQuery
from joins.queries.windows import WindowBounds


@dataclass(frozen=True, slots=True)
class Routed:
    """Arrivals of one merge epoch, one `Probes` per stream (router to joiner PEs).

    Attributes
    ----------
    number
        Counts the router's messages; the provenance of everything computed from this one.
    epoch
        The merge epoch the tuples belong to.
    parts
        One per stream of the query.
    span
        First and last arrival number.
    """

    number: int
    epoch: int
    parts: tuple[Probes, ...]
    span: tuple[int, int]

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        return HEADER_BYTES + sum(part.nbytes for part in self.parts)

    @property
    def rows(self) -> int:
        """Number of tuples."""
        return sum(len(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class MergeFlag:
    """The flag tuple: *epoch* ends here, with *ends* the next position of each stream.

    It travels from the router in line with the tuples, so that no tuple overtakes it. *last* is the
    arrival number of the epoch's last tuple.
    """

    epoch: int
    ends: tuple[int, ...]
    last: int

    nbytes = HEADER_BYTES
    rows = 0
    span = NO_SPAN


class Router(Actor):
    """Adds each tuple's window, cuts merge epochs, and sends tuples to all PEs.

    Ports: ``predicate0`` ... reach the PEs of each predicate with the fields that predicate reads;
    ``po_join`` reaches the PO-Join PEs with all join fields.

    The paper numbers tuples here by arrival. This router also adds to each tuple the positions that
    it may see in the stream it probes: a PE then needs no window state of its own, and cannot join
    a tuple with an expired one (`actors.spo_join.windows` has this and the paper's own ways). The
    paper's flag tuple comes out of the mutable component, where probes that took the direct way to
    a PO-Join PE could overtake it; here the router itself sends the flag, in line with the tuples,
    to the predicate PEs and to the PO-Join PE of the epoch.
    """

    state = ("_bounds", "_cutter", "_ends", "_number")

    def __init__(
        self, *, query: JoinQuery, schemas: tuple[Schema, ...], threshold: MergeThreshold
    ) -> None:
        streams = range(len(query.streams))
        self._conditions = [query.conditions(stream, schemas) for stream in streams]
        self._stored = [query.stored_stream(stream) for stream in streams]
        self._bounds = WindowBounds(query.windows, self_join=query.is_self_join)
        self._cutter = EpochCutter(threshold, len(streams))
        self._ends = [0] * len(streams)
        self._number = 0

    def receive(self, message: Message, context: Context) -> None:
        """Route one `Fed` batch."""
        fed: Fed = message.payload
        arrivals = fed.arrivals
        probes = give_windows(fed, self._bounds)
        for cut in self._cutter.cut([part.ts for part in arrivals.parts], arrivals.seq):
            self._send_tuples(cut, arrivals, probes, context)
            if cut.ends_epoch:
                self._send_flag(cut.epoch, context)

    def _send_tuples(
        self, cut: EpochCut, arrivals: Arrivals, probes: tuple[Probes, ...], context: Context
    ) -> None:
        parts = tuple(
            part.slice(start, stop)
            for part, start, stop in zip(probes, cut.starts, cut.stops, strict=True)
        )
        for stream, part in enumerate(parts):
            self._ends[stream] += len(part)
        numbers = [
            seq[start:stop]
            for seq, start, stop in zip(arrivals.seq, cut.starts, cut.stops, strict=True)
            if stop > start
        ]
        if not numbers:
            return
        span = (int(min(seq[0] for seq in numbers)), int(max(seq[-1] for seq in numbers)))
        routed = Routed(self._number, cut.epoch, parts, span)
        self._number += 1
        for predicate in range(len(self._conditions[0])):
            context.send(f"predicate{predicate}", self._project(routed, predicate))
        context.send("po_join", routed)

    def _project(self, routed: Routed, predicate: int) -> Routed:
        """Return what *predicate* reads of the tuples: their probing field, and the stored one."""
        parts = []
        for stream, part in enumerate(routed.parts):
            probing = self._conditions[stream][predicate].probe_field
            stored = self._conditions[self._stored[stream]][predicate].stored_field
            batch = part.batch.project(list(dict.fromkeys((probing, stored))))
            parts.append(Probes(batch, part.start, part.stop, part.born_ns))
        return Routed(routed.number, routed.epoch, tuple(parts), routed.span)

    def _send_flag(self, epoch: int, context: Context) -> None:
        # Positions count a stream's arrivals, so together they count all of them.
        flag = MergeFlag(epoch, tuple(self._ends), sum(self._ends) - 1)
        for predicate in range(len(self._conditions[0])):
            context.send(f"predicate{predicate}", flag)
        context.send("po_join", flag, to=epoch % len(context.peers("po_join")))
