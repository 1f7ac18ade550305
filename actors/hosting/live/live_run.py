"""A live run: the process that started it (`LiveRun`), and the others (`serve`, `LiveShard`).

The driver has the actors built, starts the sources, waits, and fetches what was written down.

In each of the others one thread serves messages, one at a time, as they come; actors in one process
hand each other payloads by reference. A sender has room for so many messages at each of its
receivers; when one of those begins with a message, there is room for another. A sender whose
receiver has no room starts nothing until there is some, so pressure travels back to the source.
Answers (`FEEDBACK`) need no room, as in virtual time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from actors.hosting.inline import Cell
from actors.hosting.live.endings import Endings, Outlet, Seat, components_of
from actors.hosting.live.post import (
    Bundle,
    Clock,
    Entry,
    Measured,
    Parcel,
    Post,
    Recorder,
    Spool,
    moment_ns,
)
from actors.hosting.mesh import Mesh
from actors.hosting.process_memory import peak_bytes
from actors.hosting.processes import Processes
from actors.protocol import (
    FEEDBACK,
    NS_PER_S,
    START,
    TIMER,
    ActorSpec,
    Channel,
    Progress,
    Sent,
    Wiring,
    channels,
)
from actors.result_files import Destination, Part, Piece
from joins.state import array_bytes

_REPORT_NS = NS_PER_S // 2


@dataclass(frozen=True, kw_only=True)
class LiveSystem:
    """What the processes of a live run need to know of the whole system."""

    specs: Mapping[str, ActorSpec]
    wiring: Wiring
    seed: int
    """As for every host."""
    homes: Mapping[str, int]
    """Actor name to process."""
    room: int
    """Messages under way at most on a channel, at least 1."""
    codes: Mapping[str, int]
    """Name of a port to its number in the trace."""

    def seats(self, process: int) -> dict[str, Seat]:
        """Return the seats of a *process*, by actor name, with actors in their first state."""
        return {
            name: Seat(name, Cell(name, self.specs[name], self.wiring, self.seed))
            for name in self.wiring
            if self.homes[name] == process
        }


@dataclass(eq=False)
class LiveShard:
    """Runs the actors that have a seat here, from the start of the sources until all have ended."""

    mesh: Mesh
    """The processes; the driver is sent how far this one is."""
    system: LiveSystem
    """The whole system."""
    seats: Mapping[str, Seat]
    """Those of this process."""
    clock: Clock
    """The run's."""
    recorder: Recorder
    """Takes the trace, and results where there is no *part*."""
    part: Part | None = None
    """The files that results are written to."""

    def __post_init__(self) -> None:
        self._collect = self.recorder.emit if self.part is None else self.part.results.collect
        homes, wiring = self.system.homes, self.system.wiring
        self._rank = {name: rank for rank, name in enumerate(wiring)}
        self._post = Post(self.mesh, self.clock)
        self._outlets: dict[Channel, Outlet] = {}
        components = components_of(wiring, homes)
        inside = {channel for part in components for channel in part.inside}
        for channel in channels(wiring):
            sender, receiver = channel
            if sender in self.seats:
                self._outlets[channel] = Outlet(homes[receiver], self.system.room)
            if receiver in self.seats:
                self.seats[receiver].is_source = False
                self.seats[receiver].open_inputs += channel not in inside
        self._endings = Endings(self.mesh.member, components, self.seats, self._outlets, self._post)
        self._turns: deque[Seat] = deque()
        self._timers: list[tuple[int, int, Parcel]] = []
        self._timers_set = self._reported_ns = 0
        self._measured = Measured()

    def begin(self) -> None:
        """Start the sources here; before anything is opened that another process sent."""
        for seat in self.seats.values():
            if seat.is_source:
                self._arrive(seat, Parcel(seat.name, seat.name, START, seat.next_seq(), None, 0))
            self._endings.end_if_done(seat.name)

    def run(self) -> Measured:
        """Serve until every actor here has ended."""
        began_ns = self.clock.processor_ns()
        while not self._endings.all_ended:
            self._receive_frame()
            self._fire_timers()
            if self._turns:
                self._serve(self._turns.popleft())
            self._post.send_due()
            self._report()
        self._post.send_all()
        measured = self._measured
        if self.part is not None:
            self.part.results.finish()
            measured.ended_ns = self.clock.now()
        measured.sent = {channel: outlet.sent for channel, outlet in self._outlets.items()}
        measured.peak_bytes = peak_bytes()
        measured.processor_ns = {self.mesh.member: self.clock.processor_ns() - began_ns}
        measured.served = {name: seat.served for name, seat in self.seats.items()}
        measured.state_bytes = {
            name: array_bytes(seat.cell.actor) for name, seat in self.seats.items()
        }
        return measured

    def open_bundle(self, process: int, bundle: Bundle) -> None:
        """Handle what another process sent."""
        now = self.clock.now()
        for parcel in bundle.parcels:
            parcel.arrived_ns = now
            self._arrive(self.seats[parcel.receiver], parcel)
        for channel in bundle.room:
            self._has_room(channel)
        for channel in bundle.ends:
            self._endings.end_channel(channel)
        for report in bundle.reports:
            self._endings.on_report(process, report)
        for number in bundle.settled:
            self._endings.settle(number)

    def _receive_frame(self) -> None:
        """Handle a frame if one has arrived; if nothing else is to be done, wait for one."""
        wait_s: float | None = 0.0
        if not self._turns:
            self._post.send_all()
            wait_s = None
            if self._timers:
                wait_s = max(0, self._timers[0][0] - self.clock.now()) / NS_PER_S
        elif not self.mesh.waiting:
            return
        received = self.mesh.receive(wait_s)
        if received is not None:
            self.open_bundle(*received)

    def _arrive(self, seat: Seat, parcel: Parcel) -> None:
        if parcel.sender != seat.name:
            channel = (parcel.sender, seat.name)
            seat.received[channel] = seat.received.get(channel, 0) + 1
            self._measured.received += 1
        seat.inbox.append(parcel)
        self._queue_turn(seat)

    def _queue_turn(self, seat: Seat) -> None:
        if seat.inbox and not seat.waits and not seat.in_turn:
            seat.in_turn = True
            self._turns.append(seat)

    def _serve(self, seat: Seat) -> None:
        parcel = seat.inbox.popleft()
        started_ns = self.clock.now()
        if parcel.sender != seat.name and parcel.port != FEEDBACK:
            home = self.system.homes[parcel.sender]
            channel = (parcel.sender, seat.name)
            if home == self.mesh.member:
                self._has_room(channel)
            else:
                self._post.to(home).room.append(channel)
        worked_ns = self.clock.worked_ns()
        reply = seat.cell.deliver(parcel.sender, parcel.port, parcel.payload, started_ns)
        worked_ns = self.clock.worked_ns() - worked_ns
        done_ns = self._measured.ended_ns = self.clock.now()
        if reply.emitted:
            self._collect(reply.emitted)
        rows = sum(sent.rows for sent in reply.sends) if seat.is_source else parcel.rows
        seat.served.add_reply(reply, worked_ns, rows)
        for sent in reply.sends:
            self._send(seat, sent, done_ns)
        seat.timers += len(reply.timers)
        seat.delayed_timers += reply.timers
        self._set_timers(seat)
        self._record(parcel, started_ns, done_ns)
        seat.in_turn = False  # not before: what it sent may have to wait
        self._queue_turn(seat)
        self._endings.end_if_done(seat.name)

    def _send(self, seat: Seat, sent: Sent, now: int) -> None:
        if seat.is_source:
            self._measured.tuples += sent.rows
        for receiver in sent.receivers:
            parcel = Parcel(
                seat.name, receiver, sent.port, seat.next_seq(), sent.handle, now,
                sent.nbytes, sent.rows, sent.span,
            )  # fmt: skip
            self._measured.messages += 1
            self._measured.nbytes += sent.nbytes
            outlet = self._outlets[seat.name, receiver]
            outlet.sent += 1
            if sent.port == FEEDBACK:
                self._leave(outlet, parcel)
            elif outlet.room:
                outlet.room -= 1
                self._leave(outlet, parcel)
            else:
                outlet.waiting.append(parcel)
                seat.waits += 1

    def _leave(self, outlet: Outlet, parcel: Parcel) -> None:
        parcel.left_ns = self.clock.now()
        if outlet.home == self.mesh.member:
            parcel.arrived_ns = parcel.left_ns
            self._arrive(self.seats[parcel.receiver], parcel)
        else:
            self._post.add(outlet.home, parcel)

    def _has_room(self, channel: Channel) -> None:
        outlet = self._outlets[channel]
        if not outlet.waiting:
            outlet.room += 1
            return
        self._leave(outlet, outlet.waiting.popleft())
        seat = self.seats[channel[0]]
        seat.waits -= 1
        self._set_timers(seat)
        self._queue_turn(seat)
        self._endings.end_if_done(seat.name)

    def _set_timers(self, seat: Seat) -> None:
        """Set the timers that the actor asked for, unless it waits: its clock waits with it."""
        if seat.waits:
            return
        now = self.clock.now()
        for at_ns, name in seat.delayed_timers:
            timer = Parcel(seat.name, seat.name, TIMER + name, seat.next_seq(), None, now)
            timer.left_ns = now
            self._timers_set += 1
            heappush(self._timers, (max(at_ns, now), self._timers_set, timer))
        seat.delayed_timers = []

    def _fire_timers(self) -> None:
        if not self._timers:
            return
        now = self.clock.now()
        while self._timers and self._timers[0][0] <= now:
            _, _, timer = heappop(self._timers)
            seat = self.seats[timer.receiver]
            seat.timers -= 1
            timer.arrived_ns = now
            self._arrive(seat, timer)

    def _record(self, parcel: Parcel, started_ns: int, done_ns: int) -> None:
        codes = self.system.codes
        self.recorder.record(
            (
                self._rank[parcel.sender],
                self._rank[parcel.receiver],
                codes.get(parcel.port, codes[TIMER]),
                parcel.seq,
                parcel.nbytes,
                parcel.rows,
                *parcel.span,
                parcel.sent_ns,
                parcel.left_ns,
                parcel.arrived_ns,
                started_ns,
                done_ns,
            )
        )

    def _report(self) -> None:
        now = self.clock.now()
        if now - self._reported_ns >= _REPORT_NS:
            self._reported_ns = now
            measured = self._measured
            at = Progress(now, measured.tuples, measured.received)
            self.mesh.send(self.mesh.driver, at)


