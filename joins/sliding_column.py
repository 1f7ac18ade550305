"""Columns whose values come at their end and go at their front, as those of a window do."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from joins.batch import Batch, Schema
from joins.state import State, Stateful


class SlidingColumn(Stateful):
    """Values in the order in which they came.

    To append a few to many copies the few: an array has room for a quarter more values than there
    were when it was made. So a value is moved four times on average at the most, however long the
    window is.

    Parameters
    ----------
    dtype
        Of the values.
    """

    state: ClassVar[tuple[str, ...]] = ("values",)
    values: np.ndarray
    """Those that are there now, one dimension of *dtype*: a view. A later change makes another one,
    and leaves what this one shows."""
    _room: np.ndarray
    _end: int  # of the values in there

    def __init__(self, dtype: Any) -> None:
        self._take(np.empty(0, dtype))

    def __len__(self) -> int:
        return len(self.values)

    def append(self, values: np.ndarray) -> None:
        """Put *values* behind those that are there."""
        end, more = self._end, len(values)
        if end + more > len(self._room):
            room = np.empty(len(self) + len(self) // 4 + more, self.values.dtype)
            room[: len(self)] = self.values
            self._room, end = room, len(self)
        self._end = end + more
        self._room[end : self._end] = values
        self.values = self._room[end - len(self) : self._end]

    def drop(self, count: int) -> None:
        """Drop the first *count* values."""
        self.values = self.values[count:]

    def restore(self, state: State) -> None:
        """Go back to where a snapshot was taken."""
        self._take(np.copy(state["values"]))

    def _take(self, values: np.ndarray) -> None:
        self.values = self._room = values
        self._end = len(values)


def values_at(values: np.ndarray, rows: np.ndarray, behind: int) -> np.ndarray:
    """Return the *values* at some *rows* (int64); at the row behind the last one *behind*.

    The values may be many more than the rows: to append *behind* to them would copy them all.
    """
    found = np.full(len(rows), behind, values.dtype)
    inside = rows < len(values)
    found[inside] = values[rows[inside]]
    return found


class SlidingBatch(Stateful):
    """Tuples of one stream, a `SlidingColumn` each column of theirs.

    Parameters
    ----------
    schema
        Of the stream.
    """

    state: ClassVar[tuple[str, ...]] = ("_id", "_ts", "_key", "_fields", "_width_bytes")

    def __init__(self, schema: Schema) -> None:
        self._id, self._ts, self._key = (SlidingColumn(np.int64) for _ in range(3))
        self._fields = {name: SlidingColumn(dtype) for name, dtype in schema.fields.items()}
        self._width_bytes = schema.width_bytes

    def __len__(self) -> int:
        return len(self._id)

    @property
    def tuples(self) -> Batch:
        """Those that are there now: views, as of a `SlidingColumn`."""
        return Batch(
            id=self._id.values,
            ts=self._ts.values,
            key=self._key.values,
            fields={name: column.values for name, column in self._fields.items()},
            width_bytes=self._width_bytes,
        )

    def append(self, batch: Batch) -> None:
        """Put the tuples of *batch* behind those that are there."""
        self._id.append(batch.id)
        self._ts.append(batch.ts)
        self._key.append(batch.key)
        for name, column in self._fields.items():
            column.append(batch.fields[name])

    def drop(self, count: int) -> None:
        """Drop the first *count* tuples."""
        for column in (self._id, self._ts, self._key, *self._fields.values()):
            column.drop(count)
