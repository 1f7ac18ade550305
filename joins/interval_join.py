"""An interval join of two streams over two state buffers: what a replica computes.

Pairs are reported by their base tuple, whichever of the two came last: of equation 1's
results per base tuple each replica and each message then adds a part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from joins.batch import Batch, Schema
from joins.indexes.columns import column
from joins.indexes.interval.buffer import IntervalBuffer
from joins.indexes.interval.key_groups import KeyGroups, group_by_key
from joins.indexes.interval.probe import Probes
from joins.matches import Matches
from joins.queries.query import JoinQuery
from joins.work import Work

_NAN_PLACE = np.iinfo(np.int64).max
"""Beyond both infinities, so that a NaN is in no range of values, and outside every one."""


class Joined(NamedTuple):
    """What some tuples of one stream found.

    Attributes
    ----------
    matches
        A row per base tuple of a pair found.
    row
        int64, for each the row of the tuple that found it; of several, the earliest.
    work
        What it cost.
    """

    matches: Matches
    row: np.ndarray
    work: Work


class IntervalJoin:
    """Two state buffers, and the conditions that a pair must satisfy.

    Parameters
    ----------
    query, schemas
        A query with an interval, and its streams' fields.
    """

    def __init__(self, query: JoinQuery, schemas: Sequence[Schema]) -> None:
        self._interval = query.reach
        self._conditions = [
            [c for i, c in enumerate(query.conditions(stream, schemas)) if i != query.key]
            for stream in (0, 1)
        ]
        self.buffers = [IntervalBuffer(len(self._conditions[0])) for _ in (0, 1)]

    def __len__(self) -> int:
        return sum(len(buffer) for buffer in self.buffers)

    def join(
        self,
        stream: int,
        batch: Batch,
        own: np.ndarray,
        *,
        watermark: int,
        low_watermark: int,
        enumerate: bool = False,
    ) -> Joined:
        """Probe with tuples of *stream*, then store those that the mask *own* names.

        The keywords are those of `probe` and `store`.
        """
        groups = _groups(batch)
        joined = self._probe(stream, batch, groups, enumerate)
        if not own.all():
            groups = groups.only(own)
        stored = self._store(stream, batch, groups, watermark, low_watermark)
        return joined._replace(work=joined.work + stored)

    def probe(self, stream: int, batch: Batch, *, enumerate: bool = False) -> Joined:
        """Find the partners of tuples of *stream* among the other stream's stored tuples."""
        return self._probe(stream, batch, _groups(batch), enumerate)

    def store(self, stream: int, batch: Batch, *, watermark: int, low_watermark: int) -> Work:
        """Store tuples of *stream*.

        Tuples of their keys that wait for none as new as *watermark* are let go, and those of any
        key by *low_watermark*, which is no greater.
        """
        return self._store(stream, batch, _groups(batch), watermark, low_watermark)

    def snapshot(self) -> list[dict[str, Any]]:
        """Return both buffers as plain arrays."""
        return [buffer.snapshot() for buffer in self.buffers]

    def restore(self, snapshot: list[dict[str, Any]]) -> None:
        """Take over a snapshot."""
        self.buffers = [IntervalBuffer.restore(saved) for saved in snapshot]

    def _probe(self, stream: int, batch: Batch, groups: KeyGroups, enumerate: bool) -> Joined:
        stored = self.buffers[1 - stream]
        find = stored.probe if stream == self._interval.base else stored.probe_stored
        found = find(groups, self._probes(stream, batch), enumerate=enumerate)
        matches = Matches(
            stream=self._interval.base,
            probe_id=found.ids,
            count=found.count,
            fingerprint=found.fingerprint,
            match_id=found.match_id,
        )
        return Joined(matches, found.row, found.work)

    def _store(
        self, stream: int, batch: Batch, groups: KeyGroups, watermark: int, low_watermark: int
    ) -> Work:
        return self.buffers[stream].insert(
            groups,
            self._values(stream, batch),
            horizon=self._interval.horizon(stream, watermark),
            floor=self._interval.horizon(stream, low_watermark),
        )

    def _probes(self, stream: int, batch: Batch) -> Probes:
        lower, upper = self._interval.offsets(stream)
        conditions = self._conditions[stream]
        low, high = np.empty((2, len(conditions), len(batch)), np.int64)
        for place, condition in enumerate(conditions):
            ends = condition.bounds(batch.fields[condition.probe_field])
            low[place], high[place] = (as_places(end) for end in ends)
        return Probes(
            lower,
            upper + 1,
            low,
            high,
            np.array([condition.negated for condition in conditions], np.bool_),
        )

    def _values(self, stream: int, batch: Batch) -> np.ndarray:
        conditions = self._conditions[1 - stream]
        values = np.empty((len(conditions), len(batch)), np.int64)
        for place, condition in enumerate(conditions):
            column = batch.fields[condition.stored_field]
            values[place] = as_places(column.astype(condition.dtype, copy=False))
        return values


def _groups(batch: Batch) -> KeyGroups:
    columns = {"key": batch.key, "ts": batch.ts, "id": batch.id}
    return group_by_key(*(column(values, np.int64, name) for name, values in columns.items()))


def as_places(values: np.ndarray) -> np.ndarray:
    """Return int64 values in the same order as *values*; floats by their place among all floats."""
    if values.dtype == np.int64:
        return values
    bits = values.view(np.int64)
    places = np.where(bits >= 0, bits, -(bits & _NAN_PLACE))
    return np.where(np.isnan(values), _NAN_PLACE, places)


def join_keys(query: JoinQuery, schemas: Sequence[Schema], stream: int, batch: Batch) -> Batch:
    """Return *batch* with its key filled in, without tuples whose key is NaN: those match none.

    The key is the field of the query's first equality, as a place that equals the other stream's
    exactly if the values are equal; without an equality all tuples have one key.
    """
    if query.key is None:
        return batch
    condition = query.conditions(stream, schemas)[query.key]
    values = batch.fields[condition.probe_field].astype(condition.dtype, copy=False)
    keyed = Batch(
        id=batch.id,
        ts=batch.ts,
        key=as_places(values),
        fields=batch.fields,
        width_bytes=batch.width_bytes,
    )
    if values.dtype.kind != "f" or not (missing := np.isnan(values)).any():
        return keyed
    return keyed.take(np.flatnonzero(~missing))
