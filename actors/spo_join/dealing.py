"""How a predicate PE deals its results out to the logical PEs (sections 4.1 and 4.3)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from joins.hashing import partition
from joins.state import Stateful


class Dealing(Stateful, ABC):
    """Splits the tuples of a message into shares and says which logical PE takes each.

    Both ways make the same shares in every predicate, so a share can wait for its fellows whole.
    """

    @abstractmethod
    def deal(
        self, ids: Sequence[np.ndarray], pes: int, rng: np.random.Generator
    ) -> tuple[list[np.ndarray], Sequence[int]]:
        """Return per stream the share (int64) of each of its tuples, and each share's PE."""


class ByHash(Dealing):
    """By the tuple's id: all partial results of a tuple meet."""

    state = ()

    def deal(
        self, ids: Sequence[np.ndarray], pes: int, rng: np.random.Generator
    ) -> tuple[list[np.ndarray], Sequence[int]]:
        """Share i goes to PE i."""
        return [partition(part, pes) for part in ids], range(pes)


class InTurns(Dealing):
    """Round robin: tuple after tuple to the next PE, whatever its id.

    As in the engine that the paper runs on, every sender goes round the PEs in an order of its own,
    drawn when it starts. Partial results of a tuple meet only where the orders of the predicates
    agree: with k PEs, for one tuple in k on average.
    """

    state = ("_turn", "_order")

    def __init__(self) -> None:
        self._turn = 0
        self._order: list[int] = []

    def deal(
        self, ids: Sequence[np.ndarray], pes: int, rng: np.random.Generator
    ) -> tuple[list[np.ndarray], Sequence[int]]:
        """Share i is every tuple whose turn is i; streams are dealt one after the other."""
        if not self._order:
            self._order = rng.permutation(pes).tolist()
        shares = []
        for part in ids:
            shares.append((self._turn + np.arange(len(part))) % pes)
            self._turn = (self._turn + len(part)) % pes
        return shares, self._order


DEALINGS: dict[str, type[Dealing]] = {"hash": ByHash, "round_robin": InTurns}
"""Partitioning by name."""
