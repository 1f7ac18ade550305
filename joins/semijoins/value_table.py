"""Values to the numbers of their entries: a hash table that lives as long as its window."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from joins.hashing import splitmix64
from joins.machine.compiling import kernel
from joins.semijoins.distinct import as_whole

_EMPTY, _GONE = -2, -1
_SLOTS_MIN = 64


class ValueTable:
    """A hash table with linear probing.

    A value that is forgotten keeps its slot until the table is made anew, at most half full.

    Parameters
    ----------
    columns
        Columns of a value: its join attributes.
    """

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._clear(_SLOTS_MIN)

    def _clear(self, slots: int) -> None:
        self._keys = np.empty((self._columns, slots), np.int64)
        self._number = np.full(slots, _EMPTY)
        self._used = 0

    def find(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """Return the number of each value, int64; -1 where there is none."""
        keys = _keys(values)
        numbers = np.empty(keys.shape[1], np.int64)
        _find(self._keys, self._number, keys, numbers)
        return numbers

    def add(self, values: Sequence[np.ndarray], first: int) -> tuple[np.ndarray, np.ndarray]:
        """Give values that have no number the numbers from *first* on, in their order.

        Return the number of each, and the rows at which new ones appear first; both int64.
        """
        keys = _keys(values)
        rows = keys.shape[1]
        self._make_room(rows)
        numbers, new = np.empty((2, rows), np.int64)
        found, taken = _add(self._keys, self._number, keys, first, numbers, new)
        self._used += taken
        return numbers, new[:found]

    def forget(self, values: Sequence[np.ndarray]) -> None:
        """Let go of the numbers of some values, which all have one."""
        _forget(self._keys, self._number, _keys(values))

    def hold(self, values: Sequence[np.ndarray], numbers: np.ndarray) -> None:
        """Hold distinct values with these numbers, and no others."""
        self._fill(_keys(values), numbers, 0)

    def _make_room(self, rows: int) -> None:
        if 2 * (self._used + rows) > len(self._number):
            held = self._number >= 0
            self._fill(self._keys[:, held], self._number[held], rows)

    def _fill(self, keys: np.ndarray, numbers: np.ndarray, more: int) -> None:
        room = 4 * (len(numbers) + more)
        self._clear(max(_SLOTS_MIN, 1 << room.bit_length()))
        _fill(self._keys, self._number, keys, numbers)
        self._used = len(numbers)


def _keys(values: Sequence[np.ndarray]) -> np.ndarray:
    return np.stack([as_whole(column) for column in values])


@kernel
def _slot(table: np.ndarray, number: np.ndarray, keys: np.ndarray, row: int) -> int:
    """Return the slot of the value in a *row* of *keys*, or the empty one where it belongs."""
    mixed = np.uint64(0)
    for column in range(len(keys)):
        mixed = splitmix64(int(mixed) ^ keys[column, row])
    mask = len(number) - 1
    slot = np.int64(mixed & np.uint64(mask))
    while number[slot] != _EMPTY:
        same = True
        for column in range(len(keys)):
            same = same and table[column, slot] == keys[column, row]
        if same:
            break
        slot = (slot + 1) & mask
    return int(slot)


@kernel
def _find(table: np.ndarray, number: np.ndarray, keys: np.ndarray, found: np.ndarray) -> None:
    for row in range(keys.shape[1]):
        found[row] = max(number[_slot(table, number, keys, row)], _GONE)


@kernel
def _add(
    table: np.ndarray,
    number: np.ndarray,
    keys: np.ndarray,
    first: int,
    numbers: np.ndarray,
    new: np.ndarray,
) -> tuple[int, int]:
    """Fill in `ValueTable.add`'s results; return how many are new, and how many slots that took."""
    found, taken = 0, 0
    for row in range(keys.shape[1]):
        slot = _slot(table, number, keys, row)
        if number[slot] < 0:
            if number[slot] == _EMPTY:
                taken += 1
                for column in range(len(keys)):
                    table[column, slot] = keys[column, row]
            number[slot] = first + found
            new[found] = row
            found += 1
        numbers[row] = number[slot]
    return found, taken


@kernel
def _forget(table: np.ndarray, number: np.ndarray, keys: np.ndarray) -> None:
    for row in range(keys.shape[1]):
        number[_slot(table, number, keys, row)] = _GONE


@kernel
def _fill(table: np.ndarray, number: np.ndarray, keys: np.ndarray, numbers: np.ndarray) -> None:
    for row in range(keys.shape[1]):
        slot = _slot(table, number, keys, row)
        for column in range(len(keys)):
            table[column, slot] = keys[column, row]
        number[slot] = numbers[row]
