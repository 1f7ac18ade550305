"""Live runs that outlive their processes: snapshots while they run, and all go back to the last.

A snapshot is a consistent cut through all processes, after Chandy and Lamport ("Distributed
snapshots", 1985). A process serves one message at a time, so between two of them it is a state:
that of its actors, what waits in their inboxes and for room, its timers, and what it knows of the
ends of channels. Connections between processes keep the order. So the parts of a snapshot are the
processes, not the actors: one that is asked for a snapshot, by the driver or by the first *marker*
from another, keeps its state and sends markers to all others; what still comes from another before
its marker is under way in this snapshot. No process waits for another, as with the aligned barriers
of Flink, which would block where actors answer those that send to them. (In virtual time actors
crash one by one, and `netsim.recovering_kernel` cuts through actors.)

When a process is lost, all are started anew from the last complete snapshot, or from the beginning,
as Flink does by default: what the others did since rests on messages that will not come again.
Sources go on from the position that is their state. Results, and rows of the trace, go to the
driver, which hands them on when the snapshot behind them is complete (`actors.results`) and
discards those that will come again. So they come exactly once, at the price of waiting for the
snapshot, which their latency shows, and of going through one process. States are in the
driver's memory: a live run does not outlive its driver.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from actors.hosting.live.endings import Seat
from actors.hosting.live.live_run import LiveShard, LiveSystem, Tally, from_driver
from actors.hosting.live.post import Bundle, Clock, Entry, Measured, Recorder, moment_ns
from actors.hosting.mesh import Mesh
from actors.hosting.processes import Processes, RayUnavailableError
from actors.hosting.saved_run import pause_after
from actors.protocol import NS_PER_S, Progress
from actors.results import ResultEpochs
from actors.serialisation import from_bytes, to_array
from joins.state import storable

_ATTEMPTS = 3
"""Starts from one snapshot; after so many losses the run gives up."""
_GATHERED = 16
"""Messages whose results go to the driver together."""


@storable
@dataclass(frozen=True, slots=True)
class EpochEntry:
    """Results with the times they left, or trace rows, from after snapshot number *epoch*."""

    epoch: int
    entry: Entry


@storable
@dataclass(frozen=True, slots=True)
class SnapshotPart:
    """A process's part of a snapshot: its number and, as bytes, state and frames under way."""

    snapshot: int
    state: np.ndarray


class _DriverRecorder(Recorder):
    """Sends the driver results and trace rows piece by piece."""

    def __init__(self, mesh: Mesh, clock: Clock) -> None:
        super().__init__()
        self._mesh, self._clock = mesh, clock
        self._results: list[Any] = []
        self.epoch = 0

    def emit(self, results: list[Any]) -> None:
        """Take results that left the system just now."""
        self._results.append([self._clock.now(), results])
        if len(self._results) == _GATHERED:
            self._write_results()

    def flush(self) -> None:
        """Send what has gathered."""
        if self._rows:
            self._write_rows()
        if self._results:
            self._write_results()

    def _write_results(self) -> None:
        self._write(self._results)
        self._results = []

    def _write(self, entry: Entry) -> None:
        self._mesh.send(self._mesh.driver, EpochEntry(self.epoch, entry))


class RecoveringShard(LiveShard):
    """A live shard that takes part in snapshots, and can begin from one; parameters as for that."""

    recorder: _DriverRecorder

    def __init__(
        self,
        mesh: Mesh,
        system: LiveSystem,
        seats: Mapping[str, Seat],
        clock: Clock,
    ) -> None:
        super().__init__(mesh, system, seats, clock, _DriverRecorder(mesh, clock))
        self._others = set(range(mesh.driver)) - {mesh.member}
        self._unmarked: set[int] = set()
        """Processes whose marker has not come: what they send is under way in the snapshot."""
        self._state: np.ndarray | None = None
        self._under_way: list[tuple[int, Bundle]] = []

    def restore(self, part: SnapshotPart) -> None:
        """Begin from this process's part of a snapshot; in place of `begin`."""
        state, under_way = from_bytes(part.state.data)
        seats, outlets, endings, self._timers, self._timers_set, self._measured = from_bytes(
            state.data
        )
        self.recorder.epoch = part.snapshot
        for name, seat in self.seats.items():
            seat.restore(seats[name])
            self._queue_turn(seat)
        self._outlets.update(outlets)
        self._endings.restore(endings)
        for process, bundle in under_way:
            self.open_bundle(process, bundle)

    def run(self) -> Measured:
        """As `LiveShard.run`; afterwards the driver has all results and trace rows."""
        measured = super().run()
        self.recorder.flush()
        return measured

    def open_bundle(self, process: int, bundle: Bundle | int) -> None:
        """Handle what another process sent: a number is the marker of that snapshot."""
        if isinstance(bundle, int):
            self._receive_marker(process, bundle)
            return
        if process in self._unmarked:
            self._under_way.append((process, bundle))
        super().open_bundle(process, bundle)

    def _receive_marker(self, process: int, snapshot: int) -> None:
        if snapshot > self.recorder.epoch:
            self._cut(snapshot)
        self._unmarked.discard(process)
        if self._state is not None and not self._unmarked:
            part = SnapshotPart(snapshot, to_array([self._state, self._under_way]))
            self.mesh.send(self.mesh.driver, part)
            self._state, self._under_way = None, []

    def _cut(self, snapshot: int) -> None:
        """Keep the present state, and begin a new epoch: what was sent so far belongs before it."""
        self._post.send_all()
        self.recorder.flush()
        self.recorder.epoch = snapshot
        seats = {name: seat.snapshot() for name, seat in self.seats.items()}
        endings, timers = self._endings.snapshot(), (self._timers, self._timers_set)
        self._state = to_array([seats, self._outlets, endings, *timers, self._measured])
        self._unmarked = set(self._others)
        for process in sorted(self._others):
            self.mesh.send(process, snapshot)


