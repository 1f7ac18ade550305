"""The expected result of a query, by the plainest means: compare every tuple with its window.

Shares no code with the indexes, nor with how windows and predicates are turned into bounds for
them: windows are found anew from their definition, and predicates are evaluated as they are
written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from joins.arrivals import Arrivals
from joins.batch import Batch, Schema
from joins.matches import Matches
from joins.oracle.interval import expected_of_interval
from joins.oracle.match import match_ranges
from joins.oracle.multiway import expected_of_multiway
from joins.oracle.windows import unseen_rows, window_rows
from joins.queries.query import JoinQuery


def expected(
    query: JoinQuery,
    schemas: Sequence[Schema],
    arrivals: Iterable[Arrivals],
    *,
    late: Sequence[np.ndarray] = (),
    enumerate_ids: bool = False,
) -> Iterator[Matches]:
    """Give the matches of every tuple that probes: of each stream its tuples in their order.

    In a window join every tuple probes what came before it (by event time, however the streams
    reach a system); in an interval join the tuples of the base stream probe (see
    `joins.oracle.interval`). In a join of more than two streams a match is a tuple of each other
    stream (see `joins.oracle.multiway`). Tuples may come in several `Matches`. Memory is bounded by
    the windows and a chunk.

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
        return expected_of_interval(query, schemas, arrivals, late, enumerate_ids)
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
    streams = range(len(query.streams))
    kept = [Batch.empty(schema) for schema in schemas]
    seen_seq = [np.empty(0, np.int64) for _ in streams]
    for chunk in arrivals:
        for stream in streams:
            new, new_seq = chunk.parts[stream], chunk.seq[stream]
            if late:
                in_time = np.flatnonzero(~np.isin(new.id, late[stream]))
                new, new_seq = new.take(in_time), new_seq[in_time]
            kept[stream] = Batch.concat([kept[stream], new])
            seen_seq[stream] = np.concatenate([seen_seq[stream], new_seq])
        for probing in streams:
            stored = query.stored_stream(probing)
            probes = chunk.parts[probing]
            first, last = window_rows(
                query.windows[stored], kept[stored], seen_seq[stored], probes, chunk.seq[probing]
            )
            if late:
                last = np.where(np.isin(probes.id, late[probing]), first, last)
            yield from match_ranges(
                query, probing, probes, kept[stored], first, last, enumerate_ids
            )
        latest = max((int(part.ts[-1]) for part in chunk.parts if len(part)), default=None)
        for stored, window in enumerate(query.windows):
            row = unseen_rows(window, kept[stored], latest)
            kept[stored] = kept[stored].slice(row, len(kept[stored]))
            seen_seq[stored] = seen_seq[stored][row:]
