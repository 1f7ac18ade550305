"""V_2: the distinct join attribute values of a window, with the number of tuples of each.

A site that looks into another's window keeps a copy in the same order, so that a change is told by
two vectors (stream semijoin paper, section 3.2.2, Algorithm 9): the distinct join attribute (DJA)
values that are new, v_J, and the DJA counts of all of them, those that vanish included, v_C.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from joins.semijoins.value_table import ValueTable


@dataclass(frozen=True, slots=True)
class ValueChanges:
    """What happened to V_2.

    Attributes
    ----------
    values
        v_J, a column per join attribute.
    counts
        v_C, int64.
    """

    values: tuple[np.ndarray, ...]
    counts: np.ndarray

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        return sum(column.nbytes for column in self.values) + self.counts.nbytes


class DistinctValues:
    """Distinct values in the order in which they came, each an entry.

    Parameters
    ----------
    dtypes
        Per join attribute int64 or float64.

    Attributes
    ----------
    values
        A column per join attribute.
    entry
        int64, ascending, the number of each entry: the n-th ever made.
    count
        int64, tuples in the window with this value.
    flag
        bool, whether the tuples with this value have been shipped.
    made
        Number of the next entry.
    """

    def __init__(self, dtypes: Sequence[str]) -> None:
        self.values = tuple(np.empty(0, dtype) for dtype in dtypes)
        self.entry = np.empty(0, np.int64)
        self.count = np.empty(0, np.int64)
        self.flag = np.empty(0, np.bool_)
        self.made = 0
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
            What to tell whoever keeps a copy; per new tuple its entry, int64; and whether that had
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
        """Follow what happened to the original (Algorithm 9, lines 24 to 31 and 38)."""
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
        self._table.forget([column[~stays] for column in self.values])
        self.values = tuple(column[stays] for column in self.values)
        self.entry, self.count, self.flag = self.entry[stays], self.count[stays], self.flag[stays]

    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {
            "values": list(self.values),
            "entry": self.entry,
            "count": self.count,
            "flag": self.flag.copy(),
            "made": self.made,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self.values = tuple(state["values"])
        self.entry, self.count = state["entry"], state["count"]
        self.flag, self.made = state["flag"].copy(), state["made"]
        self._table.hold(self.values, self.entry)
