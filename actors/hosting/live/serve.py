"""One process's life in a live run: built, started, run, and asked for what it wrote down."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from actors.hosting.cell import Cell
from actors.hosting.live.clock import Clock
from actors.hosting.live.seat import Seat
from actors.hosting.live.shard import LiveShard
from actors.hosting.mesh import Mesh
from actors.protocol import ActorSpec, Wiring


def serve(
    mesh: Mesh,
    homes: Mapping[str, int],
    specs: Mapping[str, ActorSpec],
    wiring: Wiring,
    seed: int,
    room: int,
    codes: Mapping[str, int],
) -> None:
    """Run the actors whose home this member of *mesh* is, and hand out what they led to.

    The driver hears that the actors are built, says when the run began, hears `parcels.Count` now
    and then and `parcels.Measured` at the end, and then asks for the journal entry by entry; None
    is behind the last. For the parameters see `LiveShard`.
    """
    seats = {
        name: Seat(name, Cell(name, specs[name], wiring, seed))
        for name in wiring
        if homes[name] == mesh.member
    }
    mesh.send(mesh.driver, None)
    # Others may have been told before, and sent something already.
    early: deque[tuple[int, Any]] = deque()
    began_ns = _from_driver(mesh, early)
    shard = LiveShard(mesh, homes, seats, wiring, room, codes, Clock(began_ns))
    for process, bundle in early:
        shard.take_bundle(process, bundle)
    mesh.send(mesh.driver, shard.run())
    for entry in shard.journal.entries():
        _from_driver(mesh, early)
        mesh.send(mesh.driver, entry)
    _from_driver(mesh, early)
    mesh.send(mesh.driver, None)
    _from_driver(mesh, early)


def _from_driver(mesh: Mesh, others: deque[tuple[int, Any]]) -> Any:
    """Return what the driver sends next; what comes from others meanwhile goes to *others*."""
    while True:
        received = mesh.receive()
        assert received is not None
        if received[0] == mesh.driver:
            return received[1]
        others.append(received)
