"""To which replicas an emitter sends a tuple: the three patterns of PPOIJ (Table 1).

A pattern puts tuples into groups; a batch holds tuples of one group, and goes to the group's
targets. The first target is the *home* of its keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from joins.batch import Batch
from joins.hashing import partition

Assignment = dict[int, tuple[int, ...]]
"""Key to the replicas it is split over, its home first."""


class Distribution(Protocol):
    """One pattern's way of distributing tuples.

    Attributes
    ----------
    one_key
        Whether a group is a key, so that watermarks of keys can travel with batches.
    """

    one_key: bool

    def groups(self, batch: Batch) -> np.ndarray:
        """Return the group of every tuple, int64."""

    def targets(self, groups: np.ndarray) -> Sequence[tuple[int, ...]]:
        """Return the replicas that each of these groups goes to."""


class ByKey:
    """Point to point: a key has one replica, by hash (KP-OIJ, section 4.1)."""

    one_key = False

    def __init__(self, replicas: int) -> None:
        self._replicas = replicas

    def groups(self, batch: Batch) -> np.ndarray:
        """Return each key's replica."""
        return partition(batch.key, self._replicas)

    def targets(self, groups: np.ndarray) -> list[tuple[int, ...]]:
        """Return the replica that each group stands for."""
        return [(group,) for group in groups.tolist()]


class ToAll:
    """Full broadcast: every tuple goes to every replica (DP-OIJ, section 4.2)."""

    one_key = False

    def __init__(self, replicas: int) -> None:
        self._all = tuple(range(replicas))

    def groups(self, batch: Batch) -> np.ndarray:
        """Return one group for all tuples."""
        return np.zeros(len(batch), np.int64)

    def targets(self, groups: np.ndarray) -> list[tuple[int, ...]]:
        """Return all replicas."""
        return [self._all] * len(groups)


class BySplitKey:
    """Partial multicast: a key goes to the replicas it is split over (HP-OIJ, section 4.3).

    Parameters
    ----------
    replicas
        How many there are.
    splitting
        Replicas of a key that *assignment* does not name: its home by hash and those after it.
    assignment
        Key to its replicas, as Algorithm 1 gave them out.
    """

    one_key = True

    def __init__(
        self, replicas: int, splitting: int = 1, assignment: Assignment | None = None
    ) -> None:
        self._replicas = replicas
        self._splitting = min(splitting, replicas)
        self._assignment = assignment or {}

    def groups(self, batch: Batch) -> np.ndarray:
        """Return the keys themselves."""
        return batch.key

    def targets(self, groups: np.ndarray) -> list[tuple[int, ...]]:
        """Return each key's replicas."""
        homes = partition(groups, self._replicas).tolist()
        return [
            self._assignment.get(key) or self._from(home)
            for key, home in zip(groups.tolist(), homes, strict=True)
        ]

    def _from(self, home: int) -> tuple[int, ...]:
        return tuple((home + step) % self._replicas for step in range(self._splitting))
