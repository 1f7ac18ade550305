"""The expected result of a query, by the plainest means: compare every tuple with its window.

Shares no code with the indexes, nor with how windows and predicates are turned into bounds for
them: windows are computed anew from their definition, and predicates are evaluated as they are
written.

Which tuple of an interval join's pair came last depends on how a system interleaves its streams, so
its pairs are reported by their base tuple, as PPOIJ's equation 1 has it: every base tuple with all
the probe tuples in its interval, wherever they are in the arrival order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from joins.arrivals import Arrivals
from joins.batch import Batch, Schema
from joins.matches import Matches
from joins.oracle.match import Visible, match_ranges
from joins.oracle.multiway import expected_of_multiway
from joins.queries.interval import Interval
from joins.queries.query import JoinQuery

_INT64 = np.iinfo(np.int64)


def expected(
    query: JoinQuery,
    schemas: Sequence[Schema],
    arrivals: Iterable[Arrivals],
    *,
    late: Sequence[np.ndarray] = (),
    enumerate_ids: bool = False,
) -> Iterator[Matches]:
    """Yield the matches of every tuple that probes: of each stream its tuples in their order.

    In a window join every tuple probes what came before it (by event time, however the streams
    reach a system); in an interval join the tuples of the base stream probe. In a join of more than
    two streams a match is a tuple of each other stream (see `joins.oracle.multiway`). Tuples may
    come in several `Matches`. Memory is bounded by the windows and a chunk.

    Parameters
    ----------
    query, schemas
        What to evaluate, and the fields of each stream.
    arrivals
        The whole input in chunks, by event time.
    late
        Per stream the ids of tuples that were dropped as late, int64, ascending; empty when there
        are none. A window that counts tuples has none.
    enumerate_ids
        Whether to list match ids, ascending within a row.
    """
    if query.interval:
        return _expected_of_interval(query, schemas, arrivals, late, enumerate_ids)
    if len(query.streams) > 2:
        return expected_of_multiway(query, schemas, arrivals, enumerate_ids)
    return _expected_of_windows(query, schemas, arrivals, late, enumerate_ids)


def _expected_of_windows(
    query: JoinQuery,
    schemas: Sequence[Schema],
    arrivals: Iterable[Arrivals],
    late: Sequence[np.ndarray],
    enumerate_ids: bool,
) -> Iterator[Matches]:
    visible = Visible(query, schemas)
    for chunk in arrivals:
        for stream, (tuples, seq) in enumerate(zip(chunk.parts, chunk.seq, strict=True)):
            if late:
                in_time = np.flatnonzero(~np.isin(tuples.id, late[stream]))
                tuples, seq = tuples.take(in_time), seq[in_time]
            visible.add(stream, tuples, seq)
        for probing, probes in enumerate(chunk.parts):
            stored = query.stored_stream(probing)
            first, last = visible.rows(stored, probes, chunk.seq[probing])
            if late:
                last = np.where(np.isin(probes.id, late[probing]), first, last)
            yield from match_ranges(
                query, probing, probes, visible.batches[stored], first, last, enumerate_ids
            )
        visible.drop_unseen(chunk)


def _expected_of_interval(
    query: JoinQuery,
    schemas: Sequence[Schema],
    arrivals: Iterable[Arrivals],
    late: Sequence[np.ndarray],
    enumerate_ids: bool,
) -> Iterator[Matches]:
    """Yield the matches of the base stream's tuples, in their order.

    A base tuple waits until event time has passed the end of its interval; memory is bounded by the
    interval and a chunk.
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
    parts = list(match_ranges(query, base, sorted_probes, stored, first, last, enumerate_ids))
    yield _in_order(parts, np.argsort(order), probes.id, enumerate_ids)


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
    parts: list[Matches], places: np.ndarray, ids: np.ndarray, enumerate_ids: bool
) -> Matches:
    """Join the matches of sorted tuples, and return them in the order of their *ids*."""
    count = np.concatenate([part.count for part in parts])
    match_id = None
    if enumerate_ids:
        listed = np.concatenate([part.match_id for part in parts if part.match_id is not None])
        row = np.repeat(np.argsort(places), count)
        match_id = listed[np.lexsort((listed, row))]
    return Matches(
        stream=parts[0].stream,
        probe_id=ids,
        count=count[places],
        fingerprint=np.concatenate([part.fingerprint for part in parts])[places],
        match_id=match_id,
    )
