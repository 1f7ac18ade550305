"""The router (SPO-Join, Algorithm 1), and what it sends to the joiner PEs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from actors.protocol import Actor, Context, Message, Payload
from actors.source import Fed, Probes, as_probes
from joins.batch import Schema
from joins.epochs import EpochCutter, MergeThreshold
from joins.queries.query import JoinQuery, JoinSides
from joins.queries.windows import WindowBounds


@dataclass(frozen=True, slots=True)
class Routed(Payload):
    """Arrivals of one merge epoch, one `Probes` per stream (router to joiner PEs)."""

    number: int
    """Counts the router's messages; the provenance of everything computed from this one."""
    epoch: int
    """The merge epoch the tuples belong to."""
    parts: tuple[Probes, ...]
    """One per stream of the query."""
    span: tuple[int, int]
    """First and last arrival number."""
    overdue: tuple[int, ...]
    """Per stream the position below which neither these tuples nor later ones see it, and no probe
    shows it (`joins.queries.windows.WindowBounds`); empty as long as both streams flow."""

    bytes_of = ("parts", "overdue")
    rows_of = ("parts",)


class UpTo(Payload):
    """A payload about all tuples up to arrival number *last*.

    That is its span: the trace then shows how far behind the stream its receiver is.
    """

    __slots__ = ()
    last: int

    @property
    def span(self) -> tuple[int, int]:
        """The last of the tuples."""
        return self.last, self.last


@dataclass(frozen=True, slots=True)
class MergeFlag(Payload):
    """The flag tuple: *epoch* ends here, with *ends* the next position of each stream.

    It travels from the router in line with the tuples, so that no tuple overtakes it. *last* is the
    arrival number of the epoch's last tuple.
    """

    epoch: int
    ends: tuple[int, ...]
    last: int

    bytes_of = ("ends",)


class Router(Actor):
    """Adds each tuple's window, cuts merge epochs, and sends tuples to all PEs.

    Ports: ``predicate0`` ... reach the PEs of each predicate with the fields that predicate reads;
    ``po_join`` reaches the PO-Join PEs with all join fields.

    The paper numbers tuples here by arrival. This router also adds to each tuple the positions that
    it may see in the stream it probes: a PE then needs no window state of its own, and cannot join
    a tuple with an expired one (`actors.spo_join.window_state` has this and the paper's own ways).

    The paper's flag tuple comes out of the mutable component, where probes that took the direct way
    to a PO-Join PE could overtake it; here the router itself sends the flag, in line with the
    tuples, to the predicate PEs and to the PO-Join PE of the epoch.
    """

    state = ("_bounds", "_cutter", "_ends", "_number")

    def __init__(
        self, *, query: JoinQuery, schemas: tuple[Schema, ...], threshold: MergeThreshold
    ) -> None:
        sides = JoinSides(query, schemas)
        # Per predicate and stream the field that tuples probe with, and the one that is stored.
        self._fields = [
            [
                list(dict.fromkeys((probing.probe_field, storing.stored_field)))
                for probing, storing in by_stream
            ]
            for by_stream in zip(*map(zip, sides.probing, sides.storing), strict=True)
        ]
        self._bounds = WindowBounds(query.windows)
        self._cutter = EpochCutter(threshold, len(query.streams))
        self._ends = [0] * len(query.streams)
        self._number = 0

    def receive(self, message: Message, context: Context) -> None:
        """Route one `Fed` batch."""
        fed: Fed = message.payload
        # As of the batch before: the first tuples of this one may see more than what follows it.
        overdue = self._bounds.overdue if any(self._bounds.overdue) else ()
        arrivals, probes = fed.arrivals, as_probes(fed, self._bounds)
        for cut in self._cutter.cut(arrivals):
            rows = zip(probes, cut.starts, cut.stops, strict=True)
            parts = tuple(part.slice(start, stop) for part, start, stop in rows)
            if any(map(len, parts)):
                span = arrivals.slice(cut.starts, cut.stops).span
                routed = Routed(self._number, cut.epoch, parts, span, overdue)
                self._send_tuples(routed, context)
            if cut.ends_epoch:
                self._send_flag(cut.epoch, context)

    def _send_tuples(self, routed: Routed, context: Context) -> None:
        parts = routed.parts
        self._number += 1
        self._ends = [end + len(part) for end, part in zip(self._ends, parts, strict=True)]
        for predicate, fields in enumerate(self._fields):
            # What the predicate reads of the tuples.
            read = tuple(
                Probes(part.batch.project(names), part.start, part.stop, part.born_ns)
                for part, names in zip(parts, fields, strict=True)
            )
            context.send(f"predicate{predicate}", replace(routed, parts=read, overdue=()))
        context.send("po_join", routed)

    def _send_flag(self, epoch: int, context: Context) -> None:
        # Positions count a stream's arrivals, so together they count all of them.
        flag = MergeFlag(epoch, tuple(self._ends), sum(self._ends) - 1)
        for predicate in range(len(self._fields)):
            context.send(f"predicate{predicate}", flag)
        context.send("po_join", flag, to=epoch % len(context.peers("po_join")))
