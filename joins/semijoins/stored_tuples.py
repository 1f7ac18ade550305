"""What a site stores of a window: full tuples, or values, both hashed by their join attributes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from joins.batch import Batch, Schema
from joins.indexes.index import Index, ranges_for, stored_codes
from joins.indexes.structures import make_window_index
from joins.matches import ProbeResult
from joins.queries.windows import Window
from joins.semijoins.combinations import Combinations
from joins.semijoins.distinct_values import DistinctValues, ValueChanges
from joins.semijoins.one_way_join import JoinAttributes
from joins.semijoins.operand_windows import OperandWindow, Timeline, seen
from joins.sliding_column import SlidingBatch, values_at
from joins.state import Stateful
from joins.work import NO_WORK, Work


class AttributeIndex(Stateful):
    """Join attributes of the next stream by position, hashed where a predicate is an equality."""

    state = ("_index",)

    def __init__(self, attributes: JoinAttributes) -> None:
        self._attributes = attributes
        self._index = self._new_index()

    def insert(self, columns: Sequence[np.ndarray], positions: np.ndarray) -> Work:
        """Insert partial tuples, a column per stored attribute; int64 positions ascend."""
        if not len(positions):
            return NO_WORK
        values = [columns[stored] for _, stored in self._attributes.places]
        return self._index.insert(stored_codes(self._attributes.conditions, values), positions)

    def replace(self, columns: Sequence[np.ndarray], positions: np.ndarray) -> Work:
        """Insert these partial tuples in place of all others."""
        self._index = self._new_index()
        return self.insert(columns, positions)

    def probe(
        self,
        columns: Sequence[np.ndarray],
        start: np.ndarray | None = None,
        stop: np.ndarray | None = None,
    ) -> ProbeResult:
        """Return the matches of each row of partial tuples, a column per probe attribute.

        Row i sees positions start[i] to stop[i] - 1; without these all.
        """
        ranges = ranges_for(
            self._attributes.conditions,
            [columns[probe] for probe, _ in self._attributes.places],
            start,
            stop,
        )
        return self._index.probe(ranges, enumerate=True)

    def expire(self, before: int) -> Work:
        """Remove positions less than *before*."""
        return self._index.expire(before)

    def _new_index(self) -> Index:
        kind = "hash" if self._attributes.equalities else "nested_loop"
        return make_window_index(kind, self._attributes.conditions)


class StoredTuples(Stateful):
    """Full tuples in the order of their positions: a site's window W_2, or a part of another's.

    Parameters
    ----------
    stream, schema
        Position of the stream in the query (or number of an operand of a tree), and its fields.
    attributes
        What is compared.
    """

    state = ("_stored", "_index")

    def __init__(self, *, stream: int, schema: Schema, attributes: JoinAttributes) -> None:
        self._stream = stream
        self._attributes = attributes
        self._index = AttributeIndex(attributes)
        self._stored = SlidingBatch(schema)

    def __len__(self) -> int:
        return len(self._stored)

    @property
    def tuples(self) -> Batch:
        """The tuples, in the order of their positions: views."""
        return self._stored.tuples

    def insert(self, batch: Batch) -> Work:
        """Insert tuples; some may be older than those stored (a semijoin fetches as it matches)."""
        if not len(batch):
            return NO_WORK
        before = self.tuples.id
        in_order = not len(before) or batch.id[0] > before[-1]
        self._stored.append(batch)
        if in_order:
            return self._index.insert(self._attributes.of_stored(batch), batch.id)
        tuples = self.tuples.take(np.argsort(self.tuples.id, kind="stable"))
        self._stored.drop(len(tuples))
        self._stored.append(tuples)
        return self._index.replace(self._attributes.of_stored(tuples), tuples.id)

    def expire(self, before: int) -> tuple[int, Work]:
        """Remove positions less than *before*, and return how many there were."""
        gone = int(np.searchsorted(self.tuples.id, before))
        if not gone:
            return 0, NO_WORK
        self._stored.drop(gone)
        return gone, self._index.expire(before)

    def expire_first(self, count: int) -> Work:
        """Remove the *count* oldest: W'_2 as the FIFO queue of section 3.2.2."""
        if not count:
            return NO_WORK
        return self.expire(int(self.tuples.id[count - 1]) + 1)[1]

    def matching_rows(self, partial: Sequence[np.ndarray]) -> tuple[np.ndarray, Work]:
        """Return the stored rows that match any of some partial tuples, int64, ascending."""
        result = self._index.probe(partial)
        assert result.match_id is not None  # enumerated
        return np.searchsorted(self.tuples.id, np.unique(result.match_id)), result.work

    def have_matches(self, partial: Sequence[np.ndarray]) -> tuple[np.ndarray, Work]:
        """Return for each of some partial tuples whether any stored tuple matches it."""
        result = self._index.probe(partial)
        return result.count > 0, result.work

    def join(
        self, rows: Combinations, window: Window | OperandWindow, line: Timeline
    ) -> tuple[Combinations, Work]:
        """Join combinations with what their newest tuple may see: a T_2-limit join.

        *line* is complete; only in count windows is it needed.
        """
        stored = self.tuples
        if isinstance(window, OperandWindow):
            start, stop = window.seen(stored, rows)
        else:
            ids, ts = (line.ids, line.ts) if window.kind == "count" else (stored.id, stored.ts)
            precedes = self._stream < rows.head
            start, stop = seen(window, ids, ts, rows.newest.ts, ties_seen=precedes)
        result = self._index.probe(self._attributes.of_combinations(rows), start, stop)
        assert result.match_id is not None  # enumerated
        places = np.searchsorted(stored.id, result.match_id)
        row = np.repeat(np.arange(len(rows)), result.count)
        joined = rows.take(row).extended(self._stream, stored.take(places))
        if isinstance(window, OperandWindow):
            joined = joined.take(window.admits(joined))
        return joined, result.work


