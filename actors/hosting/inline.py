"""Actors in this process: an actor in its cell, as every host has it, and a host of cells."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any
from zlib import crc32

import numpy as np

from actors.protocol import (
    NO_SPAN,
    Actor,
    ActorError,
    ActorSpec,
    Message,
    Payload,
    Reply,
    Sent,
    Wiring,
)
from actors.serialisation import from_bytes, to_array, to_bytes
from joins.errors import JoinsimError
from joins.state import array_bytes
from joins.work import NO_WORK, Step, Work

Clock = Callable[[], float]
"""Seconds since some moment: of real time or of a processor's."""


def _generator(name: str, seed: int) -> np.random.Generator:
    """Return an actor's generator, seeded by name: one added elsewhere moves no other's stream."""
    return np.random.default_rng([seed, crc32(name.encode())])


_INTEGERS = (int, np.integer)


class RecordingContext:
    """Records what one actor asks for; `take` returns the record and starts a new one."""

    __slots__ = ("_ports", "_reply", "name", "now", "rng")

    def __init__(self, name: str, ports: Mapping[str, tuple[str, ...]], seed: int) -> None:
        self.name = name
        self.now = 0
        self.rng = _generator(name, seed)
        self._ports = ports
        self._reply = Reply()

    def peers(self, port: str) -> tuple[str, ...]:
        """Return the receivers wired to *port*; raise :exc:`KeyError` naming an unknown port."""
        if port not in self._ports:
            known = ", ".join(sorted(self._ports)) or "none"
            raise KeyError(f"{self.name} has no port {port!r}; it has: {known}")
        return self._ports[port]

    def send(self, port: str, payload: Payload, to: int | tuple[int, ...] | None = None) -> None:
        """Record a send to one peer of *port*, to several, or to all.

        Raise :exc:`KeyError` naming an unknown port, :exc:`IndexError` where no peer is at *to*,
        and :exc:`TypeError` for what is no payload.
        """
        receivers = self._ports.get(port) or self.peers(port)
        try:
            if to is not None:
                places = to if isinstance(to, tuple) else (to,)
                if min(places, default=0) < 0:
                    raise IndexError
                receivers = tuple(receivers[place] for place in places)
        except (IndexError, TypeError):
            raise IndexError(
                f"port {port!r}: to = {to!r}; it has receivers 0 to {len(receivers) - 1}, "
                "and takes one of these, a tuple of them, or None"
            ) from None
        try:
            sent = Sent(port, receivers, payload, payload.nbytes, payload.rows, payload.span)
        except AttributeError:
            if isinstance(payload, Payload):
                raise
            kind = type(payload).__name__
            raise TypeError(f"port {port!r}: {kind} does not derive from Payload") from None
        if receivers:  # else nobody would read it, and hosts wait for that to let go of it
            self._reply.sends.append(sent)

    def set_timer(self, at: int, name: str) -> None:
        """Record a timer; raise :exc:`TypeError` for a time or a name that is none."""
        if not _is_int64(at) or not isinstance(name, str):
            raise TypeError(
                f"a timer at {at!r} called {name!r}: the time is nanoseconds, an int64, and the "
                "name a text"
            )
        self._reply.timers.append((at, name))

    def charge(self, work: Work, step: Step | None = None) -> None:
        """Add *work* to the record; raise :exc:`TypeError` where it is none."""
        if type(work) is not Work or not (step is None or type(step) is Step):
            raise TypeError(
                f"the work {work!r} of the step {step!r}: a Work is charged, of a Step or of None"
            )
        reply = self._reply
        if step is not None:
            reply.steps.append((step, work))
        else:
            reply.work = work if reply.work is NO_WORK else reply.work + work

    def emit(self, results: Any) -> None:
        """Record results that leave the system."""
        self._reply.emitted.append(results)

    def take(self) -> Reply:
        """Return what was recorded since the last call."""
        reply, self._reply = self._reply, Reply()
        return reply