@dataclass(eq=False)
class LiveRun:
    """Runs a system in *processes*, which serve this run and no other.

    When it is made, the actors are built. Raise :exc:`ActorError` where one cannot be, and what
    *processes* raise when one of them is gone.
    """

    processes: Processes
    """Where it runs."""
    system: LiveSystem
    """What runs."""
    destination: Destination | None = None
    """Where the processes write results; None: they are among the `entries`."""

    def __post_init__(self) -> None:
        self.processes.serve(serve, self.system, self.destination)
        waiting = set(range(self.processes.count))
        while waiting:
            waiting.discard(self._next()[0])

    def run(self, on_progress: Callable[[Progress], None]) -> Measured:
        """Start the sources, wait until every actor has ended, and return what was measured.

        *on_progress* is called now and then with how far all of them are. Raise :exc:`ActorError`
        when an actor raised, and what *processes* raise when one of them is gone.
        """
        began_ns = moment_ns()
        for process in range(self.processes.count):
            self.processes.send(process, began_ns)
        tally = Tally(self.processes.count, on_progress)
        while tally.running:
            tally.add(*self._next())
        return tally.measured

    def entries(self) -> Iterator[Entry]:
        """Return what all processes wrote down, process by process."""
        return self._fetched()

    def pieces(self) -> Iterator[Piece]:
        """Return, piece by piece, files of processes that cannot write to the destination.

        For a run that has one, after all `entries`. When the last piece has come, the files of the
        other processes are whole, and on the disk.
        """
        return self._fetched()

    def _fetched(self) -> Iterator[Any]:
        for process in range(self.processes.count):
            self.processes.send(process, None)
            while (fetched := self._next()[1]) is not None:
                yield fetched
                self.processes.send(process, None)

    def _next(self) -> tuple[int, Any]:
        received = self.processes.receive()
        assert received is not None
        return received


