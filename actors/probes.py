"""Tuples on their way to joiners, each with the window it sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from actors.source import Fed
from joins.batch import Batch, Rows
from joins.event_time import EventTimeBounds
from joins.queries.windows import WindowBounds
from joins.state import storable


@storable
@dataclass(frozen=True, slots=True)
class Probes:
    """Tuples of one stream, each with the window it sees in the stream it probes.

    Attributes
    ----------
    batch
        The tuples; they are stored too.
    start, stop
        int64, positions in the probed stream that each tuple sees, *stop* exclusive; out of order
        the event times that it pairs with.
    born_ns
        int64, when each tuple came into being, virtual nanoseconds.
    """

    batch: Batch
    start: np.ndarray
    stop: np.ndarray
    born_ns: np.ndarray

    def __len__(self) -> int:
        return len(self.start)

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes: the tuples and their bounds."""
        return self.batch.nbytes + self.start.nbytes + self.stop.nbytes

    def slice(self, start: int, stop: int) -> Probes:
        """Return rows *start* to *stop* (exclusive) as views."""
        return self.take(slice(start, stop))

    def take(self, rows: Rows) -> Probes:
        """Return some *rows*."""
        return Probes(self.batch.take(rows), self.start[rows], self.stop[rows], self.born_ns[rows])

    @classmethod
    def concat(cls, parts: Sequence[Probes]) -> Probes:
        """Join *parts* of one stream (at least one) end to end."""
        return cls(
            Batch.concat([part.batch for part in parts]),
            np.concatenate([part.start for part in parts]),
            np.concatenate([part.stop for part in parts]),
            np.concatenate([part.born_ns for part in parts]),
        )


def give_windows(fed: Fed, bounds: WindowBounds | EventTimeBounds) -> tuple[Probes, ...]:
    """Return the tuples of *fed*, one `Probes` per stream, and move *bounds* past them."""
    seen = bounds.advance(fed.arrivals)
    parts = []
    for batch, (start, stop), born_ns in zip(fed.arrivals.parts, seen, fed.born_ns, strict=True):
        parts.append(Probes(batch, start, stop, born_ns))
    return tuple(parts)
