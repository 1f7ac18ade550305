"""To which replicas an emitter sends a tuple: the patterns' distributions (PPOIJ, Table 1).

A `Distribution` puts tuples into groups; a batch has tuples of one group, and goes to the group's
targets. The first target is the *home* of its keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np

from joins.batch import Batch
from joins.hashing import partition
from joins.state import storable

KeyHash = Literal["mixed", "identity"]

Assignment = dict[int, tuple[int, ...]]
"""Key to the replicas it is split over, its home first."""


@storable
class Route(NamedTuple):
    """Where tuples of a group go."""

    targets: tuple[int, ...]
    """The replicas that they are sent to."""
    storing: int
    """How many of these, from the first on, may store them; the others only probe."""


@storable
@dataclass(frozen=True)
class Homes:
    """The home of each key among the replicas."""

    replicas: int
    """How many there are."""
    key_hash: KeyHash = "mixed"
    """What is divided by their number: *mixed*, a hash of the key; *identity*, the key itself,
    which assigns whole numbers in turns. WindFlow does the latter, since the C++ library's hash of
    a whole number is that number."""

    def of(self, keys: np.ndarray) -> np.ndarray:
        """Return the replica of every key, int64."""
        if self.key_hash == "identity":
            return keys % self.replicas
        return partition(keys, self.replicas)

    def by_key(self, counts: Mapping[int, int]) -> dict[int, int]:
        """Return the replica of every key in *counts*, in the keys' order."""
        keys = np.array(sorted(counts), np.int64)
        return dict(zip(keys.tolist(), self.of(keys).tolist(), strict=True))


class Distribution(Protocol):
    """One pattern's way of distributing tuples."""

    one_key: bool
    """Whether a group is a key, so that watermarks of keys can travel with batches."""

    def groups(self, batch: Batch) -> np.ndarray:
        """Return the group of every tuple, an integer each."""

    def routes(self, groups: np.ndarray) -> Sequence[Route]:
        """Return where each of these groups goes."""


class ByKey:
    """Point to point: a key has one replica, by hash (KP-OIJ, section 4.1)."""

    one_key = False

    def __init__(self, homes: Homes) -> None:
        self._homes = homes

    def groups(self, batch: Batch) -> np.ndarray:
        """Return each key's replica."""
        # As int16, which numpy sorts by counting.
        return self._homes.of(batch.key).astype(np.int16)

    def routes(self, groups: np.ndarray) -> list[Route]:
        """Return the replica that each group is."""
        return [Route((group,), 1) for group in groups.tolist()]


class ToAll:
    """Full broadcast: every tuple goes to every replica (DP-OIJ, section 4.2)."""

    one_key = False

    def __init__(self, replicas: int) -> None:
        self._all = Route(tuple(range(replicas)), replicas)

    def groups(self, batch: Batch) -> np.ndarray:
        """Return one group for all tuples."""
        return np.zeros(len(batch), np.int64)

    def routes(self, groups: np.ndarray) -> list[Route]:
        """Return all replicas."""
        return [self._all] * len(groups)


class BySplitKey:
    """Partial multicast: a key goes to the replicas it is split over (HP-OIJ, section 4.3).

    A key that an assignment does not name is split over *splitting* replicas: its home and those
    after it. While the assignment changes, tuples are stored as *stored* has it and reach the
    replicas of both, *probed* too.
    """

    one_key = True

    def __init__(
        self,
        homes: Homes,
        splitting: int = 1,
        *,
        stored: Assignment | None = None,
        probed: Assignment | None = None,
    ) -> None:
        self._homes = homes
        self._splitting = min(splitting, homes.replicas)
        self._stored = stored or {}
        self._probed = self._stored if probed is None else probed

    def groups(self, batch: Batch) -> np.ndarray:
        """Return the keys themselves."""
        return batch.key

    def routes(self, groups: np.ndarray) -> list[Route]:
        """Return each key's replicas, those that store first."""
        routes = []
        for key, home in zip(groups.tolist(), self._homes.of(groups).tolist(), strict=True):
            storing = self._stored.get(key) or self._from(home)
            probed = self._probed.get(key) or self._from(home)
            routes.append(Route(tuple(dict.fromkeys(storing + probed)), len(storing)))
        return routes

    def _from(self, home: int) -> tuple[int, ...]:
        replicas = self._homes.replicas
        return tuple((home + step) % replicas for step in range(self._splitting))
