"""The messages, the clock and the spools of a live run's processes.

A live run has no virtual time. All processes count from one moment. On one machine their clocks
agree to the microsecond; between machines as well as the machines' own clocks do, so that latencies
across them are as good as those.

Results and the trace do not go through the process that started the run. They are written down on
the machine where they arise, and read by others only when all clocks have stopped.
"""

from __future__ import annotations

import struct
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from actors.hosting.mesh import Mesh
from actors.protocol import NO_SPAN, Channel, Reply
from actors.serialisation import from_bytes, to_parts
from joins.state import storable
from joins.work import NO_WORK, Step, Work

_IN_MEMORY_BYTES = 2**26
_ENTRY_ROWS = 16_384
_LENGTH = struct.Struct("<Q")
_READINGS = 8
"""How often both clocks of a machine are read."""

Entry = list[Any] | np.ndarray
"""Results in the order they left; or rows of the trace, int64, in the order of service, by columns
as `netsim.trace` has them."""


def moment_ns() -> int:
    """Return the present, for other processes to count from."""
    return time.time_ns()


class Clock:
    """Nanoseconds since the run began, by `moment_ns` at *began_ns*; they never go back."""

    def __init__(self, began_ns: int) -> None:
        # A thread may be set aside between reading one clock and the other: of several pairs of
        # readings the closest one counts, or a message could arrive before it has left.
        pairs = []
        for _ in range(_READINGS):
            before, at, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
            pairs.append((after - before, before - at))
        _, ahead_ns = min(pairs)
        self._zero_ns = began_ns + ahead_ns

    def now(self) -> int:
        """Return the nanoseconds since the run began."""
        return time.monotonic_ns() - self._zero_ns

    @staticmethod
    def processor_ns() -> int:
        """Return the processor time that all threads of this process have used."""
        return time.process_time_ns()

    @staticmethod
    def worked_ns() -> int:
        """Return the processor time that this thread has used."""
        return time.thread_time_ns()


class Recorder(ABC):
    """Takes results and rows of a trace, and writes them entry by entry."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, ...]] = []

    def emit(self, results: list[Any]) -> None:
        """Take results that left the system."""
        self._write(results)

    def record(self, row: tuple[int, ...]) -> None:
        """Take one row of the trace."""
        self._rows.append(row)
        if len(self._rows) == _ENTRY_ROWS:
            self._write_rows()

    def _write_rows(self) -> None:
        self._write(np.array(self._rows, np.int64))
        self._rows.clear()

    @abstractmethod
    def _write(self, entry: Entry) -> None: ...


class Spool(Recorder):
    """Spools entries in memory, then in a temporary file."""

    def __init__(self) -> None:
        super().__init__()
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115

    def entries(self) -> Iterator[Entry]:
        """Return all that was taken, some at a time; once only."""
        if self._rows:
            self._write_rows()
        with self._file:
            self._file.seek(0)
            while size := self._file.read(_LENGTH.size):
                yield from_bytes(self._file.read(*_LENGTH.unpack(size)))

    def _write(self, entry: Entry) -> None:
        parts = to_parts(entry)
        self._file.write(_LENGTH.pack(sum(map(len, parts))))
        self._file.writelines(parts)


_FULL_BYTES = 2**18
_LINGER_NS = 500_000
"""A frame costs some ten microseconds at either end: what gathers for so long pays for it."""


@storable
@dataclass(slots=True)
class Parcel:
    """A message or a timer on its way, with what the trace records of it.

    Attributes
    ----------
    seq
        Counts the sender's messages and timers.
    sent_ns, left_ns, arrived_ns
        When the sender was done with it, when it had room to leave, when it arrived; ns.
    """

    sender: str
    receiver: str
    port: str
    seq: int
    payload: Any
    sent_ns: int
    nbytes: int = 0
    rows: int = 0
    span: tuple[int, int] = NO_SPAN
    left_ns: int = 0
    arrived_ns: int = 0


@storable
@dataclass(slots=True)
class ComponentReport:
    """One process's part of a feedback component, as it was when nothing was left to do there."""

    component: int
    """Its number."""
    sent: dict[Channel, int]
    received: dict[Channel, int]
    """Messages so far per channel inside the component: of senders, of receivers that live
    there."""


@storable
@dataclass(slots=True)
class Bundle:
    """Everything waiting to go to one process, sent as one frame because each frame has a cost."""

    parcels: list[Parcel] = field(default_factory=list)
    """Messages, in the order they were sent."""
    room: list[Channel] = field(default_factory=list)
    """Channels whose receiver has begun with a message, once for each, so that it has room for
    another."""
    ends: list[Channel] = field(default_factory=list)
    """Channels on which no more will come: the punctuation. It is behind all parcels."""
    reports: list[ComponentReport] = field(default_factory=list)
    """For the first process of a component."""
    settled: list[int] = field(default_factory=list)
    """Components that have come to rest, by number."""
    nbytes: int = 0
    """Of the parcels."""
    since_ns: int = 0
    """When the first of all this came in."""


