"""Distinct join attribute values: numbered by hashing, and counted over a window (V_2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from joins.codes import encode
from joins.hashing import splitmix64
from joins.machine.compiling import inlined, kernel
from joins.state import Stateful, storable

_EMPTY, _GONE = -2, -1
_SLOTS_MIN = 64


def distinct(columns: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Return the distinct rows of *columns* in the order of their first appearance.

    They are int64 or float64, at least one, of equal length; 0.0 and -0.0 are equal.
    """
    _, first = ValueTable(len(columns), rows=len(columns[0])).add(columns, 0)
    return tuple(column[first] for column in columns)


def contained(columns: Sequence[np.ndarray], values: Sequence[np.ndarray]) -> np.ndarray:
    """Return whether each row of *columns* is one of the rows of *values*, bool."""
    table = ValueTable(len(values), rows=len(values[0]))
    table.add(values, 0)
    return table.find(columns) >= 0


class ValueTable(Stateful):
    """Values to numbers: a hash table with linear probing that lives as long as its window.

    A value that is removed leaves its slot taken until the table is rebuilt, at most half full.

    Parameters
    ----------
    columns
        Columns of a value: its join attributes.
    rows
        How many values there is room for at first.
    """

    state = ("_keys", "_number", "_used")

    def __init__(self, columns: int, rows: int = 0) -> None:
        self._keys = np.empty((columns, 0), np.int64)
        self._clear(2 * rows)

    def _clear(self, slots: int) -> None:
        """Make room for no fewer than *slots*, all of them empty."""
        slots = max(_SLOTS_MIN, 1 << (slots - 1).bit_length())
        self._keys = np.empty((len(self._keys), slots), np.int64)
        self._number = np.full(slots, _EMPTY)
        self._used = 0

    def find(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """Return the number of each value, int64; -1 where there is none."""
        keys = _keys(values)
        numbers = np.empty(keys.shape[1], np.int64)
        _find(self._keys, self._number, keys, numbers)
        return numbers

    def add(self, values: Sequence[np.ndarray], first: int) -> tuple[np.ndarray, np.ndarray]:
        """Assign numbers from *first* on, in their order, to values that have none.

        Return the number of each, and the rows at which new ones appear first; both int64.
        """
        keys = _keys(values)
        rows = keys.shape[1]
        if 2 * (self._used + rows) > len(self._number):
            self._rebuild(rows)
        numbers, new = np.empty((2, rows), np.int64)
        added, taken = _add(self._keys, self._number, keys, first, numbers, new)
        self._used += taken
        return numbers, new[:added]

    def remove(self, values: Sequence[np.ndarray]) -> None:
        """Remove the numbers of some values, which all have one."""
        _remove(self._keys, self._number, _keys(values))

    def _rebuild(self, more: int) -> None:
        """Drop removed values, and make room for *more*."""
        stays = self._number >= 0
        keys, numbers = self._keys[:, stays], self._number[stays]
        self._clear(4 * (len(numbers) + more) + 1)
        _fill(self._keys, self._number, keys, numbers)
        self._used = len(numbers)


def _keys(values: Sequence[np.ndarray]) -> np.ndarray:
    return np.stack([encode(column) for column in values])


@inlined
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
def _find(table: np.ndarray, number: np.ndarray, keys: np.ndarray, numbers: np.ndarray) -> None:
    for row in range(keys.shape[1]):
        numbers[row] = max(number[_slot(table, number, keys, row)], _GONE)


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
    added, taken = 0, 0
    for row in range(keys.shape[1]):
        slot = _slot(table, number, keys, row)
        if number[slot] < 0:
            if number[slot] == _EMPTY:
                taken += 1
                for column in range(len(keys)):
                    table[column, slot] = keys[column, row]
            number[slot] = first + added
            new[added] = row
            added += 1
        numbers[row] = number[slot]
    return added, taken


@kernel
def _remove(table: np.ndarray, number: np.ndarray, keys: np.ndarray) -> None:
    for row in range(keys.shape[1]):
        number[_slot(table, number, keys, row)] = _GONE


@kernel
def _fill(table: np.ndarray, number: np.ndarray, keys: np.ndarray, numbers: np.ndarray) -> None:
    for row in range(keys.shape[1]):
        slot = _slot(table, number, keys, row)
        for column in range(len(keys)):
            table[column, slot] = keys[column, row]
        number[slot] = numbers[row]


@storable
@dataclass(frozen=True, slots=True)
class ValueChanges:
    """A change of V_2, as a site that has a copy of it is sent it.

    The copy has the values in the same order, so that two vectors suffice (stream semijoin paper,
    section 3.2.2, Algorithm 9).
    """

    values: tuple[np.ndarray, ...]
    """v_J, the distinct join attribute (DJA) values that are new, a column per join attribute."""
    counts: np.ndarray
    """v_C, int64, the DJA counts of all of them, those that vanish included."""

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        return sum(column.nbytes for column in self.values) + self.counts.nbytes


class DistinctValues(Stateful):
    """V_2: the distinct join attribute values of a window in the order in which they came.

    Parameters
    ----------
    dtypes
        Per join attribute int64 or float64.
    """

    state = ("values", "entry", "count", "flag", "made", "_table")

    def __init__(self, dtypes: Sequence[str]) -> None:
        self.values = tuple(np.empty(0, dtype) for dtype in dtypes)
        """A column per join attribute."""
        self.entry = np.empty(0, np.int64)
        """int64, ascending, the number of each entry: the n-th ever made."""
        self.count = np.empty(0, np.int64)
        """int64, tuples in the window with this value."""
        self.flag = np.empty(0, np.bool_)
        """bool, whether the tuples with this value have been shipped."""
        self.made = 0
        """Number of the next entry."""
        self._table = ValueTable(len(self.values))

    def __len__(self) -> int:
        return len(self.entry)

    def find(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        """Return the place of the entry with each value, int64; -1 where there is none."""
        number = self._table.find(columns)
        return np.where(number < 0, -1, np.searchsorted(self.entry, number))

    def update(
        self, inserted: Sequence[np.ndarray], expired: np.ndarray
    ) -> tuple[ValueChanges, np.ndarray, np.ndarray]:
        """Count tuples in and out (Algorithm 9, lines 2 to 21).

        Parameters
        ----------
        inserted
            Values of the new tuples, a column per join attribute.
        expired
            Entries of the tuples that went.

        Returns
        -------
        tuple
            What sites with a copy are sent; per new tuple its entry, int64; and whether that had
            been shipped before, bool: such tuples are the set s_F.
        """
        entries, first = self._table.add(inserted, self.made)
        new = tuple(column[first] for column in inserted)
        self._append(new)
        place = np.searchsorted(self.entry, entries)
        flagged = self.flag[place]
        gone = np.searchsorted(self.entry, expired)
        self.count = (
            self.count
            + np.bincount(place, minlength=len(self))
            - np.bincount(gone, minlength=len(self))
        )
        changes = ValueChanges(new, self.count)
        self._drop_empty()
        return changes, entries, flagged

    def apply(self, changes: ValueChanges) -> None:
        """Repeat a change of the original (Algorithm 9, lines 24 to 31 and 38)."""
        self._table.add(changes.values, self.made)
        self._append(changes.values)
        self.count = np.array(changes.counts)
        self._drop_empty()

    def _append(self, values: Sequence[np.ndarray]) -> None:
        more = len(values[0])
        self.values = tuple(
            np.concatenate([old, new]) for old, new in zip(self.values, values, strict=True)
        )
        self.entry = np.concatenate([self.entry, self.made + np.arange(more)])
        self.count = np.concatenate([self.count, np.zeros(more, np.int64)])
        self.flag = np.concatenate([self.flag, np.zeros(more, np.bool_)])
        self.made += more

    def _drop_empty(self) -> None:
        stays = self.count > 0
        if stays.all():
            return
        self._table.remove([column[~stays] for column in self.values])
        self.values = tuple(column[stays] for column in self.values)
        self.entry, self.count, self.flag = self.entry[stays], self.count[stays], self.flag[stays]
