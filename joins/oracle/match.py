"""Every probe against a range of stored tuples, predicates evaluated as they are written."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal

import numpy as np

from joins.batch import Batch
from joins.hashing import mix
from joins.machine.compiling import allocating
from joins.matches import Matches
from joins.oracle.sorted_scans import match_near
from joins.queries.field import Field
from joins.queries.query import JoinQuery, Predicate

_ROWS_AT_ONCE = 256
_CELLS_AT_ONCE = 1 << 24
"""Probes, and pairs, compared at once: together they bound the matrix of comparisons (a band needs
some 20 bytes a pair), however long the window is."""


def match_ranges(
    query: JoinQuery,
    probing: int,
    probes: Batch,
    stored: Batch,
    first: np.ndarray,
    last: np.ndarray,
    enumerate_ids: bool,
) -> Iterator[Matches]:
    """Compare every probe with the rows *first* to *last* (exclusive) of *stored*, some at a time.

    Parameters
    ----------
    query, probing
        The predicates, and the stream that *probes* are of.
    first, last
        int64, a row of *stored* per probe.
    enumerate_ids
        Whether to list match ids, in the order of *stored* within a row.
    """

    def holds_of_pairs(probe: np.ndarray, match: np.ndarray) -> np.ndarray:
        holds = np.ones(len(probe), np.bool_)
        for predicate in query.predicates:
            sides = [
                stored.fields[field.name][match]
                if not _is_probe(field, query, probing)
                else probes.fields[field.name][probe]
                for field in (predicate.left, predicate.right)
            ]
            holds &= evaluate(predicate, *sides)
        return holds

    bounds = (first, last)
    near = match_near(query, probing, probes, stored, bounds, holds_of_pairs, enumerate_ids)
    if near is not None:
        yield from near
        return
    hashes = mix(stored.id)
    width = max(1, int((last - first).max(initial=1)))
    step = max(1, min(_ROWS_AT_ONCE, _CELLS_AT_ONCE // width))
    for begin in range(0, len(probes), step):
        rows = slice(begin, begin + step)
        low, high = first[rows], last[rows]
        left, right = int(low.min()), int(high.max())
        holds = np.zeros((len(low), right - left), np.bool_)
        mark_ranges(holds, low - left, high - left)
        for predicate in query.predicates:
            sides = [
                _values(field, query, probing, probes, stored, rows, slice(left, right))
                for field in (predicate.left, predicate.right)
            ]
            holds &= evaluate(predicate, *sides)
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
    if _is_probe(field, query, probing):
        return probes.fields[field.name][rows, np.newaxis]
    return stored.fields[field.name][np.newaxis, window]


def _is_probe(field: Field, query: JoinQuery, probing: int) -> bool:
    return field.role == 1 if query.is_self_join else field.stream == probing


_COMPARE = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "=": np.equal,
    "!=": np.not_equal,
}


def evaluate(predicate: Predicate, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Evaluate a predicate as it is written, element by element; the two sides broadcast."""
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
    # An infinite distance is rightly outside, and so is one between two infinities, which is none.
    with np.errstate(over="ignore", invalid="ignore"):
        return compare(np.abs(left - right), float(predicate.epsilon))


@allocating
def mark_ranges(holds: np.ndarray, first: np.ndarray, last: np.ndarray) -> None:
    """Set each row from its first column to its last, exclusive."""
    for i in range(len(first)):
        holds[i, first[i] : last[i]] = True


@allocating
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
