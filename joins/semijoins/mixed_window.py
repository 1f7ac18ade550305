"""M_2: partial tuples of another site's window, and the full tuples fetched so far (SM-S2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from joins.batch import Batch, Schema
from joins.semijoins.attributes import AttributeIndex, JoinAttributes
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
        self._attributes = attributes
        self.values = DistinctValues([schema.fields[field] for field in attributes.stored])
        self.full = HeldTuples(stream=stream, schema=schema, attributes=attributes)
        self._index = AttributeIndex(attributes)

    def update(self, changes: ValueChanges, tuples: Batch) -> Work:
        """Follow a change of W_2 (Algorithm 9, lines 24 to 40); *tuples* is the set s_F."""
        self.values.apply(changes)
        work = self._index.replace(self.values.values, self.values.entry)
        return work + self.full.insert(tuples) + self._expire()

    def missing(self, rows: Joined) -> tuple[np.ndarray, tuple[np.ndarray, ...], Work]:
        """Semijoin with the partial tuples of which no full tuples were fetched.

        Returns
        -------
        tuple
            Whether each of *rows* matches such a value; the values, a column per join attribute;
            and the work.
        """
        found = self._index.probe(self._attributes.of_joined(rows))
        assert found.match_id is not None  # enumerated
        place = np.searchsorted(self.values.entry, found.match_id)
        partial = ~self.values.flag[place]
        row = np.repeat(np.arange(len(rows)), found.count)
        waits = np.zeros(len(rows), np.bool_)
        waits[row[partial]] = True
        asked = np.unique(place[partial])
        return waits, tuple(column[asked] for column in self.values.values), found.work

    def fetched(self, values: Sequence[np.ndarray], tuples: Batch) -> Work:
        """Take the full tuples of some values that were asked for."""
        place = self.values.find(values)
        self.values.flag[place[place >= 0]] = True
        return self.full.insert(tuples)

    def _expire(self) -> Work:
        """Let go of the oldest full tuples of each value, where there are more than in W_2."""
        place = self.values.find(self._attributes.of_stored(self.full.tuples))
        order = np.argsort(place, kind="stable")
        sorted_place = place[order]
        rank = np.arange(len(order)) - np.searchsorted(sorted_place, sorted_place)
        held = np.bincount(place[place >= 0], minlength=len(self.values))
        surplus = np.append(np.maximum(0, held - self.values.count), len(order))  # -1: all go
        stays = np.ones(len(order), np.bool_)
        stays[order] = rank >= surplus[sorted_place]
        return Work() if stays.all() else self.full.keep(stays)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {
            "values": self.values.snapshot(),
            "full": self.full.snapshot(),
            "attribute_index": self._index.snapshot(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self.values.restore(state["values"])
        self.full.restore(state["full"])
        self._index.restore(state["attribute_index"])
