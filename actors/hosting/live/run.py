"""A live run, from the process that asked for it: start, wait, gather."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from actors.hosting.live import clock
from actors.hosting.live.journal import Entry
from actors.hosting.live.parcels import Count, Measured
from actors.hosting.live.serve import serve
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
        began_ns = clock.moment_ns()
        for process in range(self._processes.count):
            self._processes.send(process, began_ns)
        counts: dict[int, Count] = {}
        whole = Measured()
        waiting = set(range(self._processes.count))
        while waiting:
            process, told = self._next()
            if isinstance(told, Measured):
                waiting.discard(process)
                whole.add(told)
                told = Count(told.ended_ns, told.tuples, told.received)
            counts[process] = told
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
