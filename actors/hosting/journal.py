"""A host whose actors outlive their processes.

Between the kernel and the host that runs the actors, all messages are written down. From time to
time the states of all actors are saved, with the payloads that are under way. When a process is
lost, another host takes the place of the one that needed it: its actors get the saved states, and
what was submitted since once more. What follows from a message is a function of it and of the
actor's state, so the kernel gets the same answers, and virtual time notices nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, TypeVar

import numpy as np

from actors.protocol import Reply, RestartingHost
from actors.serialisation import to_array

_Returned = TypeVar("_Returned")

_EVERY_MESSAGES = 65_536
"""Default number of messages from one saving to the next: some seconds of work."""
_BYTES_A_MESSAGE = 2_500
"""Bytes of state that may be saved for each message: a tenth of what a message takes, at least."""

_ATTEMPTS = 3
"""Replacement hosts in a row that may be lost without getting further than any before; then the
error is raised."""

_PLACE_BITS = 20


def payload_name(ticket: int, place: int) -> int:
    """Return the name of a payload: the message that led to it, and its place among several."""
    return ticket << _PLACE_BITS | place


def payload_bytes(host: RestartingHost, reader: str, handle: Any) -> np.ndarray:
    """Return a payload that *host* has for an actor to read, as bytes."""
    kept = host.keep(reader, handle)
    return kept if isinstance(kept, np.ndarray) else to_array(kept)


_Submitted = tuple[int, str, str, str, Any, int]
"""The arguments of `JournalHost.submit`."""


@dataclass(slots=True)
class _Payload:
    """What was sent and not read by all its readers yet: the host's handle, and who reads it."""

    handle: Any
    readers: list[str]


@dataclass(frozen=True, kw_only=True)
class _Saved:
    """What a host goes on from: states by actor, and payloads under way, with their readers.

    Without states all actors are in their first.
    """

    states: dict[str, np.ndarray] = field(default_factory=dict)
    payloads: dict[int, tuple[np.ndarray, list[str]]] = field(default_factory=dict)