def serve(mesh: Mesh, system: LiveSystem) -> None:
    """Run the actors whose home this member of *mesh* is.

    The driver is sent a None when the actors are built, and sends when the run began and a
    `SnapshotPart` to begin from, or None; then, now and then, the number of a snapshot to be taken.
    It is sent `EpochEntry`, `SnapshotPart` and `Progress`, and `Measured` when every actor here has
    ended.
    """
    seats = system.seats(mesh.member)
    mesh.send(mesh.driver, None)
    early: deque[tuple[int, Any]] = deque()
    began_ns, part = from_driver(mesh, early)
    shard = RecoveringShard(mesh, system, seats, Clock(began_ns))
    # First, for a marker that was early cuts at once, and what it cuts goes on from there.
    if part is None:
        shard.begin()
    else:
        shard.restore(part)
    for process, frame in early:
        shard.open_bundle(process, frame)
    mesh.send(mesh.driver, shard.run())
    while True:  # others may need this one as a member until the driver is done
        from_driver(mesh, early)
        early.clear()


@dataclass(slots=True)
class _Taking:
    """A snapshot that is due, or is being taken since *began_ns*, with the parts that are there."""

    due_ns: int
    began_ns: int = 0
    parts: dict[int, SnapshotPart] = field(default_factory=dict)


@dataclass(eq=False)
class RecoveringRun:
    """Runs a system in processes that are replaced when one is lost.

    Attributes
    ----------
    losses
        How often processes were lost.
    snapshots, snapshot_bytes
        Complete ones, and the bytes of them all.
    """

    start: Callable[[], Processes]
    """Returns processes that serve nobody yet, in the place of those it returned before."""
    system: LiveSystem
    """What runs."""
    _: KW_ONLY
    lost: type[Exception]
    """The error that processes raise when one of them is lost."""
    interval_ns: int
    """Real time from one snapshot to the next, at the least: more where they take long."""
    collect: Callable[[list[Any]], None]
    """Takes results, or rows of the trace, that will not come again."""

    def __post_init__(self) -> None:
        self._results = ResultEpochs(self.collect, at_once=False)
        self._last: dict[int, SnapshotPart] = {}
        self._epoch = self._since_last = 0
        self.losses = self.snapshots = self.snapshot_bytes = 0
        self._began_ns: int | None = None
        self._taking = _Taking(0)

    def run(self, on_progress: Callable[[Progress], None]) -> Measured:
        """As `LiveRun.run`; then everything has been collected.

        Raise :exc:`RayUnavailableError` when processes are lost again and again.
        """
        while True:
            try:
                measured = self._attempt(on_progress)
            except self.lost as lost:
                self.losses += 1
                self._since_last += 1
                self._results.discard(self._epoch)
                if self._since_last > _ATTEMPTS:
                    raise RayUnavailableError(
                        f"{lost}. That was loss number {self._since_last} since the last snapshot: "
                        "if processes need that long, take snapshots more often (recovery.interval)"
                    ) from None
            else:
                assert self._began_ns
                self._results.commit(None, Clock(self._began_ns).now())
                return measured

    def _attempt(self, on_progress: Callable[[Progress], None]) -> Measured:
        """Run from the last snapshot until every actor has ended; return what was measured."""
        processes = self.start()
        processes.serve(serve, self.system)
        for _ in range(processes.count):
            processes.receive()
        self._began_ns = self._began_ns or moment_ns()
        for process in range(processes.count):
            processes.send(process, [self._began_ns, self._last.get(process)])
        clock = Clock(self._began_ns)
        self._taking = _Taking(due_ns=clock.now() + self.interval_ns)
        tally = Tally(processes.count, on_progress)
        while tally.running:
            # One that has ended takes no part in another snapshot.
            all_run = len(tally.running) == processes.count
            received = self._receive(processes, clock, may_begin=all_run)
            if received is None:
                continue
            process, news = received
            if isinstance(news, EpochEntry):
                self._add(news)
            elif isinstance(news, SnapshotPart):
                self._add_part(process, news, processes.count, clock)
            else:
                tally.add(process, news)
        return tally.measured

    def _receive(
        self, processes: Processes, clock: Clock, *, may_begin: bool
    ) -> tuple[int, Any] | None:
        """Return what comes next, or None; begin a snapshot when it is due, if it may begin."""
        taking = self._taking
        if taking.began_ns or not may_begin:
            return processes.receive()
        left_ns = taking.due_ns - clock.now()
        if left_ns > 0:
            return processes.receive(left_ns / NS_PER_S)
        taking.began_ns = clock.now()
        for process in range(processes.count):
            processes.send(process, self._epoch + 1)
        return None

    def _add(self, written: EpochEntry) -> None:
        if isinstance(written.entry, np.ndarray):
            self._results.add(written.epoch, [written.entry], 0)
        else:
            for emitted_ns, results in written.entry:
                self._results.add(written.epoch, results, emitted_ns)

    def _add_part(self, process: int, part: SnapshotPart, processes: int, clock: Clock) -> None:
        """Take a part of the snapshot, which is complete with the last one."""
        parts = self._taking.parts
        parts[process] = part
        if len(parts) < processes:
            return
        self._last, self._since_last = parts, 0
        self._epoch += 1
        self.snapshots += 1
        self.snapshot_bytes += sum(len(part.state) for part in parts.values())
        self._results.commit(self._epoch, clock.now())
        now = clock.now()
        pause_ns = pause_after(now - self._taking.began_ns, self.interval_ns)
        self._taking = _Taking(due_ns=now + pause_ns)
