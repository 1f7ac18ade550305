"""The expected result of a query, by the plainest means: compare every tuple with its window.

Shares no code with the indexes, nor with how windows and predicates are turned into bounds for
them: windows are found anew from their definition, and predicates are evaluated as they are
written.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

import numpy as np
from numba import njit

from joins.arrivals import Arrivals
from joins.batch import Batch, Schema
from joins.hashing import mix
from joins.matches import Matches
from joins.query import Field, JoinQuery, Predicate
from joins.windows import Window

_ROWS_AT_ONCE = 256
_CELLS_AT_ONCE = 1 << 24
"""Probes, and pairs, compared at once: together they bound the matrix of comparisons (a band needs
some 20 bytes a pair), however long the window is."""


def expected(
    query: JoinQuery,
    schemas: Sequence[Schema],
    arrivals: Iterable[Arrivals],
    *,
    enumerate_ids: bool = False,
) -> Iterator[Matches]:
    """Give the matches of every tuple: chunk by chunk the tuples of each stream in their order.

    A stream's tuples of a chunk may come in several `Matches`. Memory is bounded by the windows and
    a chunk.

    Parameters
    ----------
    query, schemas
        What to evaluate, and the fields of each stream.
    arrivals
        The whole input in chunks.
    enumerate_ids
        Whether to list match ids, ascending within a row.
    """
    streams = range(len(query.streams))
    kept = [Batch.empty(schema) for schema in schemas]
    seen_seq = [np.empty(0, np.int64) for _ in streams]
    for chunk in arrivals:
        for stream in streams:
            kept[stream] = Batch.concat([kept[stream], chunk.parts[stream]])
            seen_seq[stream] = np.concatenate([seen_seq[stream], chunk.seq[stream]])
        for probing in streams:
            stored = query.stored_stream(probing)
            probes = chunk.parts[probing]
            first, last = _window(
                query.windows[stored], kept[stored], seen_seq[stored], probes, chunk.seq[probing]
            )
            yield from _match(query, probing, probes, kept[stored], first, last, enumerate_ids)
        latest = max((int(part.ts[-1]) for part in chunk.parts if len(part)), default=None)
        for stored, window in enumerate(query.windows):
            row = _unseen(window, kept[stored], latest)
            kept[stored] = kept[stored].slice(row, len(kept[stored]))
            seen_seq[stored] = seen_seq[stored][row:]


def _window(
    window: Window, stored: Batch, stored_seq: np.ndarray, probes: Batch, seq: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of *stored* that each probe sees: first, and the one after the last."""
    base = int(stored.id[0]) if len(stored) else 0
    last = np.searchsorted(stored_seq, seq)
    if window.kind == "count":
        preceding = base + last
        oldest = (preceding // window.slide) * window.slide - (window.length - window.slide)
        first = np.maximum(oldest, base) - base
    elif window.semantics == "precise":
        first = np.searchsorted(stored.ts, probes.ts - window.length, "left")
        last = np.minimum(last, np.searchsorted(stored.ts, probes.ts, "left"))
    else:
        oldest = (probes.ts // window.slide) * window.slide - (window.length - window.slide)
        first = np.searchsorted(stored.ts, oldest, "left")
    return np.minimum(first, last).astype(np.int64), last.astype(np.int64)


def _unseen(window: Window, stored: Batch, latest: int | None) -> int:
    """Return how many rows of *stored* no tuple that arrives after event time *latest* sees."""
    if latest is None or not len(stored):
        return 0
    at = latest if window.kind == "time" else int(stored.id[-1]) + 1
    if window.semantics == "precise":
        oldest = at - window.length
    else:
        oldest = at // window.slide * window.slide - (window.length - window.slide)
    return int((stored.ts if window.kind == "time" else stored.id).searchsorted(oldest))


def _match(
    query: JoinQuery,
    probing: int,
    probes: Batch,
    stored: Batch,
    first: np.ndarray,
    last: np.ndarray,
    enumerate_ids: bool,
) -> Iterator[Matches]:
    hashes = mix(stored.id)
    width = max(1, int((last - first).max(initial=1)))
    step = max(1, min(_ROWS_AT_ONCE, _CELLS_AT_ONCE // width))
    for begin in range(0, len(probes), step):
        rows = slice(begin, begin + step)
        low, high = first[rows], last[rows]
        left, right = int(low.min()), int(high.max())
        holds = np.zeros((len(low), right - left), np.bool_)
        _inside(holds, low - left, high - left)
        for predicate in query.predicates:
            sides = [
                _values(field, query, probing, probes, stored, rows, slice(left, right))
                for field in (predicate.left, predicate.right)
            ]
            holds &= _evaluate(predicate, *sides)
        count = np.zeros(len(low), np.int64)
        fingerprint = np.zeros(len(low), np.uint64)
        _sum(holds, hashes[left:right], count, fingerprint)
        yield Matches(
            stream=probing,
            probe_id=probes.id[rows],
            count=count,
            fingerprint=fingerprint,
            match_id=stored.id[left + np.nonzero(holds)[1]] if enumerate_ids else None,
        )


def _values(
    field: Field,
    query: JoinQuery,
    probing: int,
    probes: Batch,
    stored: Batch,
    rows: slice,
    window: slice,
) -> np.ndarray:
    """Return one side of a predicate: probes down the rows, stored tuples along the columns."""
    is_probe = field.role == 1 if query.is_self_join else field.stream == probing
    if is_probe:
        return probes.fields[field.name][rows, np.newaxis]
    return stored.fields[field.name][np.newaxis, window]


_COMPARE = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "=": np.equal,
    "!=": np.not_equal,
}


def _evaluate(predicate: Predicate, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    compare = _COMPARE[predicate.operator]
    if predicate.epsilon is None:
        return compare(left, right)
    if left.dtype == right.dtype == np.int64:
        # The difference of two int64 may need a bit more: as unsigned it fits.
        distance = np.maximum(left, right).astype(np.uint64) - np.minimum(left, right).astype(
            np.uint64
        )
        width = Decimal(predicate.epsilon)
        return compare(distance, math.ceil(width) if predicate.operator == "<" else int(width))
    with np.errstate(over="ignore"):  # an infinite distance is rightly outside
        return compare(np.abs(left - right), float(predicate.epsilon))


@njit(cache=True, nogil=True)
def _inside(holds: np.ndarray, first: np.ndarray, last: np.ndarray) -> None:
    """Set each row from its first column to its last, exclusive."""
    for i in range(len(first)):
        holds[i, first[i] : last[i]] = True


@njit(cache=True, nogil=True)
def _sum(holds: np.ndarray, hashes: np.ndarray, count: np.ndarray, fingerprint: np.ndarray) -> None:
    for i in range(len(count)):
        matches = 0
        total = np.uint64(0)
        for j in range(len(hashes)):
            if holds[i, j]:
                matches += 1
                total += hashes[j]
        count[i] = matches
        fingerprint[i] = total
