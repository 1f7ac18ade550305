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
from joins.oracle.match import Visible, clear_unsatisfied, mark_ranges
from joins.queries.conditions import Field
from joins.queries.query import JoinQuery

_CELLS_AT_ONCE = 1 << 22
"""Combinations, times the tuples they are compared with, at once."""


def expected_of_multiway(
    query: JoinQuery,
    schemas: Sequence[Schema],
    arrivals: Iterable[Arrivals],
    *,
    enumerate_ids: bool,
) -> Iterator[Matches]:
    """Yield the results of every tuple, of each stream its tuples in their order.

    The parameters are those of `joins.oracle.expected.expected`.
    """
    streams = range(len(query.streams))
    visible = Visible(query, schemas)
    for chunk in arrivals:
        for stream in streams:
            visible.add(stream, chunk.parts[stream], chunk.seq[stream])
        for newest in streams:
            probes = chunk.parts[newest]
            seen = {
                other: visible.rows(other, probes, chunk.seq[newest])
                for other in streams
                if other != newest
            }
            stored = visible.batches
            yield _join(query, newest, probes, stored, seen, enumerate_ids=enumerate_ids)
        visible.drop_unseen(chunk)


def _join(
    query: JoinQuery,
    newest: int,
    probes: Batch,
    stored: Sequence[Batch],
    seen: dict[int, tuple[np.ndarray, np.ndarray]],
    *,
    enumerate_ids: bool,
) -> Matches:
    """Return the results of which each of *probes* is the newest tuple."""
    batches = [probes if stream == newest else batch for stream, batch in enumerate(stored)]
    rows = {newest: np.arange(len(probes))}
    for other in _order(query, newest):
        first, last = (bound[rows[newest]] for bound in seen[other])
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
    width = max(1, int((last - first).max(initial=1)))
    step = max(1, min(256, _CELLS_AT_ONCE // width))
    predicates = [
        predicate
        for predicate in query.predicates
        if other in (streams := {field.stream for field in predicate.fields})
        and streams <= {other, *rows}
    ]
    extended: list[dict[int, np.ndarray]] = []
    for begin in range(0, len(first), step):
        some = {stream: column[begin : begin + step] for stream, column in rows.items()}
        low, high = first[begin : begin + step], last[begin : begin + step]
        left, right = int(low.min()), int(high.max())

        def value(
            field: Field, some: dict[int, np.ndarray] = some, window: slice = slice(left, right)
        ) -> np.ndarray:
            values = batches[field.stream].fields[field.name]
            if field.stream == other:
                return values[np.newaxis, window]
            return values[some[field.stream], np.newaxis]

        matched = np.zeros((len(low), right - left), np.bool_)
        mark_ranges(matched, low - left, high - left)
        clear_unsatisfied(matched, predicates, value)
        row, column = np.nonzero(matched)
        extended.append({stream: old[row] for stream, old in some.items()} | {other: left + column})
    return {
        stream: np.concatenate([part[stream] for part in extended] or [np.empty(0, np.int64)])
        for stream in (*rows, other)
    }
