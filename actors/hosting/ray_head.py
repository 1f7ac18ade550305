"""Whether the head of a Ray cluster is still there: without it Ray gives up, on its own terms.

A driver that misses the head for a minute is ended by Ray from within, whatever it is doing, and
nothing of ours is called then; the processes it asked for stay until their nodes give up as well.
So the head is looked for, to stop before that and say why. A head that is started again meanwhile
is the same to Ray, and so it is here. One that is there and does nothing is not told from a busy
one: what is asked is whether its machine takes a connection for it.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

from actors.hosting.errors import RayUnavailableError

_LOOK_S = 2.0
_CONNECT_S = 1.0
_GONE_S = 12.0
"""For so long a head may be missing: one that is started again is back by then, and what stops for
it has stopped within half a minute."""
_LOOKS_ALONE = 3
"""So many times in turn a process that nobody needs must miss the head. It may be less patient than
its driver, which has gone before it because it missed the head."""


class Head:
    """The head at *address*, ``HOST:PORT``, looked at now and then."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._seen = self._looked = time.monotonic()
        # From outside the cluster, through Ray's proxy, it may never be seen: nobody misses it.
        self._in_reach = self.answers()

    def answers(self) -> bool:
        """Return whether it takes a connection now."""
        host, _, port = self.address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()
        except OSError:
            return False
        return True

    def look(self) -> None:
        """Look whether it is there, unless that was just done.

        Raise :exc:`RayUnavailableError` when it has been missing for too long.
        """
        now = time.monotonic()
        if not self._in_reach or now - self._looked < _LOOK_S:
            return
        self._looked = now
        if self.answers():
            self._seen = now
        elif now - self._seen > _GONE_S:
            raise RayUnavailableError(
                f"the head of the Ray cluster at {self.address} is gone: it has not answered for "
                f"{now - self._seen:.0f} s. Nothing of this run is left; start it again when there "
                "is a cluster"
            )

    def wait(self) -> None:
        """Return when it is there; raise :exc:`RayUnavailableError` when it has been away too long.

        For a process that belongs to the cluster, and so is in reach of the head.
        """
        self._in_reach = True
        while not self.answers():
            self.look()
            time.sleep(_LOOK_S)

    def wait_until_alone(self, needed: Callable[[], bool]) -> None:
        """Return when this process is not *needed* and the head is not there to end it."""
        missed = 0
        while missed < _LOOKS_ALONE:
            time.sleep(_LOOK_S)
            missed = 0 if needed() or self.answers() else missed + 1
