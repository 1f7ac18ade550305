"""What an index over one stream's window can do, whichever structure it is built on.

A joiner that keeps a share of a stream in one structure (nested loops, chain index, hash table and
so on) sees only this. Immutable segments, which are sealed at a merge, have an interface of their
own (`joins.indexes.immutable.segments`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from joins.found import Found
from joins.queries.conditions import Condition
from joins.work import Work


class Ranges(NamedTuple):
    """What a batch of probes asks of a window: a range per predicate, and which tuples they see.

    Attributes
    ----------
    low, high
        Per predicate the least and greatest value that satisfy it, a row per probe, both inclusive;
        low > high is empty.
    negated
        Per predicate whether values *outside* the range satisfy it.
    start, stop
        int64, probe i sees stored positions start[i] to stop[i] - 1.
    """

    low: Sequence[np.ndarray]
    high: Sequence[np.ndarray]
    negated: Sequence[bool]
    start: np.ndarray
    stop: np.ndarray


def ranges_for(
    conditions: Sequence[Condition],
    columns: Sequence[np.ndarray],
    start: np.ndarray,
    stop: np.ndarray,
) -> Ranges:
    """Return the ranges that satisfy *conditions* for probes with *columns*, one per condition."""
    bounds = [c.bounds(values) for c, values in zip(conditions, columns, strict=True)]
    low, high = [low for low, _ in bounds], [high for _, high in bounds]
    return Ranges(low, high, [c.negated for c in conditions], start, stop)


class WindowIndex(Protocol):
    """Tuples of one stream by their stream positions, and the ranges of values they answer to.

    Positions ascend from one insertion to the next, and need not be contiguous: a joiner may hold
    every k-th tuple.
    """

    def insert(self, columns: Sequence[np.ndarray], positions: np.ndarray) -> Work:
        """Store tuples: a column of values per predicate, int64 positions beside them.

        Raise :exc:`ValueError` when a value is NaN, which no range holds, or positions do not
        ascend; :exc:`TypeError` when a column is of another dtype than its predicate.
        """

    def probe(self, ranges: Ranges, *, enumerate: bool = False) -> Found:
        """Find for every probe the tuples that satisfy all predicates and lie in its window.

        With *enumerate* list their positions too. Raise :exc:`ValueError` or :exc:`TypeError` when
        a range does not fit its predicate.
        """

    def expire(self, before: int) -> Work:
        """Let go of positions less than *before*, which no later probe will see.

        A structure that expires by whole parts may keep some of them longer.
        """

    def __len__(self) -> int:
        """Return how many tuples it holds."""

    @property
    def nbytes(self) -> int:
        """Bytes that its arrays occupy."""

    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain arrays and numbers."""

    @classmethod
    def restore(cls, snapshot: dict[str, Any]) -> WindowIndex:
        """Return the index that `snapshot` described."""
