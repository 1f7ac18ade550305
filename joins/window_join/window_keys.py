"""The keys of a window by position, for structures that must find what expires or scan it all."""

from __future__ import annotations

import numpy as np

from joins.machine.compiling import inlined
from joins.state import Stateful

_FIRST_KEYS = 64


class WindowKeys(Stateful):
    """Per side a ring of keys: that of position p is at ``keys[side, p & (length - 1)]``.

    Attributes
    ----------
    keys
        int64, shape (sides, length); the length is a power of two.
    ends
        int64, shape (sides, 2): the first position in the ring and the one after the last.
    """

    state = ("keys", "ends")

    def __init__(self, sides: int) -> None:
        self.keys = np.zeros((sides, _FIRST_KEYS), np.int64)
        self.ends = np.zeros((sides, 2), np.int64)

    def append(self, side: int, keys: np.ndarray) -> None:
        """Store the keys of the next positions of a side."""
        first, begin = self.ends[side].tolist()
        while begin + len(keys) - first > self.keys.shape[1]:
            self.grow()
        self.keys[side, np.arange(begin, begin + len(keys)) & (self.keys.shape[1] - 1)] = keys
        self.ends[side, 1] = begin + len(keys)

    def grow(self) -> None:
        """Double the ring."""
        length = self.keys.shape[1]
        grown = np.zeros((len(self.keys), 2 * length), np.int64)
        for side, (first, end) in enumerate(self.ends):
            positions = np.arange(first, end)
            grown[side, positions & (2 * length - 1)] = self.keys[side, positions & (length - 1)]
        self.keys = grown


@inlined
def key_at(keys: np.ndarray, side: int, position: int) -> int:
    """Return the key of a position."""
    return keys[side, position & (keys.shape[1] - 1)]


@inlined
def is_full(keys: np.ndarray, ends: np.ndarray, side: int) -> bool:
    """Return whether a side has no room for another key."""
    return bool(ends[side, 1] - ends[side, 0] == keys.shape[1])


@inlined
def append_key(keys: np.ndarray, ends: np.ndarray, side: int, key: int, position: int) -> None:
    """Store the key of a side's next position, or of its first one, which may be any."""
    if ends[side, 1] == 0 and ends[side, 0] == 0:
        ends[side, 0] = position
    keys[side, position & (keys.shape[1] - 1)] = key
    ends[side, 1] = position + 1