Alike = tuple[str, int, int]
"""What calls of an operation have in common: name, and powers of 2 of tuples and size."""


@storable
@dataclass(slots=True)
class Calls:
    """Calls of one operation: how many, and their tuples, sizes and work added up."""

    count: int = 0
    rows: int = 0
    size: int = 0
    work: Work = NO_WORK

    def add(self, other: Calls) -> None:
        """Add other calls."""
        self.count += other.count
        self.rows += other.rows
        self.size += other.size
        self.work += other.work


@storable
@dataclass(slots=True)
class Served:
    """Totals of serving one actor or several."""

    worked_ns: int = 0
    """Processor time spent in it."""
    messages: int = 0
    """Messages and timers that it received."""
    rows: int = 0
    """Tuples that came with them; of a source, tuples that it sent."""
    work: Work = NO_WORK
    """What it counted that belongs to no step."""
    calls: dict[Alike, Calls] = field(default_factory=dict)
    """The calls of its steps."""

    def add(self, other: Served) -> None:
        """Add what else was served."""
        self.worked_ns += other.worked_ns
        self.messages += other.messages
        self.rows += other.rows
        self.work += other.work
        for alike, calls in other.calls.items():
            self.calls.setdefault(alike, Calls()).add(calls)

    def add_reply(self, reply: Reply, worked_ns: int, rows: int) -> None:
        """Add a message of *rows* tuples, what it led to, and how long that took."""
        self.worked_ns += worked_ns
        self.messages += 1
        self.rows += rows
        self.work += reply.work
        for step, work in reply.steps:
            alike = (step.name, step.rows.bit_length(), step.size.bit_length())
            self.calls.setdefault(alike, Calls()).add(Calls(1, step.rows, step.size, work))

    def steps(self) -> Iterator[tuple[Step, int, Work]]:
        """Yield, of calls that are alike, the average one, how many they are, and their work."""
        for (name, _, _), calls in self.calls.items():
            step = Step(name, calls.rows // calls.count, calls.size // calls.count)
            yield step, calls.count, calls.work


@storable
@dataclass(slots=True)
class Measured:
    """What a process, or all of them, measured until all actors had ended."""

    ended_ns: int = 0
    """When the last message had been served."""
    tuples: int = 0
    messages: int = 0
    nbytes: int = 0
    """Tuples that sources sent; messages, and their bytes, that actors sent."""
    received: int = 0
    """Messages that actors received from others."""
    sent: dict[Channel, int] = field(default_factory=dict)
    """Messages that actors sent, by sender and receiver."""
    peak_bytes: int = 0
    """Most memory of the process."""
    processor_ns: dict[int, int] = field(default_factory=dict)
    """Process to the processor time it used while it served."""
    served: dict[str, Served] = field(default_factory=dict)
    state_bytes: dict[str, int] = field(default_factory=dict)
    """Actor name to what serving it came to, and to the bytes of its arrays at the end."""

    def add(self, other: Measured) -> None:
        """Add what another process measured."""
        self.ended_ns = max(self.ended_ns, other.ended_ns)
        self.tuples += other.tuples
        self.messages += other.messages
        self.nbytes += other.nbytes
        self.received += other.received
        self.sent |= other.sent
        self.peak_bytes += other.peak_bytes
        self.processor_ns |= other.processor_ns
        self.served |= other.served
        self.state_bytes |= other.state_bytes


class Post:
    """Bundles for each of the other processes."""

    def __init__(self, mesh: Mesh, clock: Clock) -> None:
        self._mesh, self._clock = mesh, clock
        self._bundles: dict[int, Bundle] = {}

    def to(self, home: int) -> Bundle:
        """Return the bundle for a process, to add to."""
        bundle = self._bundles.get(home)
        if bundle is None:
            bundle = self._bundles[home] = Bundle(since_ns=self._clock.now())
        return bundle

    def add(self, home: int, parcel: Parcel) -> None:
        """Put a message into the bundle for a process."""
        bundle = self.to(home)
        bundle.parcels.append(parcel)
        bundle.nbytes += parcel.nbytes

    def send_due(self) -> None:
        """Send the bundles that are full, or have gathered for long."""
        if self._bundles:
            since_ns = self._clock.now() - _LINGER_NS
            for home, bundle in list(self._bundles.items()):
                if bundle.nbytes >= _FULL_BYTES or bundle.since_ns <= since_ns:
                    self._mesh.send(home, self._bundles.pop(home))

    def send_all(self) -> None:
        """Send all bundles."""
        while self._bundles:
            home, bundle = self._bundles.popitem()
            self._mesh.send(home, bundle)
