"""What an actor is, what it may ask for, and how a host runs it.

An actor is sans-I/O: it has no process, no network and no clock but `Context.now`. Whatever it
wants done is recorded on its context; a host runs the actor and hands the record to the kernel.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np

from joins.errors import JoinsimError
from joins.state import Stateful, storable
from joins.work import NO_WORK, Step, Work

NS_PER_S = 1_000_000_000
"""Nanoseconds a second: virtual time is in nanoseconds."""

START = "start"
"""The port on which a source gets its first message, at virtual time 0."""
TIMER = "timer:"
"""Prefix of the port on which a timer's message arrives; the timer's name follows."""

FEEDBACK = "feedback"
"""The port on which an actor answers those that send to it.

An answer takes no room in an inbox: two actors that send to each other would else each wait for the
other's room. There are no more answers than messages that did take room."""

NO_SPAN = (-1, -1)

HEADER_BYTES = 32
"""Size on the wire of what frames a payload: its kind and length, and at most three numbers such as
a watermark, an epoch or a position, beside which PE, stream or step it is of. A punctuation is a
header alone."""

_NUMBER_BYTES = 8


class Payload:
    """What travels between actors: the network sees its size, the trace what it is about.

    A payload is a frozen dataclass that names the fields with bytes and rows of their own::

        @dataclass(frozen=True, slots=True)
        class Share(Payload):
            parts: tuple[Probes, ...]
            horizon: tuple[int, ...]
            span: tuple[int, int]

            bytes_of = ("parts", "horizon")
            rows_of = ("parts",)

    `nbytes` and `rows` follow. A named field is an array, a record with ``nbytes`` and a length, a
    number (8 bytes), None, or a tuple of these; fields without a name travel in the frame, or not
    at all. The parts that a payload is made of may derive from this class too.
    """

    __slots__ = ()

    frame_bytes: ClassVar[int] = HEADER_BYTES
    """Size on the wire of what frames it."""
    bytes_of: ClassVar[tuple[str, ...]] = ()
    rows_of: ClassVar[tuple[str, ...]] = ()

    if TYPE_CHECKING:

        @property
        def span(self) -> tuple[int, int]:
            """First and last arrival number it speaks of: a field, or else `NO_SPAN`."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        storable(cls)
        for name in ("bytes_of", "rows_of"):
            if isinstance(getattr(cls, name), str):
                raise TypeError(f"{cls.__name__}.{name} is a string: write a tuple of names")
        # Not set in the base, where a dataclass would see the default of a field of this name.
        if not hasattr(cls, "span") and "span" not in vars(cls).get("__annotations__", ()):
            cls.span = NO_SPAN  # type: ignore[method-assign, assignment]

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        nbytes = self.frame_bytes
        for name in self.bytes_of:
            value = getattr(self, name)
            for part in value if type(value) is tuple else (value,):
                if part is not None:
                    try:
                        nbytes += _NUMBER_BYTES if type(part) is int else part.nbytes
                    except AttributeError:
                        kinds = "an array, a record with nbytes, an int, None, or a tuple of these"
                        raise TypeError(
                            f"{type(self).__name__}.{name} has a {type(part).__name__}, and takes "
                            f"{kinds}"
                        ) from None
        return nbytes

    @property
    def rows(self) -> int:
        """Tuples it speaks of; what handling it costs at the least is charged by the row."""
        rows = 0
        for name in self.rows_of:
            value = getattr(self, name)
            for part in value if type(value) is tuple else (value,):
                rows += len(part)
        return rows


class Message(NamedTuple):
    """One message as its receiver sees it: who sent it, on which port, and what."""

    sender: str
    port: str
    payload: Any


class Context(Protocol):
    """What an actor can see and ask for while it receives a message."""

    name: str
    now: int
    rng: np.random.Generator

    def peers(self, port: str) -> tuple[str, ...]:
        """Return the receivers wired to *port*, in the order of their index."""

    def send(self, port: str, payload: Payload, to: int | tuple[int, ...] | None = None) -> None:
        """Send *payload* to the peer at index *to* of *port*, to several, or to all of them.

        It leaves when the service of the present message is complete.
        """

    def set_timer(self, at: int, name: str) -> None:
        """Ask for a message on port ``timer:NAME`` at virtual time *at*, in nanoseconds.

        It fires no earlier than the present message's completion.
        """

    def charge(self, work: Work, step: Step | None = None) -> None:
        """Add *work* to what the present message costs: that of a *step*, if it is known."""

    def emit(self, results: Any) -> None:
        """Hand *results* out of the system: they are the run's output."""


