"""Columns as index structures take them: checked at the door, and encoded for kernels.

The *code* of a value is an int64 that compares as the value does, so that one kernel serves every
dtype. An integer is its own code. A float's code is its place in the order of all floats: both
zeros are 0, and NaN lies beyond the infinities, where no range reaches it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from joins.batch import FIELD_DTYPES

_BOUNDS = np.iinfo(np.int64)
_WITHOUT_SIGN, _SIGN_BIT = np.int64(_BOUNDS.max), np.int64(63)


def at_least_one(**counts: int | None) -> None:
    """Raise :exc:`ValueError` naming the first of *counts* less than 1; None is as good as 1."""
    for name, count in counts.items():
        if count is not None and count < 1:
            raise ValueError(f"{name} is {count}, must be at least 1")


def key_dtype(dtype: Any, what: str) -> np.dtype:
    """Return *dtype* as a numpy dtype; raise :exc:`TypeError` when *what* cannot have it."""
    if np.dtype(dtype).name not in FIELD_DTYPES:
        raise TypeError(f"{what}: dtype {dtype} is not one of {', '.join(FIELD_DTYPES)}")
    checked: np.dtype = np.dtype(dtype)
    return checked


def column(values: Any, dtype: Any, what: str, length: int | None = None) -> np.ndarray:
    """Return *values* as a contiguous column that a kernel can take, copied only if it must be.

    Read-only arrays are copied: numba compiles a kernel anew for every mix of writable and
    read-only arguments.

    Raise :exc:`TypeError` when the dtype is another one, :exc:`ValueError` when *values* is not one
    column or not of *length*; both name the column as *what*.
    """
    array = np.asarray(values)
    if array.dtype != dtype:
        raise TypeError(f"{what}: dtype is {array.dtype}, expected {np.dtype(dtype).name}")
    if array.ndim != 1 or (length is not None and len(array) != length):
        expected = "one column" if length is None else f"one column of {length}"
        raise ValueError(f"{what}: shape is {array.shape}, expected {expected}")
    # np.require takes ten microseconds to find that there is nothing to do.
    return array if array.flags.carray else np.require(array, requirements=["C", "W"])


def keys_column(values: Any, dtype: Any, what: str, length: int | None = None) -> np.ndarray:
    """Return a column of keys as `column` does; raise :exc:`ValueError` when a key is NaN."""
    keys = column(values, dtype, what, length)
    if keys.dtype.kind == "f" and np.isnan(keys).any():
        row = int(np.isnan(keys).argmax())
        raise ValueError(f"{what}: row {row} is NaN, which has no place in an order; drop it first")
    return keys


def window_columns(start: Any, stop: Any, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions that each of *length* probes may see; None means no bound."""
    if start is None:
        start = np.full(length, _BOUNDS.min)
    if stop is None:
        stop = np.full(length, _BOUNDS.max)
    return column(start, np.int64, "start", length), column(stop, np.int64, "stop", length)


def encode(values: np.ndarray) -> np.ndarray:
    """Return the code of each value (int64 or float64)."""
    if values.dtype == np.int64:
        return values
    # Negative floats have the sign bit set and grow in bits as they fall in value: such a code is
    # the bits without the sign, negated.
    bits = values.view(np.int64)
    signs = bits >> _SIGN_BIT
    codes: np.ndarray = signs & _WITHOUT_SIGN
    codes ^= bits
    codes -= signs
    return codes


def decode(codes: np.ndarray, dtype: str) -> np.ndarray:
    """Return the values of *codes*; zero is positive."""
    if dtype == "int64":
        return codes
    magnitude = np.abs(codes).view(np.float64)
    values: np.ndarray = np.where(codes >= 0, magnitude, -magnitude)
    return values
