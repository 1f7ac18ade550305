"""A host whose actors outlive their processes.

Between the kernel and the host that runs the actors, all messages are written down. From time to
time the states of all actors are saved, with the payloads that are under way. When a process is
lost, another host takes the place of the one that needed it: its actors get the saved states, and
what was submitted since once more. What follows from a message is a function of it and of the
actor's state, so the kernel gets the same answers, and virtual time notices nothing.

What is saved may be on disk too, with all answers (`actors.hosting.saved_run`): then another
process goes on where this one is lost itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from actors.hosting.saved_run import Saved, SavedRun
from actors.protocol import Reply, RestartingHost
from actors.state import to_bytes

_EVERY_MESSAGES = 65_536
"""Default number of messages from one saving to the next: some seconds of work."""
_BYTES_A_MESSAGE = 2_500
"""Bytes of state that may be saved for each message: a tenth of what a message takes, at least."""

_ATTEMPTS = 3
"""Hosts that are made in place of a lost one, and are lost before they answer more than another of
them has, until the loss is taken for what happens always."""

_PLACE_BITS = 20

_Letter = tuple[int, str, str, str, int | None, int]
"""The arguments of `JournalHost.submit`."""


@dataclass(slots=True)
class _Payload:
    """What was sent and not read by all its readers yet: the host's handle, and who reads it."""

    handle: Any
    readers: list[str]


class JournalHost:
    """Runs actors in a host that can be replaced.

    Parameters
    ----------
    start
        Returns a host with all actors in their first state.
    actors
        Their names.
    lost
        The error that a host raises when a process of it is lost; ``()``: it has none to lose.
    every
        Messages from one saving to the next, at the least: many more where states are large.
    disk
        Where to save to as well, and from what to go on.

    Attributes
    ----------
    host
        The one that runs the actors now.
    restarts
        Hosts that have taken the place of another.
    """

    def __init__(
        self,
        start: Callable[[], RestartingHost],
        actors: Iterable[str],
        *,
        lost: type[Exception] | tuple[()],
        every: int = _EVERY_MESSAGES,
        disk: SavedRun | None = None,
    ) -> None:
        self._start, self._actors, self._lost = start, list(actors), lost
        self._every = self._room = every
        self.restarts = 0
        self._fetched = 0
        self._disk = disk
        self._saved, self._answered = (disk.saved, disk.answered) if disk else (Saved(), 0)
        self._log: deque[_Letter] = deque(maxlen=None if lost else 0)
        self._payloads: dict[int, _Payload] = {}
        self._open: dict[int, Reply | None] = {}
        """Tickets whose reply was not fetched, with the reply where it is here already."""
        self._replay(start())

    def submit(
        self, ticket: int, actor: str, sender: str, port: str, handle: Any, now: int
    ) -> Reply | None:
        """Pass a message on, and write it down."""
        if self._disk:
            if ticket < self._answered:
                return self._disk.answer(ticket, now)
            self._disk.submitted(ticket, now)
        letter = ticket, actor, sender, port, handle, now
        try:
            if len(self._log) >= self._room or (self._disk and self._disk.due):
                self._save()
            self._log.append(letter)
            reply = self._pass_on(letter)
            if reply is None:
                self._open[ticket] = None
            return reply
        except self._lost:
            if not self._log or self._log[-1] is not letter:
                self._log.append(letter)
            self._open[ticket] = None
            self._recover()
            return None

    def reply(self, ticket: int) -> Reply:
        """Return the reply to a message, waiting for it if need be; once only."""
        reply = self._open[ticket]
        if reply is None:
            try:
                reply = self._fetch(ticket)
            except self._lost:
                self._recover()
                reply = self._open[ticket]
                assert reply
        del self._open[ticket]
        return reply

    def _pass_on(self, letter: _Letter) -> Reply | None:
        ticket, actor, sender, port, name, now = letter
        handle = None
        if name is not None:
            payload = self._payloads[name]
            handle = payload.handle
            payload.readers.remove(actor)
            if not payload.readers:
                del self._payloads[name]
        reply = self.host.submit(ticket, actor, sender, port, handle, now)
        return self._named(ticket, reply) if reply else None

    def _fetch(self, ticket: int) -> Reply:
        return self._named(ticket, self.host.reply(ticket))

    def _named(self, ticket: int, reply: Reply) -> Reply:
        """Name the payloads of a reply by its ticket: the names are the same of every host."""
        self._fetched += 1
        for place, sent in enumerate(reply.sends):
            name = ticket << _PLACE_BITS | place
            self._payloads[name] = _Payload(sent.handle, list(sent.receivers))
            sent.handle = name
        if self._disk:
            self._disk.add(ticket, reply)
        return reply

    def _fetch_all(self) -> None:
        for ticket, reply in self._open.items():
            if reply is None:
                self._open[ticket] = self._fetch(ticket)

    def _save(self) -> None:
        """Save all states and the payloads under way, behind all messages so far."""
        self._fetch_all()
        states = {actor: self.host.snapshot(actor) for actor in self._actors}
        payloads = {}
        for name, payload in self._payloads.items():
            kept = self.host.keep(payload.readers[0], payload.handle)
            if not isinstance(kept, np.ndarray):
                kept = np.frombuffer(to_bytes(kept), np.uint8)
            payloads[name] = kept, list(payload.readers)
        self._saved = Saved(states=states, payloads=payloads)
        if self._disk and self._disk.due:
            self._disk.save(self._saved)
        self._log.clear()
        nbytes = sum(map(len, states.values()))
        self._room = max(self._every, nbytes // _BYTES_A_MESSAGE)

    def _recover(self) -> None:
        """Replace the host; raise its error when the next ones are lost too, with no progress."""
        furthest, lost = 0, 0
        while True:
            self.restarts += 1
            self._fetched = 0
            try:
                self._replay(self._start())
                return
            except self._lost:
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
        for letter in self._log:
            name = letter[4]
            if name is not None and name not in self._payloads:
                made_by = name >> _PLACE_BITS
                answered[made_by] = self._fetch(made_by)
            answered[letter[0]] = self._pass_on(letter)
        for ticket, reply in answered.items():
            reply = reply or self._fetch(ticket)
            if ticket in self._open:
                self._open[ticket] = reply
