"""A share of a system's actors in one process, in virtual time.

The process that keeps virtual time says in which order messages are received; payloads go straight
from the process that made them to those that will read them, before anybody asks.
"""

from __future__ import annotations

import resource
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from actors.hosting.cell import Cell
from actors.hosting.mesh import Mesh
from actors.protocol import ActorSpec, Reply, Sent, Wiring

Handle = tuple[int, int]
"""How a payload is named: the process that made it, and its serial there."""

Letter = tuple[int, str, str, str, Handle | None, int]
"""Ticket, actor, sender, port, payload, virtual time."""

Answer = tuple[int, Reply, int]
"""Ticket, what followed from the letter, and the most memory the process has held, in bytes."""


def serve(
    mesh: Mesh, homes: Mapping[str, int], specs: Mapping[str, ActorSpec],
    wiring: Wiring, seed: int,
) -> None:  # fmt: skip
    """Run the actors whose home this member of *mesh* is, until a member leaves it.

    The driver keeps virtual time; *homes* is actor name to member.
    """
    Shard(mesh, homes, specs, wiring, seed).run()


class Shard:
    """Runs the actors whose home it is; parameters as for `serve`."""

    def __init__(
        self,
        mesh: Mesh,
        homes: Mapping[str, int],
        specs: Mapping[str, ActorSpec],
        wiring: Wiring,
        seed: int,
    ) -> None:
        self._mesh, self._homes = mesh, homes
        self._cells = {
            name: Cell(name, spec, wiring, seed)
            for name, spec in specs.items()
            if homes[name] == mesh.member
        }
        self._serial = 0
        self._letters: deque[Sequence[Letter]] = deque()
        self._kept: dict[Handle, list[Any]] = {}
        """Payload, and how many actors here have yet to read it."""

    def run(self) -> None:
        """Deliver letters in the order they come; raise :exc:`MemberLostError` at the end."""
        while True:
            while not self._letters:
                self._take_frame()
            for letter in self._letters.popleft():
                self._deliver(letter)

    def _take_frame(self) -> None:
        received = self._mesh.receive()
        assert received is not None
        peer, value = received
        if peer == self._mesh.driver:
            self._letters.append(value)
            return
        for serial, payload, readers in value:
            self._kept[peer, serial] = [payload, readers]

    def _deliver(self, letter: Letter) -> None:
        ticket, actor, sender, port, handle, now = letter
        reply = self._cells[actor].deliver(sender, port, self._open(handle), now)
        parcels: dict[int, list[tuple[int, Any, int]]] = {}
        for sent in reply.sends:
            self._pack(sent, parcels)
        answer: Answer = (ticket, reply, peak_bytes())
        self._mesh.send(self._mesh.driver, answer)
        for home, parcel in parcels.items():
            self._mesh.send(home, parcel)

    def _open(self, handle: Handle | None) -> Any:
        if handle is None:
            return None
        while handle not in self._kept:
            self._take_frame()
        kept = self._kept[handle]
        kept[1] -= 1
        if not kept[1]:
            del self._kept[handle]
        return kept[0]

    def _pack(self, sent: Sent, parcels: dict[int, list[tuple[int, Any, int]]]) -> None:
        """Put what is *sent* where it will be read, and its name in its place."""
        self._serial += 1
        homes = [self._homes[receiver] for receiver in sent.receivers]
        here = self._mesh.member
        for home in dict.fromkeys(homes):
            if home == here:
                self._kept[here, self._serial] = [sent.handle, homes.count(home)]
            else:
                parcels.setdefault(home, []).append((self._serial, sent.handle, homes.count(home)))
        sent.handle = (here, self._serial)


def peak_bytes() -> int:
    """Return the most memory that this process has held, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