class CopiedValues(Stateful):
    """V_2@N_1: a copy of another site's distinct join attribute values, hashed.

    Values that vanish stay in the hash table, where probes pass over them, until they are half of
    it: so a change costs what changes, not what there is.

    Parameters
    ----------
    schema
        Of S_2.
    attributes
        What is compared.
    """

    state = ("entries", "_index", "_indexed")

    def __init__(self, schema: Schema, attributes: JoinAttributes) -> None:
        self._attributes = attributes
        self.entries = DistinctValues([schema.fields[field] for field in attributes.stored])
        """The values."""
        self._index = AttributeIndex(attributes)
        self._indexed = 0

    def update(self, changes: ValueChanges) -> Work:
        """Repeat a change of V_2 (Algorithm 9, lines 24 to 31 and 38)."""
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

    def matches(self, rows: Combinations) -> tuple[np.ndarray, np.ndarray, Work]:
        """Return which rows match which values: rows, places of values, both int64; the work."""
        result = self._index.probe(self._attributes.of_combinations(rows))
        assert result.match_id is not None  # enumerated
        entry = self.entries.entry
        row = np.repeat(np.arange(len(rows)), result.count)
        place = np.searchsorted(entry, result.match_id)
        there = values_at(entry, place, -1) == result.match_id
        return row[there], place[there], result.work


class MixedWindow(Stateful):
    """M_2, a window as another site sees it: V_2, and the full tuples fetched so far (SM-S2).

    The paper's hash table of values with a list of full tuples each (Figure 5) is stored as V_2 and
    the tuples beside it. Its field c, which counts a list, follows from the tuples: Algorithm 9
    sets it to the count in W_2 (line 38) where Example 4 has 0 for a list not fetched yet.

    Parameters
    ----------
    stream, schema
        Position of the window's stream in the query, and its fields.
    attributes
        What is compared.
    """

    state = ("_copied", "full")

    def __init__(self, *, stream: int, schema: Schema, attributes: JoinAttributes) -> None:
        self._copied = CopiedValues(schema, attributes)
        self.full = StoredTuples(stream=stream, schema=schema, attributes=attributes)

    @property
    def values(self) -> DistinctValues:
        """V_2."""
        return self._copied.entries

    def update(self, changes: ValueChanges, tuples: Batch) -> Work:
        """Repeat a change of W_2 (Algorithm 9, lines 24 to 40); *tuples* is the set s_F."""
        work = self._copied.update(changes) + self.full.insert(tuples)
        # What is more than in W_2 of a value has gone there, and the oldest of all went first.
        surplus = len(self.full) - int(self.values.count[self.values.flag].sum())
        return work + self.full.expire_first(surplus)

    def missing(self, rows: Combinations) -> tuple[np.ndarray, tuple[np.ndarray, ...], Work]:
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
        missing = np.unique(place[partial])
        return waits, tuple(column[missing] for column in self.values.values), work

    def fetched(self, values: Sequence[np.ndarray], tuples: Batch) -> Work:
        """Insert the full tuples of some values that were requested."""
        place = self.values.find(values)
        self.values.flag[place[place >= 0]] = True
        return self.full.insert(tuples)