class Actor(Stateful, ABC):
    """A role as a state machine: its state changes only in `receive` and `restore`.

    A class names the attributes that are its state once, in `state`; `snapshot`, `restore` and
    `nbytes` follow (`joins.state`).
    """

    @abstractmethod
    def receive(self, message: Message, context: Context) -> None:
        """Handle one message: change the state, and record on *context* what follows from it."""


@dataclass(frozen=True, kw_only=True)
class ActorSpec:
    """How to build an actor, wherever it is to live."""

    actor: type[Actor]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """An importable class and its arguments."""
    only_emits: bool = False
    """The actor emits what it receives and asks for nothing else: no sends, timers or work. Nothing
    in virtual time then has to wait for it."""

    @property
    def is_ours(self) -> bool:
        """Whether the class is of this package; the user's own may send and emit what it likes."""
        return self.actor.__module__.partition(".")[0] == __name__.partition(".")[0]

    def build(self) -> Actor:
        """Return a new actor in its first state."""
        return self.actor(**self.arguments)


Wiring = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Actor name to port to the names of the receivers, in the order of their index."""

Channel = tuple[str, str]
"""Sender and receiver."""


def channels(wiring: Wiring) -> list[Channel]:
    """Return all channels, each once, in the order of wiring."""
    return list(
        dict.fromkeys(
            (sender, receiver)
            for sender, ports in wiring.items()
            for receivers in ports.values()
            for receiver in receivers
        )
    )


@dataclass(slots=True)
class Sent:
    """One payload on its way: the kernel sees its size, the host alone can open its handle."""

    port: str
    receivers: tuple[str, ...]
    handle: Any
    nbytes: int
    rows: int
    span: tuple[int, int]


@dataclass(slots=True)
class Reply:
    """What receiving one message led to."""

    work: Work = NO_WORK
    """All of its work that belongs to no step."""
    sends: list[Sent] = field(default_factory=list)
    timers: list[tuple[int, str]] = field(default_factory=list)
    emitted: list[Any] = field(default_factory=list)
    """What leaves, when to receive again, and results."""
    steps: list[tuple[Step, Work]] = field(default_factory=list)
    """Its other work, step by step."""
    failure: ActorError | None = None
    """What the actor raised; then there is nothing else."""


class Host(Protocol):
    """Runs actors. Messages of one actor are received in the order of their submission."""

    def submit(
        self, ticket: int, actor: str, sender: str, port: str, handle: Any, now: int
    ) -> Reply | None:
        """Have *actor* receive a message that arrives at virtual time *now*.

        *handle* is None or came out of a `Reply` of this host. Return the reply if it is there at
        once; else it is fetched by *ticket*.
        """

    def reply(self, ticket: int) -> Reply:
        """Return the reply to a submitted message, waiting for it if need be; once only."""


class RestartingHost(Host, Protocol):
    """A host whose actors can go back to an earlier state."""

    def snapshot(self, actor: str) -> Any:
        """Return the state of *actor* after all messages submitted to it.

        It is bytes in an array, or what this host takes in place of them, of the same length.
        """

    def restore(self, actor: str, state: Any) -> None:
        """Replace *actor* by a new one in *state*; None: in its first state."""

    def keep(self, actor: str, handle: Any) -> Any:
        """Return a handle of the same payload that may be submitted to *actor* at any time.

        The first one is submitted after that, as it would have been.
        """

    def forget(self) -> None:
        """Drop all replies that were not fetched, and payloads that were not submitted."""


@storable
@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is, or one of its processes."""

    now_ns: int
    """The run's time, virtual or real."""
    tuples: int
    """Tuples that sources have sent."""
    messages: int
    """Messages that actors have sent, in virtual time; in a live run, those that they received."""


class ActorError(JoinsimError):
    """An actor raised while receiving; names the actor and what it was receiving."""

    shows_traceback = True
