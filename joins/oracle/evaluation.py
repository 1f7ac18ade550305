"""The expected result of a query, by the plainest means: compare every tuple with its window.

Shares no code with the indexes, nor with how windows and predicates are turned into bounds for
them: windows are computed anew from their definition, and predicates are evaluated as they are
written.

Which tuple of an interval join's pair came last depends on how a system interleaves its streams, so
its pairs are reported by their base tuple, as PPOIJ's equation 1 has it: every base tuple with all
the probe tuples in its interval, wherever they are in the arrival order.

Each result of a join of more than two streams is counted once, at its newest tuple: when that
arrives, it is joined with the windows of all other streams as they then are (stream semijoin paper,
Definition 1). All windows are those the newest tuple sees, also where two of the others are
compared with each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np

from joins.arrivals import Arrivals
from joins.batch import Batch, Schema
from joins.hashing import mix, mix_rows
from joins.machine.compiling import kernel
from joins.matches import Matches
from joins.oracle.match import Column, Comparison, Seen, Visible, compare, match_ranges
from joins.queries.conditions import Field
from joins.queries.interval import Interval
from joins.queries.query import JoinQuery, Predicate
from joins.threads import usable_cores

_INT64 = np.iinfo(np.int64)


def expected(
    query: JoinQuery,
    schemas: Sequence[Schema],
    arrivals: Iterable[Arrivals],
    *,
    late: Sequence[np.ndarray] = (),
    enumerate_ids: bool = False,
    threads: Callable[[], int] = usable_cores,
) -> Iterator[Matches]:
    """Yield the matches of every tuple that probes: of each stream its tuples in their order.

    In a window join every tuple probes what came before it (by event time, however the streams
    reach a system); in an interval join the tuples of the base stream probe. In a join of more than
    two streams a match is a tuple of each other stream. Tuples may come in several `Matches`.
    Memory is bounded by the windows and a chunk.

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
    threads
        Returns how many of them may compare tuples, again and again; by default as many as there
        are cores.
    """
    question = _Question(query, schemas, late, enumerate_ids, threads)
    evaluate = _expected_of_interval if query.interval else _expected_of_windows
    return evaluate(question, arrivals)


@dataclass(frozen=True, slots=True, eq=False)
class _Question:
    """What `expected` is asked, but for the input."""

    query: JoinQuery
    schemas: Sequence[Schema]
    late: Sequence[np.ndarray]
    enumerate_ids: bool
    threads: Callable[[], int]

    def match(self, seen: Seen) -> Iterator[Matches]:
        """Yield the matches of tuples with what they see."""
        return match_ranges(seen, enumerate_ids=self.enumerate_ids, threads=self.threads())

    def is_late(self, stream: int, ids: np.ndarray) -> np.ndarray:
        """Return which tuples of a stream were dropped as late, bool."""
        return np.isin(ids, self.late[stream])


def _expected_of_windows(question: _Question, arrivals: Iterable[Arrivals]) -> Iterator[Matches]:
    """Yield the matches of every tuple, of each stream its tuples in their order."""
    query, late = question.query, question.late
    streams = range(len(query.streams))
    visible = Visible(query, question.schemas)
    for chunk in arrivals:
        for stream, (tuples, seq) in enumerate(zip(chunk.parts, chunk.seq, strict=True)):
            if late:
                in_time = np.flatnonzero(~question.is_late(stream, tuples.id))
                tuples, seq = tuples.take(in_time), seq[in_time]
            visible.add(stream, tuples, seq)
        for probing, probes in enumerate(chunk.parts):
            seen = {}
            for stored in [other for other in streams if other != probing] or [probing]:
                first, last = visible.rows(stored, probes, chunk.seq[probing])
                if late:
                    last = np.where(question.is_late(probing, probes.id), first, last)
                seen[stored] = Seen(query, probing, probes, visible.batches[stored], first, last)
            if len(seen) == 1:
                yield from question.match(seen[stored])
            else:
                yield _join_newest(seen, enumerate_ids=question.enumerate_ids)
        visible.drop_unseen(chunk)


def _join_newest(seen: dict[int, Seen], *, enumerate_ids: bool) -> Matches:
    """Return the results of which each probing tuple is the newest one.

    *seen* has what it sees of each other stream.
    """
    any_other = next(iter(seen.values()))
    newest, probes = any_other.probing, any_other.probes
    batches = {newest: probes} | {stream: other.stored for stream, other in seen.items()}
    rows = {newest: np.arange(len(probes))}
    for other in _join_order(any_other.query, newest):
        first, last = seen[other].first[rows[newest]], seen[other].last[rows[newest]]
        rows = _extend(any_other.query, batches, rows, other, first, last)
    ids = [batches[stream].id[rows[stream]] for stream in sorted(rows) if stream != newest]
    probe = rows[newest]
    if enumerate_ids:
        order = np.lexsort((*reversed(ids), probe))
        ids, probe = [column[order] for column in ids], probe[order]
    fingerprint = np.zeros(len(probes), np.uint64)
    np.add.at(fingerprint, probe, mix_rows(ids))
    return Matches(
        stream=newest,
        probe_id=probes.id,
        count=np.bincount(probe, minlength=len(probes)),
        fingerprint=fingerprint,
        match_id=np.stack(ids, axis=1) if enumerate_ids else None,
    )


def _join_order(query: JoinQuery, newest: int) -> list[int]:
    """Return the other streams, each after one that a predicate compares it with if there is."""
    graph = nx.Graph((p.left.stream, p.right.stream) for p in query.predicates)
    graph.add_nodes_from(range(len(query.streams)))
    reached = [stream for _, stream in nx.bfs_edges(graph, newest)]
    return reached + [s for s in range(len(query.streams)) if s not in (newest, *reached)]


def _extend(
    query: JoinQuery,
    batches: Mapping[int, Batch],
    rows: dict[int, np.ndarray],
    other: int,
    first: np.ndarray,
    last: np.ndarray,
) -> dict[int, np.ndarray]:
    """Join combinations (a row of each stream's batch) with rows *first* to *last* of another's."""
    predicates = [
        predicate
        for predicate in query.predicates
        if other in (streams := {field.stream for field in predicate.fields})
        and streams <= {other, *rows}
    ]

    def column(field: Field) -> Column:
        values = batches[field.stream].fields[field.name]
        is_stored = field.stream == other
        return is_stored, values if is_stored else values[rows[field.stream]]

    comparison = Comparison.of(predicates, column, first, last, mix(batches[other].id))
    old, new = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for some, count, _, matched in compare(comparison, enumerate_rows=True):
        old.append(np.repeat(some, count))
        new.append(matched)
    extended = np.concatenate(old)
    return {stream: row[extended] for stream, row in rows.items()} | {other: np.concatenate(new)}


def _expected_of_interval(question: _Question, arrivals: Iterable[Arrivals]) -> Iterator[Matches]:
    """Yield the matches of the base stream's tuples, in their order.

    A base tuple waits until event time has passed the end of its interval; memory is bounded by the
    interval and a chunk.
    """
    interval, schemas = question.query.bound_interval, question.schemas
    base, probe = interval.base, 1 - interval.base
    waiting, around = Batch.empty(schemas[base]), Batch.empty(schemas[probe])
    for chunk in arrivals:
        waiting = Batch.concat([waiting, chunk.parts[base]])
        around = Batch.concat([around, chunk.parts[probe]])
        reached = max(int(part.ts[-1]) for part in chunk.parts if len(part))
        ready = int(waiting.ts.searchsorted(_bounded(reached - interval.upper_ns)))
        probes = waiting.slice(0, ready)
        yield from _match(question, interval, probes, around)
        waiting = waiting.slice(ready, len(waiting))
        oldest = int(waiting.ts[0]) if len(waiting) else reached
        needed = int(around.ts.searchsorted(_bounded(oldest + interval.lower_ns)))
        around = around.slice(needed, len(around))
    yield from _match(question, interval, waiting, around)


def _match(
    question: _Question, interval: Interval, probes: Batch, around: Batch
) -> Iterator[Matches]:
    """Sort both sides by key and time, compare neighbours, and put the answers back in order."""
    if not len(probes):
        return
    query, base = question.query, interval.base
    if question.late:
        around = around.take(np.flatnonzero(~question.is_late(1 - base, around.id)))
    base_key, probe_key = _keys(query, base, probes), _keys(query, 1 - base, around)
    common = np.result_type(base_key, probe_key)
    base_key, probe_key = base_key.astype(common), probe_key.astype(common)
    # Event times ascend already.
    order, stored_order = (np.argsort(keys, kind="stable") for keys in (base_key, probe_key))
    first, last = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    least, too_new = _moved(probes.ts[order], interval.lower_ns)
    most, too_old = _moved(probes.ts[order], interval.upper_ns)
    _find_rows(
        base_key[order], least, most, probe_key[stored_order], around.ts[stored_order], first, last
    )
    if interval.lower_ns > 0:  # then nothing can be as new as that
        last = np.where(too_new, first, last)
    if interval.upper_ns < 0:
        last = np.where(too_old, first, last)
    if question.late:
        last = np.where(question.is_late(base, probes.id[order]), first, last)
    if common.kind == "f":
        last = np.where(np.isnan(base_key[order]), first, last)
    if len(query.predicates) == (_key(query) is not None) and not question.enumerate_ids:
        yield _sums_of_rows(base, probes.id, order, around.id[stored_order], first, last)
        return
    seen = Seen(query, base, probes.take(order), around.take(stored_order), first, last)
    parts = list(question.match(seen))
    yield _in_order(parts, np.argsort(order), probes.id, enumerate_ids=question.enumerate_ids)


def _sums_of_rows(
    stream: int,
    ids: np.ndarray,
    order: np.ndarray,
    stored_ids: np.ndarray,
    first: np.ndarray,
    last: np.ndarray,
) -> Matches:
    """Return counts and fingerprints of the tuples *ids*, all of whose rows match.

    Tuple ``ids[order[i]]`` has the rows *first* to *last* of *stored_ids*.
    """
    until = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mix(stored_ids), dtype=np.uint64)])
    count, fingerprint = np.empty(len(ids), np.int64), np.empty(len(ids), np.uint64)
    count[order] = last - first
    fingerprint[order] = until[last] - until[first]
    return Matches(stream=stream, probe_id=ids, count=count, fingerprint=fingerprint)


def _key(query: JoinQuery) -> Predicate | None:
    """Return the first equality as it is written; the joins' own choice is not used."""
    return next((one for one in query.predicates if one.operator.symbol == "="), None)


def _keys(query: JoinQuery, stream: int, batch: Batch) -> np.ndarray:
    """Return the values of the first equality; all 0 without one."""
    predicate = _key(query)
    if predicate is None:
        return np.zeros(len(batch), np.int64)
    field = predicate.left if predicate.left.stream == stream else predicate.right
    return batch.fields[field.name]


def _moved(ts: np.ndarray, by: int) -> tuple[np.ndarray, np.ndarray]:
    """Return *ts* + *by* clipped to int64, and a mask of the clipped values."""
    fitting = np.clip(ts, _INT64.min - min(by, 0), _INT64.max - max(by, 0))
    return fitting + by, fitting != ts


@kernel
def _find_rows(
    keys: np.ndarray,
    least: np.ndarray,
    most: np.ndarray,
    stored: np.ndarray,
    stored_ts: np.ndarray,
    first: np.ndarray,
    last: np.ndarray,
) -> None:
    """Find for each tuple the stored rows of its key with a time from *least* to *most*.

    Both sides are sorted by key, then time.
    """
    begin = end = 0
    for i in range(len(keys)):
        while begin < len(stored) and (
            stored[begin] < keys[i] or (stored[begin] == keys[i] and stored_ts[begin] < least[i])
        ):
            begin += 1
        end = max(begin, end)
        while end < len(stored) and stored[end] == keys[i] and stored_ts[end] <= most[i]:
            end += 1
        first[i], last[i] = begin, end


def _bounded(ts: int) -> int:
    """Return the nearest int64."""
    return max(_INT64.min, min(_INT64.max, ts))


def _in_order(
    parts: list[Matches], places: np.ndarray, ids: np.ndarray, *, enumerate_ids: bool
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
