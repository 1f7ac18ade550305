"""A share of a system's actors in one process, and how payloads get in and out of it.

A payload for an actor of the same shard stays here. What goes to other shards leaves in one bundle
per call, and is read there by its place in the bundle. Nobody in between needs to see a payload.
"""

from __future__ import annotations

import resource
from collections.abc import Mapping, Sequence
from typing import Any

from actors.hosting.cell import Cell
from actors.protocol import ActorSpec, Reply, Wiring

KEPT = -1

Place = tuple[int, int]
"""Where a payload is: number of the bundle argument and place in it, or `KEPT` and its serial."""

Letter = tuple[int, str, str, str, Place | None, int]
"""Ticket, actor, sender, port, where the payload is, virtual time."""

Packed = tuple[int, int]
"""How a shard names a payload it sent: its serial, and its place in the bundle (-1: not in it)."""


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
    """

    def __init__(
        self,
        index: int,
        homes: Mapping[str, int],
        specs: Mapping[str, ActorSpec],
        wiring: Wiring,
        seed: int,
    ) -> None:
        self._index = index
        self._homes = homes
        self._cells = {
            name: Cell(name, spec, wiring, seed)
            for name, spec in specs.items()
            if homes[name] == index
        }
        self._serial = 0
        self._kept: dict[int, tuple[Any, int]] = {}

    def receive(
        self, letters: Sequence[Letter], bundles: Sequence[Sequence[Any]]
    ) -> tuple[list[tuple[int, Reply]], list[Any]]:
        """Deliver *letters* in order.

        Returns
        -------
        replies
            By ticket; the handle of what was sent is a `Packed`.
        bundle
            The payloads that leave for other shards.
        """
        replies = []
        bundle: list[Any] = []
        for ticket, actor, sender, port, place, now in letters:
            payload = self._open(place, bundles)
            reply = self._cells[actor].deliver(sender, port, payload, now)
            for sent in reply.sends:
                sent.handle = self._pack(sent.handle, sent.receivers, bundle)
            replies.append((ticket, reply))
        return replies, bundle

    def peak_bytes(self) -> int:
        """Return the most memory that this process has held, in bytes."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def _open(self, place: Place | None, bundles: Sequence[Sequence[Any]]) -> Any:
        if place is None:
            return None
        bundle, index = place
        if bundle != KEPT:
            return bundles[bundle][index]
        payload, readers = self._kept.pop(index)
        if readers > 1:
            self._kept[index] = (payload, readers - 1)
        return payload

    def _pack(self, payload: Any, receivers: tuple[str, ...], bundle: list[Any]) -> Packed:
        self._serial += 1
        here = sum(self._homes[receiver] == self._index for receiver in receivers)
        if here:
            self._kept[self._serial] = (payload, here)
        if here == len(receivers):
            return self._serial, -1
        bundle.append(payload)
        return self._serial, len(bundle) - 1