class MeasuredMessages:
    """Which messages of one receiver count with the arrivals *first* to *stop* - 1.

    Those that are about any of them; and of those about none, such as timers and punctuations, the
    ones that follow such a message. They are asked about in the order in which they are served.
    """

    __slots__ = ("_counts", "_first", "_stop")

    def __init__(self, first: int, stop: int) -> None:
        self._first, self._stop = first, stop
        self._counts = False

    def counts(self, span: tuple[int, int]) -> bool:
        """Return whether the next message counts, which is about the arrivals of *span*."""
        first, last = span
        if last >= 0:
            self._counts = bool(last >= self._first and first < self._stop)
        return self._counts


class Cell(RecordingContext):
    """An actor, and the context that records for it."""

    __slots__ = ("_clock", "_is_ours", "_measured", "_seed", "_spec", "actor", "seconds")

    def __init__(
        self,
        name: str,
        spec: ActorSpec,
        wiring: Wiring,
        seed: int,
        clock: Clock = time.perf_counter,
        measured: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(name, wiring.get(name, {}), seed)
        self._spec, self._seed, self._is_ours = spec, seed, spec.is_ours
        self.actor = self._build()
        self.seconds = 0.0
        """Time that the actor has spent receiving, by the clock that the cell was given: of the
        `MeasuredMessages` where some arrivals are *measured*, by default of all messages."""
        self._clock = clock
        self._measured = MeasuredMessages(*measured) if measured else None

    def snapshot(self) -> np.ndarray:
        """Return the state of the actor and of its generator, as bytes.

        Raise :exc:`ActorError` naming the actor whose state has what cannot be stored.
        """
        try:
            return to_array([self.actor.snapshot(), self.rng.bit_generator.state])
        except Exception as error:
            raise ActorError(
                f"the state of {self.name} cannot be stored: {type(error).__name__}: {error}"
            ) from error

    def restore(self, state: np.ndarray | None) -> None:
        """Replace the actor by a new one in *state*; None: in its first state."""
        self.actor = self._build()
        self.rng = _generator(self.name, self._seed)
        if state is not None:
            actor, self.rng.bit_generator.state = from_bytes(state.data)
            self.actor.restore(actor)

    def deliver(self, sender: str, port: str, payload: Any, now: int) -> Reply:
        """Let the actor receive a message at virtual time *now*; return its reply.

        Raise :exc:`ActorError` naming actor, port and time when the actor raises; errors that the
        user can fix pass through.
        """
        self.now = now
        self._reply = reply = Reply(NO_WORK, [], [], [], [])  # faster than the defaults
        start = self._clock()
        try:
            self.actor.receive(Message(sender, port, payload), self)
            if not self._is_ours:
                _check_sizes(reply.sends)
                if reply.steps or reply.work is not NO_WORK:  # the check takes a microsecond
                    _check_work([reply.work, *(work for _, work in reply.steps)])
        except JoinsimError:  # about the data, say: no fault of the actor's
            raise
        except (Exception, SystemExit) as error:
            raise ActorError(
                f"{self.name} failed on a message from {sender} on port {port!r} at "
                f"{now / 1e6:.3f} ms: {type(error).__name__}: {error}"
            ) from error
        seconds = self._clock() - start
        measured = self._measured
        if measured is None or measured.counts(NO_SPAN if payload is None else payload.span):
            self.seconds += seconds
        return reply

    def _build(self) -> Actor:
        """Return the actor in its first state; raise :exc:`ActorError` where that raises."""
        try:
            return self._spec.build()
        except JoinsimError:
            raise
        except (Exception, SystemExit) as error:
            raise ActorError(
                f"{self.name} could not be built: {type(error).__name__}: {error}"
            ) from error


def _check_sizes(sends: list[Sent]) -> None:
    """Raise :exc:`ValueError` where a payload of one's own has sizes that cannot be."""
    for sent in sends:
        nbytes, rows, span = sent.nbytes, sent.rows, sent.span
        if type(nbytes) is int and type(rows) is int and span is NO_SPAN and nbytes | rows >= 0:
            continue  # as most are, and soon seen
        sizes = (nbytes, rows, *span) if type(span) is tuple else ()
        if len(sizes) != 4 or not all(map(_is_int64, sizes)) or min(nbytes, rows) < 0:
            raise ValueError(
                f"{type(sent.handle).__name__} on port {sent.port!r}: nbytes = {nbytes!r}, "
                f"rows = {rows!r}, span = {span!r}; nbytes and rows are integers, 0 or more, and "
                "a span is a tuple of two"
            )


def _check_work(charged: list[Work]) -> None:
    """Raise :exc:`ValueError` where an actor of one's own charged work that cannot be."""
    for work in charged:
        if not all(isinstance(counter, _INTEGERS) and counter >= 0 for counter in work):
            raise ValueError(f"it charged {work}: the counters of Work are integers, 0 or more")


def _is_int64(number: Any) -> bool:
    return isinstance(number, _INTEGERS) and bool(-(2**63) <= number < 2**63)


@dataclass(eq=False)
class InlineHost:
    """Runs actors in this process, each message at the moment it arrives."""

    specs: Mapping[str, ActorSpec]
    """Actor name to how it is built."""
    wiring: Wiring
    """Who is wired to whom."""
    seed: int
    """The run's seed."""
    _: KW_ONLY
    serialise: bool = False
    """Pass every payload through the serialisation that another process would force on it, and
    freeze its arrays, so that nothing works here that would fail elsewhere."""
    clock: Clock = time.perf_counter
    """What the time spent in actors is read from. The processor's own leaves out what other
    programs took meanwhile, and reading it takes longer than the kernel's part of a message."""
    measured: tuple[int, int] | None = None
    """The arrivals whose messages `seconds` are of, the first and the one past the last; by default
    they are of all messages."""

    def __post_init__(self) -> None:
        self.cells = {
            name: Cell(name, spec, self.wiring, self.seed, self.clock, self.measured)
            for name, spec in self.specs.items()
        }

    def submit(
        self, ticket: int, actor: str, sender: str, port: str, handle: Any, now: int
    ) -> Reply:
        """Run the actor at once; its state has then changed in the order of arrival.

        Raise errors that the user can fix.
        """
        if isinstance(handle, np.ndarray):  # a payload that was written down
            handle = from_bytes(handle.data)
        if self.serialise and handle is not None:
            handle = from_bytes(to_bytes(handle))  # a copy, with arrays that are read-only
        try:
            return self.cells[actor].deliver(sender, port, handle, now)
        except ActorError as error:
            return Reply(failure=error)

    def reply(self, ticket: int) -> Reply:
        """Raise :exc:`KeyError`: every message was answered at once."""
        raise KeyError(ticket)

    def snapshot(self, actor: str) -> np.ndarray:
        """Return the state of *actor*, as bytes."""
        return self.cells[actor].snapshot()

    def restore(self, actor: str, state: np.ndarray | None) -> None:
        """Replace *actor* by a new one in *state*; None: in its first state."""
        self.cells[actor].restore(state)

    def keep(self, actor: str, handle: Any) -> Any:
        """Return *handle*: the payload itself, which no actor changes."""
        return handle

    def forget(self) -> None:
        """Do nothing: every message was answered at once."""

    def seconds(self) -> dict[str, float]:
        """Return actor name to the time spent in it, by the host's clock."""
        return {name: cell.seconds for name, cell in self.cells.items()}

    def state_bytes(self) -> dict[str, int]:
        """Return actor name to the bytes of the arrays in its state now, each array once."""
        return {name: array_bytes(cell.actor) for name, cell in self.cells.items()}