@dataclass(eq=False)
class JournalHost:
    """Runs actors in a host that can be replaced.

    Attributes
    ----------
    host
        The one that runs the actors now.
    restarts
        Hosts that have taken the place of another.
    """

    start: Callable[[], RestartingHost]
    """Returns a host with all actors in their first state."""
    actors: Iterable[str]
    """Their names."""
    _: KW_ONLY
    lost: type[Exception]
    """The error that a host raises when a process of it is lost."""
    every: int = _EVERY_MESSAGES
    """Messages from one saving to the next, at the least: many more where states are large."""

    def __post_init__(self) -> None:
        self._actors = list(self.actors)
        self._room = self.every
        self.restarts = 0
        self._fetched = 0
        self._saved = _Saved()
        self._log: list[tuple[str, Any]] = []
        """Names of methods of a host that were called, and the arguments."""
        self._payloads: dict[int, _Payload] = {}
        self._open: dict[int, Reply | None] = {}
        """Tickets whose reply was not fetched, with the reply where it is here already."""
        self._replay(self.start())

    def submit(
        self, ticket: int, actor: str, sender: str, port: str, handle: Any, now: int
    ) -> Reply | None:
        """Pass a message on, and write it down."""
        if len(self._log) >= self._room:
            self._outlive(self._save)
        message = ticket, actor, sender, port, handle, now
        self._log.append(("submit", message))
        self._open[ticket] = None
        try:
            reply = self._pass_on(message)
        except self.lost:
            self._recover()
            return None
        if reply:
            del self._open[ticket]
        return reply

    def reply(self, ticket: int) -> Reply:
        """Return the reply to a message, waiting for it if need be; once only."""
        reply = self._outlive(lambda: self._open[ticket] or self._fetch(ticket))
        del self._open[ticket]
        return reply

    def snapshot(self, actor: str) -> np.ndarray:
        """Return the state of *actor* after all messages submitted to it, as bytes."""
        state: np.ndarray = self._outlive(lambda: self.host.snapshot(actor))
        return state

    def restore(self, actor: str, state: np.ndarray | None) -> None:
        """Replace *actor* by a new one in *state*, and write that down."""
        self._log_and_call("restore", actor, state)

    def keep(self, actor: str, handle: Any) -> Any:
        """Return the payload in a form that a replacement process can read."""
        if type(handle) is not int:
            return handle
        return self._outlive(lambda: self._keep(self._payloads[handle]))

    def forget(self) -> None:
        """Drop replies and payloads, and write that down."""
        self._open.clear()
        self._payloads.clear()
        self._log_and_call("forget")

    def _log_and_call(self, method: str, *arguments: Any) -> None:
        """Write down a call of the host and make it; a replacement does what was written down."""
        self._log.append((method, arguments))
        try:
            getattr(self.host, method)(*arguments)
        except self.lost:
            self._recover()

    def _keep(self, payload: _Payload) -> Any:
        return self.host.keep(payload.readers[0], payload.handle)

    def _outlive(self, call: Callable[[], _Returned]) -> _Returned:
        """Return the result of *call*; repeat the call when a process is lost."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return call()
            except self.lost:
                self._recover()
        return call()

    def _pass_on(self, message: _Submitted) -> Reply | None:
        ticket, actor, sender, port, handle, now = message
        if type(handle) is int:
            payload = self._payloads[handle]
            payload.readers.remove(actor)
            if not payload.readers:
                del self._payloads[handle]
            handle = payload.handle
        reply = self.host.submit(ticket, actor, sender, port, handle, now)
        return self._named(ticket, reply) if reply else None

    def _fetch(self, ticket: int) -> Reply:
        return self._named(ticket, self.host.reply(ticket))

    def _named(self, ticket: int, reply: Reply) -> Reply:
        """Name the payloads of a reply by its ticket: the names are the same of every host."""
        self._fetched += 1
        for place, sent in enumerate(reply.sends):
            name = payload_name(ticket, place)
            self._payloads[name] = _Payload(sent.handle, list(sent.receivers))
            sent.handle = name
        return reply

    def _fetch_all(self) -> None:
        for ticket, reply in self._open.items():
            if reply is None:
                self._open[ticket] = self._fetch(ticket)

    def _save(self) -> None:
        """Save all states and the payloads under way, behind all messages so far."""
        self._fetch_all()
        states = {actor: self.host.snapshot(actor) for actor in self._actors}
        payloads = {
            name: (payload_bytes(self.host, one.readers[0], one.handle), list(one.readers))
            for name, one in self._payloads.items()
        }
        self._saved = _Saved(states=states, payloads=payloads)
        self._log.clear()
        nbytes = sum(map(len, states.values()))
        self._room = max(self.every, nbytes // _BYTES_A_MESSAGE)

    def _recover(self) -> None:
        """Replace the host; raise its error when the next ones are lost too, with no progress."""
        furthest, lost = 0, 0
        while True:
            self.restarts += 1
            self._fetched = 0
            try:
                self._replay(self.start())
                return
            except self.lost:
                lost = 1 if self._fetched > furthest else lost + 1
                if lost == _ATTEMPTS:
                    raise
                furthest = max(furthest, self._fetched)

    def _replay(self, host: RestartingHost) -> None:
        """Put *host* where the last one was: saved states, then all messages since."""
        self.host = host
        for actor, state in self._saved.states.items():
            host.restore(actor, state)
        self._payloads = {
            name: _Payload(data, list(readers))
            for name, (data, readers) in self._saved.payloads.items()
        }
        answered: dict[int, Reply | None] = {}
        for method, arguments in self._log:
            if method == "submit":
                ticket, name = arguments[0], arguments[4]
                if type(name) is int and name not in self._payloads:
                    made_by = name >> _PLACE_BITS
                    answered[made_by] = self._fetch(made_by)
                answered[ticket] = self._pass_on(arguments)
                continue
            getattr(host, method)(*arguments)
            if method == "forget":
                self._payloads.clear()
                answered.clear()
        for ticket, reply in answered.items():
            reply = reply or self._fetch(ticket)
            if ticket in self._open:
                self._open[ticket] = reply
