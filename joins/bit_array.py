"""Bit arrays over a stretch of stream positions, a row per probing tuple (SPO-Join, section 3.2).

The mutable component marks, for every probing tuple and every predicate, the stored tuples that
satisfy it; the logical operator intersects the rows. Bit b of a row represents position base + b,
with the base of the epoch rather than of the stream, so that rows do not grow as the stream ages.
Rows are uint64 words, lowest bit first; bits past the end of a row are zero.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from joins.hashing import splitmix64
from joins.indexes.index import as_column, window_in
from joins.machine.compiling import inlined, kernel
from joins.machine.instructions import trailing_zeros
from joins.matches import ProbeResult
from joins.work import BITS, MATCHES, Work, new_counters

WORD_BITS = 64
WORD_SHIFT = np.uint64(6)
BIT_MASK = np.uint64(63)
"""Bit b of a row is bit ``b & BIT_MASK`` of its word ``b >> WORD_SHIFT``."""
FIRST_BIT = np.uint64(1)
ALL_BITS = np.uint64(0xFFFFFFFFFFFFFFFF)
"""Words with the lowest bit set, and all of them."""


def words_for(bits: int) -> int:
    """Return how many words *bits* bits take."""
    return -(-bits // WORD_BITS)


def intersect(parts: Sequence[np.ndarray]) -> tuple[np.ndarray, Work]:
    """Return the bits that are set in all *parts* (at least one, of one shape), as a new matrix.

    Raise :exc:`ValueError` when there are none or their shapes differ.
    """
    shapes = {part.shape for part in parts}
    if len(shapes) != 1:
        raise ValueError(f"bit arrays to intersect must have one shape, got {sorted(shapes)}")
    common = parts[0].copy()
    for part in parts[1:]:
        np.bitwise_and(common, part, out=common)
    return common, Work(bits=common.size * (len(parts) - 1))


def keep_window(
    rows: np.ndarray, start: np.ndarray, stop: np.ndarray, *, base: int
) -> tuple[np.ndarray, Work]:
    """Return a copy of *rows* without what lies outside *start[i]* to *stop[i]* - 1 in row i.

    *start* and *stop* are int64 stream positions, a row each; *base* is the position of bit 0.
    """
    seen = rows.copy()
    counters = new_counters()
    _keep_window(
        seen,
        as_column(start, np.int64, "start", len(rows)),
        as_column(stop, np.int64, "stop", len(rows)),
        base,
        counters,
    )
    return seen, Work.from_counters(counters)


def read_matches(rows: np.ndarray, *, base: int, enumerate: bool = False) -> ProbeResult:
    """Turn *rows* into the count and fingerprint of each and, with *enumerate*, the positions set.

    Positions come in ascending order within a row.
    """
    rows = np.require(rows, requirements=["C", "W"])
    count = np.bitwise_count(rows).sum(axis=1, dtype=np.int64)
    fingerprint = np.empty(len(rows), np.uint64)
    match_id = np.empty(int(count.sum()) if enumerate else 0, np.int64)
    counters = new_counters()
    filled = np.empty(rows.shape[1], np.int64)
    _read_rows(rows, base, filled, fingerprint, match_id, counters)
    return ProbeResult(
        count=count,
        fingerprint=fingerprint,
        match_id=match_id if enumerate else None,
        work=Work.from_counters(counters),
    )


@inlined
def words_of(begin: int, end: int) -> tuple[int, int]:
    """Return the first word with any of bits *begin* to *end* - 1, and the one past the last."""
    return begin >> 6, (end + WORD_BITS - 1) >> 6


@kernel
def bits_between(word: int, begin: int, end: int) -> np.uint64:
    """Return the bits of word number *word* that bits *begin* to *end* - 1 of its row cover."""
    low = begin - word * WORD_BITS
    high = end - word * WORD_BITS
    if low >= WORD_BITS or high <= 0 or low >= high:
        return np.uint64(0)
    mask = ALL_BITS
    if low > 0:
        mask = mask << np.uint64(low)
    if high < WORD_BITS:
        mask = mask & ((FIRST_BIT << np.uint64(high)) - FIRST_BIT)
    return mask


@kernel
def _keep_window(
    rows: np.ndarray, start: np.ndarray, stop: np.ndarray, base: int, counters: np.ndarray
) -> None:
    words = rows.shape[1]
    for row in range(len(rows)):
        begin, end = window_in(base, words * WORD_BITS, start[row], stop[row])
        for word in range(words):
            rows[row, word] &= bits_between(word, begin, end)
    counters[BITS] += rows.size


@kernel
def _read_rows(
    rows: np.ndarray,
    base: int,
    filled: np.ndarray,
    fingerprint: np.ndarray,
    match_id: np.ndarray,
    counters: np.ndarray,
) -> None:
    found, keep_ids = 0, len(match_id) > 0
    for row in range(len(rows)):
        total = np.uint64(0)
        # Which words have bits is known before any is read: to guess wrong at each that has some,
        # or has none, would take longer than all the rest.
        count = 0
        for word in range(rows.shape[1]):
            filled[count] = word
            count += rows[row, word] != 0
        for i in range(count):
            word = filled[i]
            left = rows[row, word]
            while left != 0:
                position = base + word * WORD_BITS + trailing_zeros(left)
                left &= left - FIRST_BIT
                total += splitmix64(position)
                if keep_ids:
                    match_id[found] = position
                found += 1
        fingerprint[row] = total
    counters[BITS] += rows.size
    counters[MATCHES] += found
