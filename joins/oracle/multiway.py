"""The expected results of a join of more than two streams, by nested loops.

Each result is counted once, at its newest tuple: when that arrives, it is joined with the windows
of all other streams as they then are (stream semijoin paper, Definition 1). All windows are those
the newest tuple sees, also where two of the others are compared with each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import networkx as nx
import numpy as np

from joins.arrivals import Arrivals
from joins.batch import Batch, Schema
from joins.hashing import mix_rows
from joins.matches import Matches
from joins.oracle.match import evaluate, mark_ranges
from joins.oracle.windows import unseen_rows, window_rows
from joins.queries.query import JoinQuery

_CELLS_AT_ONCE = 1 << 22
"""Combinations, times the tuples they are compared with, at once."""


def expected_of_multiway(
    query: JoinQuery, schemas: Sequence[Schema], arrivals: Iterable[Arrivals], enumerate_ids: bool
) -> Iterator[Matches]:
    """Give the results of every tuple, of each stream its tuples in their order.

    The parameters are those of `joins.oracle.expected.expected`.
    """
    streams = range(len(query.streams))
    kept = [Batch.empty(schema) for schema in schemas]
    seen_seq = [np.empty(0, np.int64) for _ in streams]
    for chunk in arrivals:
        for stream in streams:
            kept[stream] = Batch.concat([kept[stream], chunk.parts[stream]])
            seen_seq[stream] = np.concatenate([seen_seq[stream], chunk.seq[stream]])
        for newest in streams:
            probes = chunk.parts[newest]
            ranges = {
                other: window_rows(
                    query.windows[other], kept[other], seen_seq[other], probes, chunk.seq[newest]
                )
                for other in streams
                if other != newest
            }
            yield _join(query, newest, probes, kept, ranges, enumerate_ids)
        latest = max((int(part.ts[-1]) for part in chunk.parts if len(part)), default=None)
        for stored, window in enumerate(query.windows):
            row = unseen_rows(window, kept[stored], latest)
            kept[stored] = kept[stored].slice(row, len(kept[stored]))
            seen_seq[stored] = seen_seq[stored][row:]


def _join(
    query: JoinQuery,
    newest: int,
    probes: Batch,
    kept: Sequence[Batch],
    ranges: dict[int, tuple[np.ndarray, np.ndarray]],
    enumerate_ids: bool,
) -> Matches:
    """Return the results of which each of *probes* is the newest tuple."""
    batches = [probes if stream == newest else batch for stream, batch in enumerate(kept)]
    rows = {newest: np.arange(len(probes))}
    for other in _order(query, newest):
        first, last = (bound[rows[newest]] for bound in ranges[other])
        rows = _extend(query, batches, rows, other, first, last)
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


def _order(query: JoinQuery, newest: int) -> list[int]:
    """Return the other streams, each after one that a predicate compares it with if there is."""
    graph = nx.Graph((p.left.stream, p.right.stream) for p in query.predicates)
    graph.add_nodes_from(range(len(query.streams)))
    reached = [stream for _, stream in nx.bfs_edges(graph, newest)]
    return reached + [s for s in range(len(query.streams)) if s not in (newest, *reached)]


def _extend(
    query: JoinQuery,
    batches: Sequence[Batch],
    rows: dict[int, np.ndarray],
    other: int,
    first: np.ndarray,
    last: np.ndarray,
) -> dict[int, np.ndarray]:
    """Join combinations (a row of each stream's batch) with rows *first* to *last* of another's."""
    count = len(first)
    width = max(1, int((last - first).max(initial=1)))
    step = max(1, min(256, _CELLS_AT_ONCE // width))
    found: list[dict[int, np.ndarray]] = []
    for begin in range(0, count, step):
        some = {stream: column[begin : begin + step] for stream, column in rows.items()}
        low, high = first[begin : begin + step], last[begin : begin + step]
        left, right = int(low.min()), int(high.max())
        holds = np.zeros((len(low), right - left), np.bool_)
        mark_ranges(holds, low - left, high - left)
        for predicate in query.predicates:
            fields = predicate.left, predicate.right
            if not {field.stream for field in fields} <= {other, *some}:
                continue
            if other not in (field.stream for field in fields):
                continue
            sides = [
                batches[other].fields[field.name][np.newaxis, left:right]
                if field.stream == other
                else batches[field.stream].fields[field.name][some[field.stream], np.newaxis]
                for field in fields
            ]
            holds &= evaluate(predicate, *sides)
        row, column = np.nonzero(holds)
        found.append({stream: old[row] for stream, old in some.items()} | {other: left + column})
    return {
        stream: np.concatenate([part[stream] for part in found] or [np.empty(0, np.int64)])
        for stream in (*rows, other)
    }
