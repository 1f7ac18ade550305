"""Values as int64 codes in the same order, so that one set of kernels serves every field.

An integer is its own code. A float's code is its place in the order of all floats: both zeros are
0, and NaN lies beyond the infinities, where no range reaches it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from joins.indexes.columns import column

_WITHOUT_SIGN = np.int64(0x7FFFFFFFFFFFFFFF)


def encode(values: np.ndarray) -> np.ndarray:
    """Return the code of each value (int64 or float64)."""
    if values.dtype == np.int64:
        return values
    bits = values.view(np.int64)
    return np.where(bits >= 0, bits, -(bits & _WITHOUT_SIGN))


def decode(codes: np.ndarray, dtype: str) -> np.ndarray:
    """Return the values that `encode` gave these codes; zero is positive."""
    if dtype == "int64":
        return codes
    magnitude = np.abs(codes).view(np.float64)
    return np.where(codes >= 0, magnitude, -magnitude)


def encode_range(
    low: np.ndarray, high: np.ndarray, dtype: str, what: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes of the ends of ranges, both inclusive; one that ends in NaN is empty.

    Raise :exc:`TypeError` or :exc:`ValueError` naming *what* when they are not columns of *dtype*.
    """
    low = column(low, dtype, f"low of {what}")
    high = column(high, dtype, f"high of {what}", len(low))
    codes = encode(low), encode(high)
    if dtype == "float64":
        nan = np.isnan(low) | np.isnan(high)
        if nan.any():
            return np.where(nan, 1, codes[0]), np.where(nan, 0, codes[1])
    return codes


def encode_columns(columns: Sequence[np.ndarray], dtypes: Sequence[str]) -> list[np.ndarray]:
    """Return the codes of *columns*, one per predicate.

    Raise :exc:`TypeError` or :exc:`ValueError` naming the predicate when one does not fit.
    """
    return [
        encode(column(values, dtype, f"values of predicate {i}", len(columns[0])))
        for i, (values, dtype) in enumerate(zip(columns, dtypes, strict=True))
    ]
