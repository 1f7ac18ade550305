"""M_2: partial tuples of another site's window, and the full tuples fetched so far (SM-S2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from joins.batch import Batch, Schema
from joins.semijoins.attributes import JoinAttributes
from joins.semijoins.copied_values import CopiedValues
from joins.semijoins.distinct_values import DistinctValues, ValueChanges
from joins.semijoins.held import HeldTuples
from joins.semijoins.joined import Joined
from joins.work import Work


class MixedWindow:
    """A window as another site sees it: V_2, with the full tuples of the values asked for.

    The paper's hash table of values with a list of full tuples each (Figure 5) is kept as V_2 and
    the tuples beside it. Its field c, which counts a list, follows from the tuples: Algorithm 9
    sets it to the count in W_2 (line 38) where Example 4 has 0 for a list not fetched yet.

    Parameters
    ----------
    stream, schema
        Position of the window's stream in the query, and its fields.
    attributes
        What is compared.
    """

    def __init__(self, *, stream: int, schema: Schema, attributes: JoinAttributes) -> None:
        self._copied = CopiedValues(schema, attributes)
        self.full = HeldTuples(stream=stream, schema=schema, attributes=attributes)

    @property
    def values(self) -> DistinctValues:
        """V_2."""
        return self._copied.entries

    def update(self, changes: ValueChanges, tuples: Batch) -> Work:
        """Follow a change of W_2 (Algorithm 9, lines 24 to 40); *tuples* is the set s_F."""
        work = self._copied.update(changes) + self.full.insert(tuples)
        # What is more than in W_2 of a value has gone there, and the oldest of all went first.
        surplus = len(self.full) - int(self.values.count[self.values.flag].sum())
        return work + self.full.expire_first(surplus)

    def missing(self, rows: Joined) -> tuple[np.ndarray, tuple[np.ndarray, ...], Work]:
        """Semijoin with the partial tuples of which no full tuples were fetched.

        Returns
        -------
        tuple
            Whether each of *rows* matches such a value; the values, a column per join attribute;
            and the work.
        """
        row, place, work = self._copied.matches(rows)
        partial = ~self.values.flag[place]
        waits = np.zeros(len(rows), np.bool_)
        waits[row[partial]] = True
        asked = np.unique(place[partial])
        return waits, tuple(column[asked] for column in self.values.values), work

    def fetched(self, values: Sequence[np.ndarray], tuples: Batch) -> Work:
        """Take the full tuples of some values that were asked for."""
        place = self.values.find(values)
        self.values.flag[place[place >= 0]] = True
        return self.full.insert(tuples)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {"copied": self._copied.snapshot(), "full": self.full.snapshot()}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self._copied.restore(state["copied"])
        self.full.restore(state["full"])
