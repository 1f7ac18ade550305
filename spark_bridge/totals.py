"""What must be equal whatever engine computed it: how many pairs there are, and a checksum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from joins.hashing import mix
from joins.matches import Matches


@dataclass(frozen=True)
class Totals:
    """How many pairs there are, and which.

    Attributes
    ----------
    pairs
        Their number.
    checksum
        The wrapping sum over all pairs of ``splitmix64(probe id) * splitmix64(match id)``. It does
        not depend on their order, and follows from the pairs as well as from counts with
        fingerprints.
    """

    pairs: int = 0
    checksum: int = 0

    def __add__(self, other: Totals) -> Totals:
        return Totals(self.pairs + other.pairs, (self.checksum + other.checksum) % (1 << 64))

    @classmethod
    def of_pairs(cls, probe_id: np.ndarray, match_id: np.ndarray) -> Totals:
        """Return the totals of a row per pair."""
        checksum = int((mix(probe_id) * mix(match_id)).sum(dtype=np.uint64))
        return cls(len(probe_id), checksum)

    @classmethod
    def of_counts(cls, probe_id: np.ndarray, count: np.ndarray, fingerprint: np.ndarray) -> Totals:
        """Return the totals of matches counted by probing tuple (see `joins.matches.Matches`)."""
        checksum = int((mix(probe_id) * fingerprint).sum(dtype=np.uint64))
        return cls(int(count.sum()), checksum)

    @classmethod
    def of(cls, matches: Matches) -> Totals:
        """Return the totals of some matches."""
        return cls.of_counts(matches.probe_id, matches.count, matches.fingerprint)
