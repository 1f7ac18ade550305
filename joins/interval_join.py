"""An interval join of two streams over two state buffers: what a replica computes.

Pairs are reported by base tuple, whichever of the two came last; each replica and each message adds
its part of what equation 1 has for a base tuple.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from joins.batch import Batch, Schema
from joins.codes import encode
from joins.indexes.index import as_column, ranges_of
from joins.indexes.interval_buffer import IntervalBuffer, JoinedPairs, Reach
from joins.indexes.key_groups import group_by_key
from joins.queries.query import JoinQuery, JoinSides
from joins.state import Stateful


class IntervalJoin(Stateful):
    """Two state buffers, and the conditions that a pair must satisfy.

    Parameters
    ----------
    query, schemas
        A query with an interval, and its streams' fields.
    """

    state = ("buffers",)

    def __init__(self, query: JoinQuery, schemas: Sequence[Schema]) -> None:
        self._interval = query.bound_interval
        others = [place for place in range(len(query.predicates)) if place != query.key]
        self._sides = JoinSides(query, schemas, others)
        self.buffers = [IntervalBuffer(len(others)) for _ in (0, 1)]

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
    ) -> JoinedPairs:
        """Probe with tuples of *stream*, then store those that the mask *own* names.

        Stored tuples of the same keys that wait for none as new as *watermark* are dropped, and
        those of any key by *low_watermark*, which is no greater. With *enumerate* list match ids.
        """
        columns = (("key", batch.key), ("ts", batch.ts), ("id", batch.id))
        groups = group_by_key(*(as_column(values, np.int64, name) for name, values in columns))
        base, stored = self._interval.base, self.buffers[1 - stream]
        find = stored.probe if stream == base else stored.probe_stored
        lower, upper = self._interval.offsets(stream)
        reach = Reach(lower, upper + 1)
        conditions = self._sides.probing[stream]
        ranges = ranges_of(conditions, batch)
        found = find(base, groups, reach, ranges, enumerate=enumerate)
        inserted = self.buffers[stream].insert(
            groups if np.count_nonzero(own) == len(own) else groups.only(own),
            self._codes(stream, batch),
            horizon=self._interval.horizon(stream, watermark),
            floor=self._interval.horizon(stream, low_watermark),
        )
        return found._replace(work=found.work + inserted)

    def _codes(self, stream: int, batch: Batch) -> np.ndarray:
        stored = self._sides.storing[stream]
        codes = [encode(batch.fields[c.stored_field].astype(c.dtype, copy=False)) for c in stored]
        return np.array(codes, np.int64).reshape(len(stored), len(batch))


def with_key(query: JoinQuery, schemas: Sequence[Schema], stream: int, batch: Batch) -> Batch:
    """Return *batch* with its key filled in, without tuples whose key is NaN: those match none.

    The key is the code of the field in the query's first equality, which equals the other stream's
    exactly if the values are equal; without an equality all tuples have one key.
    """
    if query.key is None:
        return batch
    condition = query.conditions(stream, schemas)[query.key]
    values = batch.fields[condition.probe_field].astype(condition.dtype, copy=False)
    keyed = replace(batch, key=encode(values))
    if values.dtype.kind != "f" or not (missing := np.isnan(values)).any():
        return keyed
    return keyed.take(np.flatnonzero(~missing))
