"""Sorting int64 keys with the rows they are of, digit by digit from the least.

What is moved is one word for each key: 32 bits of it, and its row. Keys that lie no farther apart
than that are sorted in one go; others by their lower half first, then by the upper one.
"""

from __future__ import annotations

import numpy as np

from joins.machine.compiling import kernel
from joins.work import MOVES, Work, new_counters

_DIGIT = 11
DIGIT_VALUES = 1 << _DIGIT
_HALF = 32
_ROW = np.uint64((1 << _HALF) - 1)


def sort_codes(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray, Work]:
    """Sort int64 *codes*; equal ones stay in their order.

    Returns
    -------
    sorted
        The codes in ascending order.
    order
        int64, the row of *codes* that each one is from.
    work
        What it cost.
    """
    n = len(codes)
    ordered, order = np.empty(n, np.int64), np.empty(n, np.int64)
    words, spare = np.empty(n, np.uint64), np.empty(n, np.uint64)
    counters, digits = new_counters(), np.empty(DIGIT_VALUES, np.int64)
    sort_rows(codes, ordered, order, words, spare, n, digits, counters)
    return ordered, order, Work.from_counters(counters)


@kernel
def sort_rows(
    keys: np.ndarray,
    ordered: np.ndarray,
    rows: np.ndarray,
    words: np.ndarray,
    spare: np.ndarray,
    n: int,
    digits: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Write the first *n* *keys* in ascending order, and which row each one is from; stable.

    Parameters
    ----------
    keys
        int64.
    ordered, rows
        int64, at least *n* long, and other arrays than *keys*.
    words, spare
        uint64, at least *n* long: working memory.
    n
        At most 2^32.
    digits
        Working memory of `DIGIT_VALUES` numbers.
    counters
        A word moved is counted as a move.
    """
    if n == 0:
        return
    least = greatest = keys[0]
    for i in range(n):
        least, greatest = min(least, keys[i]), max(greatest, keys[i])
        words[i] = i
    span = np.uint64(greatest) - np.uint64(least)
    for done in range(0, 64, _HALF):
        below = np.uint64(done)
        bits = 0
        while bits < _HALF and span >> below >> np.uint64(bits):
            bits += 1
        if bits == 0:
            break
        for i in range(n):
            row = words[i] & _ROW
            offset = np.uint64(keys[row]) - np.uint64(least)
            words[i] = offset >> below << np.uint64(_HALF) | row
        passes = -(-bits // _DIGIT)
        width = -(-bits // passes)
        for shift in range(_HALF, _HALF + bits, width):
            _pass(words, spare, n, shift, width, digits)
            words, spare = spare, words
        counters[MOVES] += n * passes
    is_whole = span >> np.uint64(_HALF) == 0
    for i in range(n):
        row = words[i] & _ROW
        rows[i] = row
        # What was sorted by is at hand, the key itself anywhere.
        ordered[i] = least + np.int64(words[i] >> np.uint64(_HALF)) if is_whole else keys[row]


@kernel
def _pass(
    words: np.ndarray, moved: np.ndarray, n: int, shift: int, bits: int, digits: np.ndarray
) -> None:
    """Move the words into the order of the digit of *bits* bits from bit *shift* on."""
    mask, by = np.uint64((1 << bits) - 1), np.uint64(shift)
    digits[: 1 << bits] = 0
    for i in range(n):
        digits[(words[i] >> by) & mask] += 1
    begin = 0
    for value in range(1 << bits):
        count = digits[value]
        digits[value] = begin
        begin += count
    for i in range(n):
        digit = (words[i] >> by) & mask
        to = digits[digit]
        digits[digit] += 1
        moved[to] = words[i]
