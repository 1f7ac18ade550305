"""Tuples of all streams in the order in which they arrive."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from joins.batch import Batch


@dataclass(frozen=True, slots=True)
class Arrivals:
    """A run of consecutive arrivals.

    Attributes
    ----------
    parts
        Per stream of the query its tuples, in stream order; may be empty.
    seq
        Per stream the arrival numbers of its tuples, int64, ascending; over all streams they are
        consecutive.
    """

    parts: tuple[Batch, ...]
    seq: tuple[np.ndarray, ...]

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        return sum(part.nbytes for part in self.parts)

    @property
    def rows(self) -> int:
        """Number of tuples."""
        return sum(len(part) for part in self.parts)

    @property
    def span(self) -> tuple[int, int]:
        """First and last arrival number; there is at least one arrival."""
        present = [seq for seq in self.seq if len(seq)]
        return int(min(seq[0] for seq in present)), int(max(seq[-1] for seq in present))
