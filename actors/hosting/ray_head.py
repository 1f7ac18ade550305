"""Whether the head of a Ray cluster is still there: without it Ray gives up, on its own terms.

A process that misses the head for a minute is ended by Ray from within, whatever it is doing, and
nothing of ours is called then. So it is looked for, to stop before that and say why. A head that
is started again meanwhile is the same to Ray, and so it is here.
"""

from __future__ import annotations

import socket
import time

from actors.hosting.errors import RayUnavailableError

_LOOK_S = 2.0
_CONNECT_S = 1.0
_GONE_S = 12.0
"""For so long a head may be missing: one that is only busy answers by then, and what stops for it
has stopped within half a minute."""


class Head:
    """The head at *address*, ``HOST:PORT``, looked at now and then."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._seen = self._looked = time.monotonic()
        # From outside the cluster, through Ray's proxy, it may never be seen: nobody misses it.
        self._in_reach = self._answers()

    def look(self) -> None:
        """Look whether it is there, unless that was just done.

        Raise :exc:`RayUnavailableError` when it has been missing for too long.
        """
        now = time.monotonic()
        if not self._in_reach or now - self._looked < _LOOK_S:
            return
        self._looked = now
        if self._answers():
            self._seen = now
        elif now - self._seen > _GONE_S:
            raise RayUnavailableError(
                f"the head of the Ray cluster at {self.address} is gone: it has not answered for "
                f"{now - self._seen:.0f} s. Nothing of this run is left; start it again when there "
                "is a cluster"
            )

    def _answers(self) -> bool:
        host, _, port = self.address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()
        except OSError:
            return False
        return True
