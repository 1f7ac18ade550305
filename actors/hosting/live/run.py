"""A live run: the process that asked for it (`LiveRun`), and the life of each other (`serve`).

The driver has the actors built, starts the sources, waits, and fetches what was written down.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from actors.hosting.inline import Cell
from actors.hosting.live.endings import Seat
from actors.hosting.live.journal import Clock, Entry, moment_ns
from actors.hosting.live.parcels import Count, Measured
from actors.hosting.live.shard import LiveShard
from actors.hosting.mesh import Mesh
from actors.hosting.processes import Processes
from actors.protocol import ActorSpec, Wiring


class LiveRun:
    """Runs a system in *processes*, which serve this run and no other.

    Parameters
    ----------
    processes
        Where it runs.
    specs, wiring, seed
        As for every host.
    homes
        Actor name to process.
    room
        Messages under way at most on a channel.
    codes
        Name of a port to its number in the trace.
    """

    def __init__(
        self,
        processes: Processes,
        specs: Mapping[str, ActorSpec],
        wiring: Wiring,
        seed: int,
        *,
        homes: Mapping[str, int],
        room: int,
        codes: Mapping[str, int],
    ) -> None:
        self._processes = processes
        processes.serve(serve, dict(homes), dict(specs), dict(wiring), seed, room, dict(codes))

    def run(self, on_count: Callable[[Count], None]) -> Measured:
        """Start the sources, wait until every actor has ended, and return what was measured.

        *on_count* is called now and then with how far all of them are. Raise :exc:`ActorError`
        when an actor raised, and what *processes* raise when one of them is gone.
        """
        waiting = set(range(self._processes.count))
        while waiting:
            waiting.discard(self._next()[0])
        began_ns = moment_ns()
        for process in range(self._processes.count):
            self._processes.send(process, began_ns)
        counts: dict[int, Count] = {}
        whole = Measured()
        waiting = set(range(self._processes.count))
        while waiting:
            process, news = self._next()
            if isinstance(news, Measured):
                waiting.discard(process)
                whole.add(news)
                news = Count(news.ended_ns, news.tuples, news.received)
            counts[process] = news
            on_count(
                Count(
                    max(count.now_ns for count in counts.values()),
                    sum(count.tuples for count in counts.values()),
                    sum(count.messages for count in counts.values()),
                )
            )
        return whole

    def entries(self) -> Iterator[Entry]:
        """Return what all processes wrote down, process by process."""
        for process in range(self._processes.count):
            self._processes.send(process, None)
            while (entry := self._next()[1]) is not None:
                yield entry
                self._processes.send(process, None)

    def _next(self) -> tuple[int, Any]:
        received = self._processes.receive()
        assert received is not None
        return received


def serve(
    mesh: Mesh,
    homes: Mapping[str, int],
    specs: Mapping[str, ActorSpec],
    wiring: Wiring,
    seed: int,
    room: int,
    codes: Mapping[str, int],
) -> None:
    """Run the actors whose home this member of *mesh* is, then hand out what they wrote down.

    The driver is sent a None when the actors are built, and sends when the run began; it is sent a
    `Count` now and then and `Measured` at the end, and then asks for the journal entry by entry;
    None is behind the last. For the parameters see `LiveShard`.
    """
    seats = {
        name: Seat(name, Cell(name, specs[name], wiring, seed))
        for name in wiring
        if homes[name] == mesh.member
    }
    mesh.send(mesh.driver, None)
    # Others may have started before, and sent something already.
    early: deque[tuple[int, Any]] = deque()
    began_ns = _from_driver(mesh, early)
    shard = LiveShard(mesh, homes, seats, wiring, room, codes, Clock(began_ns))
    for process, bundle in early:
        shard.open_bundle(process, bundle)
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
