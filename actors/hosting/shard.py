"""A share of a system's actors in one process, and how payloads get in and out of it.

A payload for an actor of the same shard stays here; the others of one call leave in one bundle, for
which any shard may ask the object store. The driver handles parcels: it never sees a payload.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from actors.hosting.cell import Cell
from actors.protocol import ActorSpec, Reply, Wiring

Letter = tuple[int, str, str, str, "Parcel | None", int]
"""Ticket, actor, sender, port, payload, virtual time."""


@dataclass(slots=True)
class Parcel:
    """Stands for a payload outside the shard that made it.

    Attributes
    ----------
    shard, serial
        Where the payload was made, and its number there.
    place
        Its place in the bundle; -1 when no other shard is to have it.
    bundle
        Reference to the bundle in the object store; the driver fills it in.
    """

    shard: int
    serial: int
    place: int
    bundle: Any = None


class Shard:
    """Runs the actors whose home it is.

    Parameters
    ----------
    index
        This shard's number.
    homes
        Actor name to the number of its shard.
    specs, wiring, seed
        As for every host.
    fetch
        Gets the bundle behind a reference.
    """

    def __init__(
        self,
        index: int,
        homes: Mapping[str, int],
        specs: Mapping[str, ActorSpec],
        wiring: Wiring,
        seed: int,
        fetch: Callable[[Any], list[Any]],
    ) -> None:
        self._index = index
        self._homes = homes
        self._fetch = fetch
        self._cells = {
            name: Cell(name, spec, wiring, seed)
            for name, spec in specs.items()
            if homes[name] == index
        }
        self._serial = 0
        self._kept: dict[int, tuple[Any, int]] = {}

    def receive(self, letters: list[Letter]) -> tuple[list[tuple[int, Reply]], list[Any]]:
        """Deliver *letters* in order; return the replies by ticket, and the bundle that leaves."""
        bundle: list[Any] = []
        fetched: dict[Any, list[Any]] = {}
        replies = []
        for ticket, actor, sender, port, parcel, now in letters:
            payload = self._open(parcel, fetched)
            reply = self._cells[actor].deliver(sender, port, payload, now)
            for sent in reply.sends:
                sent.handle = self._pack(sent.handle, sent.receivers, bundle)
            replies.append((ticket, reply))
        return replies, bundle

    def peak_bytes(self) -> int:
        """Return the most memory that this process has held, in bytes."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def _open(self, parcel: Parcel | None, fetched: dict[Any, list[Any]]) -> Any:
        if parcel is None:
            return None
        if parcel.shard == self._index:
            payload, readers = self._kept[parcel.serial]
            if readers > 1:
                self._kept[parcel.serial] = (payload, readers - 1)
            else:
                del self._kept[parcel.serial]
            return payload
        if parcel.bundle not in fetched:
            fetched[parcel.bundle] = self._fetch(parcel.bundle)
        return fetched[parcel.bundle][parcel.place]

    def _pack(self, payload: Any, receivers: tuple[str, ...], bundle: list[Any]) -> Parcel:
        serial = self._serial
        self._serial += 1
        here = sum(self._homes[receiver] == self._index for receiver in receivers)
        if here:
            self._kept[serial] = (payload, here)
        place = -1
        if here < len(receivers):
            place = len(bundle)
            bundle.append(payload)
        return Parcel(self._index, serial, place)
