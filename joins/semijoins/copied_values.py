"""V_2@N_1: another site's distinct join attribute values, to be looked into."""

from __future__ import annotations

from typing import Any

import numpy as np

from joins.batch import Schema
from joins.semijoins.attributes import AttributeIndex, JoinAttributes
from joins.semijoins.distinct_values import DistinctValues, ValueChanges
from joins.semijoins.joined import Joined
from joins.work import Work


class CopiedValues:
    """A copy of V_2, hashed.

    Values that vanish stay in the hash table, where probes pass over them, until they are half of
    it: so a change costs what changes, not what there is.

    Parameters
    ----------
    schema
        Of S_2.
    attributes
        What is compared.

    Attributes
    ----------
    entries
        The values.
    """

    def __init__(self, schema: Schema, attributes: JoinAttributes) -> None:
        self._attributes = attributes
        self.entries = DistinctValues([schema.fields[field] for field in attributes.stored])
        self._index = AttributeIndex(attributes)
        self._indexed = 0

    def update(self, changes: ValueChanges) -> Work:
        """Follow a change of V_2 (Algorithm 9, lines 24 to 31 and 38)."""
        entries = self.entries
        begin = entries.made
        entries.apply(changes)
        self._indexed += entries.made - begin
        if self._indexed > 2 * len(entries):
            self._indexed = len(entries)
            return self._index.replace(entries.values, entries.entry)
        stayed = int(np.searchsorted(entries.entry, begin))
        return self._index.insert(
            tuple(column[stayed:] for column in entries.values), entries.entry[stayed:]
        )

    def matches(self, rows: Joined) -> tuple[np.ndarray, np.ndarray, Work]:
        """Return which rows match which values: rows, places of values, both int64; the work."""
        found = self._index.probe(self._attributes.of_joined(rows))
        assert found.match_id is not None  # enumerated
        entry = self.entries.entry
        row = np.repeat(np.arange(len(rows)), found.count)
        place = np.searchsorted(entry, found.match_id)
        there = np.append(entry, -1)[place] == found.match_id
        return row[there], place[there], found.work

    def snapshot(self) -> dict[str, Any]:
        """Return the values and their index."""
        return {
            "entries": self.entries.snapshot(),
            "attribute_index": self._index.snapshot(),
            "indexed": self._indexed,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self.entries.restore(state["entries"])
        self._index.restore(state["attribute_index"])
        self._indexed = state["indexed"]
