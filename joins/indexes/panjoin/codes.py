"""The columns and ranges of a subwindow as codes (`joins.indexes.columns.encode`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from joins.indexes.columns import column, encode


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
