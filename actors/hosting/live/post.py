"""The post of a live process: gathers what goes to other processes, until it is to leave."""

from __future__ import annotations

from actors.hosting.live.clock import Clock
from actors.hosting.live.parcels import Bundle, Parcel
from actors.hosting.mesh import Mesh

_FULL_BYTES = 2**18
_LINGER_NS = 500_000
"""A frame costs some ten microseconds at either end: what gathers for so long pays for it."""


class Post:
    """Bundles for each of the other processes."""

    def __init__(self, mesh: Mesh, clock: Clock) -> None:
        self._mesh, self._clock = mesh, clock
        self._bundles: dict[int, Bundle] = {}

    def to(self, home: int) -> Bundle:
        """Return the bundle for a process, to add to."""
        bundle = self._bundles.get(home)
        if bundle is None:
            bundle = self._bundles[home] = Bundle(since_ns=self._clock.now())
        return bundle

    def add(self, home: int, parcel: Parcel) -> None:
        """Put a message into the bundle for a process."""
        bundle = self.to(home)
        bundle.parcels.append(parcel)
        bundle.nbytes += parcel.nbytes

    def send_due(self) -> None:
        """Send the bundles that are full, or have gathered for long."""
        if self._bundles:
            since_ns = self._clock.now() - _LINGER_NS
            for home, bundle in list(self._bundles.items()):
                if bundle.nbytes >= _FULL_BYTES or bundle.since_ns <= since_ns:
                    self._mesh.send(home, self._bundles.pop(home))

    def send_all(self) -> None:
        """Send all bundles."""
        while self._bundles:
            home, bundle = self._bundles.popitem()
            self._mesh.send(home, bundle)