@dataclass(eq=False)
class Tally:
    """What the processes of a run report, put together."""

    processes: int
    """How many they are."""
    on_progress: Callable[[Progress], None]
    """Called with how far all of them are, at each report."""

    def __post_init__(self) -> None:
        self.running = set(range(self.processes))
        """The processes that have not ended."""
        self.measured = Measured()
        """Of those that have."""
        self._reports: dict[int, Progress] = {}

    def add(self, process: int, news: Progress | Measured) -> None:
        """Take the next report of a *process*, or its last."""
        if isinstance(news, Measured):
            self.running.discard(process)
            self.measured.add(news)
            news = Progress(news.ended_ns, news.tuples, news.received)
        self._reports[process] = news
        reports = self._reports.values()
        self.on_progress(
            Progress(
                max(report.now_ns for report in reports),
                sum(report.tuples for report in reports),
                sum(report.messages for report in reports),
            )
        )


def serve(mesh: Mesh, system: LiveSystem, destination: Destination | None) -> None:
    """Run the actors whose home this member of *mesh* is, then hand out what they wrote down.

    The driver is sent a None when the actors are built, and sends when the run began; it is sent
    `Progress` now and then and `Measured` at the end, and then asks for what was spooled, entry by
    entry, and for files that it does not see; None is behind the last of each.
    """
    seats = system.seats(mesh.member)
    with Part(destination, mesh.member) if destination else nullcontext() as part:
        mesh.send(mesh.driver, None)
        # Others may have started before, and sent something already.
        early: deque[tuple[int, Any]] = deque()
        began_ns = from_driver(mesh, early)
        spool = Spool()
        shard = LiveShard(mesh, system, seats, Clock(began_ns), spool, part)
        shard.begin()
        for process, bundle in early:
            shard.open_bundle(process, bundle)
        measured = shard.run()
        if part:
            part.results.publish()  # which goes on while entries are fetched
        mesh.send(mesh.driver, measured)
        written: list[Iterator[Any]] = [spool.entries()]
        if part:
            written.append(part.pieces())
        for entries in written:
            for entry in entries:
                from_driver(mesh, early)
                mesh.send(mesh.driver, entry)
            from_driver(mesh, early)
            mesh.send(mesh.driver, None)
        from_driver(mesh, early)


def from_driver(mesh: Mesh, others: deque[tuple[int, Any]]) -> Any:
    """Return what the driver sends next; what comes from others meanwhile goes to *others*."""
    while True:
        received = mesh.receive()
        assert received is not None
        if received[0] == mesh.driver:
            return received[1]
        others.append(received)
