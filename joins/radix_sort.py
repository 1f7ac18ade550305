"""Sorting int64 keys with the rows they are of, digit by digit from the least."""

from __future__ import annotations

import numpy as np

from joins.machine import kernel
from joins.work import MOVES

_FEW_ROWS = 8192
_NARROW, _WIDE = 8, 11
"""Bits of a digit: with few rows, clearing and adding up many counters would cost more than a pass
saves."""
COUNTERS_MAX = 1 << _WIDE
_SIGN = np.uint64(1 << 63)


@kernel
def sort_rows(
    keys: np.ndarray,
    rows: np.ndarray,
    spare_keys: np.ndarray,
    spare_rows: np.ndarray,
    n: int,
    digits: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Sort the first *n* *keys* and bring *rows* into the same order; stable.

    Digits in which all keys agree take no pass. The spare arrays are as long as the others;
    *digits* has room for `COUNTERS_MAX` numbers.
    """
    differing = np.uint64(0)
    for i in range(np.uint64(n)):
        differing |= np.uint64(keys[i]) ^ np.uint64(keys[0])
    bits = _NARROW if n < _FEW_ROWS else _WIDE
    shift = 0
    swapped = False
    while shift < 64:
        if (differing >> np.uint64(shift)) & np.uint64((1 << bits) - 1):
            if swapped:
                _pass(spare_keys, spare_rows, keys, rows, n, shift, bits, digits)
            else:
                _pass(keys, rows, spare_keys, spare_rows, n, shift, bits, digits)
            swapped = not swapped
            counters[MOVES] += n
        shift += bits
    if swapped:
        for i in range(np.uint64(n)):
            keys[i] = spare_keys[i]
            rows[i] = spare_rows[i]


@kernel
def _pass(
    keys: np.ndarray,
    rows: np.ndarray,
    to_keys: np.ndarray,
    to_rows: np.ndarray,
    n: int,
    shift: int,
    bits: int,
    digits: np.ndarray,
) -> None:
    mask, by = np.uint64((1 << bits) - 1), np.uint64(shift)
    digits[: 1 << bits] = 0
    for i in range(np.uint64(n)):
        digits[((np.uint64(keys[i]) ^ _SIGN) >> by) & mask] += 1
    begin = 0
    for value in range(np.uint64(1 << bits)):
        count = digits[value]
        digits[value] = begin
        begin += count
    for i in range(np.uint64(n)):
        digit = ((np.uint64(keys[i]) ^ _SIGN) >> by) & mask
        to = np.uint64(digits[digit])
        digits[digit] += 1
        to_keys[to] = keys[i]
        to_rows[to] = rows[i]
