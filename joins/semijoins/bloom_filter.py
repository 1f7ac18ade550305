"""A Bloom filter of join attribute values: no false negatives, some false positives.

Bloom, "Space/time trade-offs in hash coding with allowable errors", CACM 13(7), 1970. The hashes
are two mixes combined (Kirsch and Mitzenmacher, 2006). A Bloomjoin ships it in place of a
projection (Mackert and Lohman, VLDB 1986); the stream semijoin paper leaves it to future work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from joins.hashing import mix, mix_rows
from joins.semijoins.distinct import as_whole

_HASHES_PER_BIT = np.log(2)


@dataclass(frozen=True, slots=True)
class BloomFilter:
    """Bits set at the hashes of values.

    Attributes
    ----------
    bits
        bool, one per bit; a power of two of them, at least 8.
    hashes
        Hashes per value.
    """

    bits: np.ndarray
    hashes: int

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes: eight bits each."""
        return len(self.bits) // 8

    @classmethod
    def of(cls, columns: Sequence[np.ndarray], bits_per_value: int) -> BloomFilter:
        """Return the filter of distinct values, a column per join attribute."""
        values = max(1, len(columns[0]))
        size = 1 << max(3, (values * bits_per_value - 1).bit_length())
        hashes = max(1, round(float(_HASHES_PER_BIT * size / values)))
        bloom = cls(np.zeros(size, np.bool_), min(hashes, 16))
        bloom.bits[bloom._places(columns)] = True
        return bloom

    def may_hold(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        """Return for each value whether it may be in the set; False is certain."""
        return self.bits[self._places(columns)].all(axis=0)

    def _places(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        """Return the bit of every hash (rows) of every value (columns)."""
        mixed = mix_rows([as_whole(column) for column in columns])
        step = mix(mixed) | np.uint64(1)
        turns = np.arange(self.hashes, dtype=np.uint64)[:, np.newaxis]
        return ((mixed + turns * step) & np.uint64(len(self.bits) - 1)).astype(np.int64)
