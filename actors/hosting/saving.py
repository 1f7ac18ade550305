"""A host that writes down what its actors answer, so that another process can go on.

It runs actors in any other host, and has nothing to do with how those outlive a lost process
(`actors.hosting.journal`): here it is this process that may die, and what is on disk that remains.
Handles are objects of this host, whatever those of the other are: one that nothing holds any more
was read by all its readers, or is lost. So the payloads under way are those that are alive.
"""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import Any, TypeVar
from weakref import ref

import numpy as np

from actors.hosting.saved_run import Saved, SavedRun
from actors.protocol import ActorError, Reply, RestartingHost
from actors.state import to_bytes

_PLACE_BITS = 20
"""A payload is named by the ticket of the message that led to it, and its place among several."""

_FEW_PAYLOADS = 1_024
"""So many, beyond those under way, are remembered until it is seen which are gone."""


class _Payload:
    """What was sent: the other host's handle, None before the actors answer, and who reads it."""

    __slots__ = ("__weakref__", "handle", "name", "reader")

    def __init__(self, name: int, handle: Any, reader: str) -> None:
        self.name, self.handle, self.reader = name, handle, reader


class _State:
    """A state that an actor may go back to: the other host's, None before the actors answer."""

    __slots__ = ("__weakref__", "_nbytes", "number", "state")

    def __init__(self, number: int, state: Any, nbytes: int) -> None:
        self.number, self.state, self._nbytes = number, state, nbytes

    def __len__(self) -> int:
        return self._nbytes


_Handle = TypeVar("_Handle", _Payload, _State)


class SavingHost:
    """Runs actors in another host, and saves the run to *disk*.

    What an earlier process has saved there is answered from there, up to its last snapshot.

    Parameters
    ----------
    host
        Runs the actors, which are in their first state.
    actors
        Their names.
    disk
        Where to save to, and from what to go on.
    """

    def __init__(self, host: RestartingHost, actors: Iterable[str], disk: SavedRun) -> None:
        self.host, self._actors, self._disk = host, list(actors), disk
        self._repeats = disk.answered > 0
        self._payloads: list[ref[_Payload]] = []
        self._room = _FEW_PAYLOADS
        self._earlier: list[ref[_State]] = []
        self._serial = 0
        """States and payloads that the kernel has asked for."""
        self._open: dict[int, tuple[int, Reply | None]] = {}
        """Tickets whose reply was not fetched: their virtual time, and the reply if it is here."""

    def submit(
        self, ticket: int, actor: str, sender: str, port: str, handle: Any, now: int
    ) -> Reply | None:
        """Pass a message on and write down what follows; what was written is the answer again."""
        disk = self._disk
        if self._repeats:
            if ticket < disk.answered:
                return self._named(ticket, disk.answer(ticket, now))
            self._go_on()
        elif disk.due:
            self._save()
        payload = None if handle is None else handle.handle
        try:
            reply = self.host.submit(ticket, actor, sender, port, payload, now)
        except ActorError as error:  # which is no end where what it needed may be lost
            disk.add(ticket, now, error)
            raise
        if reply is None:
            self._open[ticket] = now, None
            return None
        disk.add(ticket, now, reply)
        return self._named(ticket, reply)

    def reply(self, ticket: int) -> Reply:
        """Return the reply to a message, waiting for it if need be; once only."""
        now, reply = self._open.pop(ticket)
        return reply or self._fetch(ticket, now)

    def snapshot(self, actor: str) -> Sized:
        """Return the state of *actor* after all messages submitted to it."""
        self._serial += 1
        if self._repeats:
            state = _State(self._serial, None, self._disk.size())
        else:
            taken = self.host.snapshot(actor)
            self._disk.add_size(len(taken))
            state = _State(self._serial, taken, len(taken))
        self._earlier = [*map(ref, _alive(self._earlier)), ref(state)]
        return state

    def restore(self, actor: str, state: _State | None) -> None:
        """Replace *actor* by a new one in *state*; None: in its first state."""
        if not self._repeats:
            self.host.restore(actor, None if state is None else state.state)

    def keep(self, actor: str, handle: _Payload) -> Any:
        """Return a handle of the same payload that may be submitted to *actor* at any time."""
        self._serial += 1
        kept = None if self._repeats else self.host.keep(actor, handle.handle)
        payload = _Payload(-self._serial, kept, actor)  # no message has such a name
        self._payloads.append(ref(payload))
        return payload

    def forget(self) -> None:
        """Drop all replies that were not fetched: nobody will ask what they were."""
        for ticket, (now, reply) in self._open.items():
            if reply is None:
                self._disk.add(ticket, now, Reply())
        self._open.clear()
        if not self._repeats:
            self.host.forget()

    def _fetch(self, ticket: int, now: int) -> Reply:
        reply = self.host.reply(ticket)
        self._disk.add(ticket, now, reply)
        return self._named(ticket, reply)

    def _named(self, ticket: int, reply: Reply) -> Reply:
        """Name the payloads of a reply by its ticket: repeated, they have the same names."""
        for place, sent in enumerate(reply.sends):
            name = ticket << _PLACE_BITS | place
            sent.handle = payload = _Payload(name, sent.handle, sent.receivers[0])
            self._payloads.append(ref(payload))
        if len(self._payloads) > self._room:
            alive = _alive(self._payloads)
            self._payloads, self._room = list(map(ref, alive)), 2 * len(alive) + _FEW_PAYLOADS
        return reply

    def _go_on(self) -> None:
        """Let the actors answer from now on; restore the payloads and states in use."""
        self._repeats = False
        saved = self._disk.saved
        for actor, state in saved.states.items():
            self.host.restore(actor, state)
        for payload in _alive(self._payloads):
            payload.handle = saved.payloads[payload.name]
        for earlier in _alive(self._earlier):
            earlier.state = saved.earlier[earlier.number]

    def _save(self) -> None:
        """Save all states and the payloads under way, behind all messages so far."""
        for ticket, (now, reply) in self._open.items():
            if reply is None:
                self._open[ticket] = now, self._fetch(ticket, now)
        self._disk.flush()  # and let go of the payloads in the answers
        states = {actor: self.host.snapshot(actor) for actor in self._actors}
        payloads = {one.name: self._bytes_of(one) for one in _alive(self._payloads)}
        earlier = {one.number: one.state for one in _alive(self._earlier)}
        self._disk.save(Saved(states=states, payloads=payloads, earlier=earlier))

    def _bytes_of(self, payload: _Payload) -> np.ndarray:
        kept = self.host.keep(payload.reader, payload.handle)
        return kept if isinstance(kept, np.ndarray) else np.frombuffer(to_bytes(kept), np.uint8)


def _alive(handles: Iterable[ref[_Handle]]) -> list[_Handle]:
    """Return the handles still referenced."""
    return [handle for one in handles if (handle := one()) is not None]
