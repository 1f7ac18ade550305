"""A window that is kept as it comes, for indexes that build nothing before they are probed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from joins.indexes.windows.window_tuples import WindowTuples
from joins.work import Work

Kept = TypeVar("Kept", bound="Unindexed")


class Unindexed:
    """All of a `WindowIndex` but the probe.

    Parameters
    ----------
    dtypes
        Per predicate the dtype of its column, int64 or float64.
    """

    def __init__(self, dtypes: Sequence[Any]) -> None:
        self._tuples = WindowTuples(dtypes)

    def insert(self, columns: Sequence[np.ndarray], positions: np.ndarray) -> Work:
        """Append tuples; raise what `WindowTuples.append` raises."""
        return self._tuples.append(columns, positions) + Work(inserts=len(positions))

    def expire(self, before: int) -> Work:
        """Let go of positions less than *before*."""
        return self._tuples.drop(before)[1]

    def __len__(self) -> int:
        return len(self._tuples)

    @property
    def nbytes(self) -> int:
        """Bytes that its arrays occupy."""
        return self._tuples.nbytes

    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain arrays and numbers."""
        return self._tuples.snapshot()

    @classmethod
    def restore(cls: type[Kept], snapshot: dict[str, Any]) -> Kept:
        """Return the index that `snapshot` described."""
        index = cls(snapshot["dtypes"])
        index._tuples = WindowTuples.restore(snapshot)
        return index
