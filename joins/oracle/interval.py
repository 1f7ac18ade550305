"""The expected pairs of an interval join, by sorting.

Which tuple of a pair came last depends on how a system interleaves its streams, so pairs are
reported by their base tuple, as PPOIJ's equation 1 has it: every base tuple with all the probe
tuples in its interval, wherever they stand in the arrival order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from joins.arrivals import Arrivals
from joins.batch import Batch, Schema
from joins.matches import Matches
from joins.oracle.match import match_ranges
from joins.queries.interval import Interval
from joins.queries.query import JoinQuery

_INT64 = np.iinfo(np.int64)


def expected_of_interval(
    query: JoinQuery,
    schemas: Sequence[Schema],
    arrivals: Iterable[Arrivals],
    late: Sequence[np.ndarray],
    enumerate_ids: bool,
) -> Iterator[Matches]:
    """Give the matches of the base stream's tuples, in their order.

    A base tuple waits until event time has passed the end of its interval; memory is bounded by the
    interval and a chunk. The parameters are those of `joins.oracle.expected.expected`.
    """
    interval = query.reach
    base, probe = interval.base, 1 - interval.base
    waiting, around = Batch.empty(schemas[base]), Batch.empty(schemas[probe])
    for chunk in arrivals:
        waiting = Batch.concat([waiting, chunk.parts[base]])
        around = Batch.concat([around, chunk.parts[probe]])
        reached = max(int(part.ts[-1]) for part in chunk.parts if len(part))
        ready = int(waiting.ts.searchsorted(_bounded(reached - interval.upper_ns)))
        yield from _match(query, interval, waiting.slice(0, ready), around, late, enumerate_ids)
        waiting = waiting.slice(ready, len(waiting))
        oldest = int(waiting.ts[0]) if len(waiting) else reached
        needed = int(around.ts.searchsorted(_bounded(oldest + interval.lower_ns)))
        around = around.slice(needed, len(around))
    yield from _match(query, interval, waiting, around, late, enumerate_ids)


def _match(
    query: JoinQuery,
    interval: Interval,
    probes: Batch,
    around: Batch,
    late: Sequence[np.ndarray],
    enumerate_ids: bool,
) -> Iterator[Matches]:
    """Sort both sides by key and time, compare neighbours, and put the answers back in order."""
    if not len(probes):
        return
    base = interval.base
    if late:
        around = around.take(np.flatnonzero(~np.isin(around.id, late[1 - base])))
    base_key, probe_key = _keys(query, base, probes), _keys(query, 1 - base, around)
    order, stored_order = np.lexsort((probes.ts, base_key)), np.lexsort((around.ts, probe_key))
    sorted_probes, stored = probes.take(order), around.take(stored_order)
    first, last = _ranges(
        interval, sorted_probes.ts, base_key[order], stored.ts, probe_key[stored_order]
    )
    if late:
        last = np.where(np.isin(sorted_probes.id, late[base]), first, last)
    found = list(match_ranges(query, base, sorted_probes, stored, first, last, enumerate_ids))
    yield _in_order(found, np.argsort(order), probes.id, enumerate_ids)


def _keys(query: JoinQuery, stream: int, batch: Batch) -> np.ndarray:
    """Return the values of the first equality; all 0 without one."""
    if query.key is None:
        return np.zeros(len(batch), np.int64)
    predicate = query.predicates[query.key]
    field = predicate.left if predicate.left.stream == stream else predicate.right
    return batch.fields[field.name]


def _ranges(
    interval: Interval, ts: np.ndarray, keys: np.ndarray, stored_ts: np.ndarray, stored: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of *stored* with each key and a time in its interval, key by key."""
    first, last = np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64)
    values, begins = np.unique(keys, return_index=True)
    for value, begin, end in zip(values, begins, [*begins[1:], len(keys)], strict=True):
        left, right = np.searchsorted(stored, value), np.searchsorted(stored, value, "right")
        mine = stored_ts[left:right]
        mine_ts = ts[begin:end]
        first[begin:end] = left + mine.searchsorted(_moved(mine_ts, interval.lower_ns), "left")
        last[begin:end] = left + mine.searchsorted(_moved(mine_ts, interval.upper_ns), "right")
    return first, np.maximum(first, last)


def _moved(ts: np.ndarray, by: int) -> np.ndarray:
    """Return *ts* + *by*, as Python's integers where a sum is no int64."""
    if int(ts.min()) + by < _INT64.min or int(ts.max()) + by > _INT64.max:
        return ts.astype(object) + by
    return ts + by


def _bounded(ts: int) -> int:
    """Return the nearest int64."""
    return max(_INT64.min, min(_INT64.max, ts))


def _in_order(
    found: list[Matches], places: np.ndarray, ids: np.ndarray, enumerate_ids: bool
) -> Matches:
    """Return what was found of sorted tuples, in the order of their *ids*."""
    count = np.concatenate([part.count for part in found])
    match_id = None
    if enumerate_ids:
        listed = np.concatenate([part.match_id for part in found if part.match_id is not None])
        row = np.repeat(np.argsort(places), count)
        match_id = listed[np.lexsort((listed, row))]
    return Matches(
        stream=found[0].stream,
        probe_id=ids,
        count=count[places],
        fingerprint=np.concatenate([part.fingerprint for part in found])[places],
        match_id=match_id,
    )
