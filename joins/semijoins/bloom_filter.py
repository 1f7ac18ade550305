"""A Bloom filter of join attribute values: no false negatives, some false positives.

Bloom, "Space/time trade-offs in hash coding with allowable errors", CACM 13(7), 1970. A Bloomjoin
ships it in place of a projection (Mackert and Lohman, VLDB 1986); the stream semijoin paper leaves
it to future work. Filters of an interval's values are small, down to one value: hashes combined
from two, as is usual, would let through many times what independent ones do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from joins.codes import encode
from joins.hashing import mix, mix_rows
from joins.state import storable

BITS_PER_VALUE = 16
"""A false positive in 2,000: a tuple is looked for in every interval that it is in a window."""

_MOST_HASHES = 16


@storable
@dataclass(frozen=True, slots=True)
class BloomFilter:
    """Bits set at the hashes of values."""

    bits: np.ndarray
    """bool, one per bit, whole bytes of them; none where there is no value."""
    hashes: int
    """Hashes per value."""
    values: int
    """How many values are in it."""

    def __len__(self) -> int:
        return self.values

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes: eight bits each."""
        return len(self.bits) // 8

    @classmethod
    def of(cls, columns: Sequence[np.ndarray], bits_per_value: int = BITS_PER_VALUE) -> BloomFilter:
        """Return the filter of distinct values, a column per join attribute."""
        values = len(columns[0])
        size = -(-values * bits_per_value // 8) * 8
        bloom = cls(np.zeros(size, np.bool_), hashes_for(bits_per_value), values)
        if values:
            mixed = _mixed(columns)
            for turn in range(bloom.hashes):
                bloom.bits[bloom._places(mixed, turn)] = True
        return bloom

    def may_contain(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        """Return for each value whether it may be in the set; False is certain."""
        passing = np.zeros(len(columns[0]), np.bool_)
        if not self.values:
            return passing
        mixed = _mixed(columns)
        left = np.arange(len(mixed))
        for turn in range(self.hashes):  # half of the bits are set: few values go far
            left = left[self.bits[self._places(mixed[left], turn)]]
        passing[left] = True
        return passing

    def _places(self, mixed: np.ndarray, turn: int) -> np.ndarray:
        """Return the bit of every value's hash number *turn*."""
        salted = mix(mixed + mix(np.array([turn])))
        return (salted % np.uint64(len(self.bits))).astype(np.int64)


def _mixed(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Return values mixed into uint64, from which all of their hashes follow."""
    return mix_rows([encode(column) for column in columns])


def hashes_for(bits_per_value: int) -> int:
    """Return the hashes a value that let the fewest others through."""
    return min(max(1, round(bits_per_value * log(2))), _MOST_HASHES)
