"""What a router of whole windows sends to its joiner PEs."""

from __future__ import annotations

from dataclasses import dataclass

from actors.probes import Probes
from actors.protocol import HEADER_BYTES

_POSITION_BYTES = 8


@dataclass(frozen=True, slots=True)
class Share:
    """The arrivals that concern a PE: to be stored there, to probe there, or both.

    Attributes
    ----------
    parts
        One per stream of the query.
    horizon
        Per stream the least position that any later probe can see.
    span
        First and last arrival number of the batch they were part of.
    """

    parts: tuple[Probes, ...]
    horizon: tuple[int, ...]
    span: tuple[int, int]

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        return (
            HEADER_BYTES
            + _POSITION_BYTES * len(self.horizon)
            + sum(part.nbytes for part in self.parts)
        )

    @property
    def rows(self) -> int:
        """Number of tuples."""
        return sum(len(part) for part in self.parts)
