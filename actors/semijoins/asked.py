"""Tuples of S_1 that wait at N_1 for an answer of N_2: the buffer Temp, and B_1 in SM-S1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from joins.semijoins.joined import Joined


@dataclass(frozen=True, slots=True)
class Asked:
    """Combinations, and what was asked for their sake.

    Attributes
    ----------
    tick, final
        Their interval, and whether they are the last of it.
    joined
        The combinations.
    values
        The partial tuples shipped, a column per attribute.
    answered
        False where an answer will come; nothing is asked for no tuples.
    """

    tick: int
    final: bool
    joined: Joined
    values: tuple[np.ndarray, ...]
    answered: bool


class Queue:
    """What waits, in the order of asking; answers come in the same order.

    What needs no answer itself waits for those before it: intervals end in their order.
    """

    def __init__(self) -> None:
        self._waiting: list[Asked] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, asked: Asked) -> list[Asked]:
        """Append, and return and remove it at once when it need not wait."""
        self._waiting.append(asked)
        return self._ready()

    def answered(self) -> list[Asked]:
        """Return and remove what the present answer is to, and what then need not wait."""
        return [self._waiting.pop(0), *self._ready()]

    def _ready(self) -> list[Asked]:
        ready = []
        while self._waiting and self._waiting[0].answered:
            ready.append(self._waiting.pop(0))
        return ready

    def snapshot(self) -> list[Any]:
        """Return what waits."""
        return list(self._waiting)

    def restore(self, state: list[Any]) -> None:
        """Take over a snapshot."""
        self._waiting = list(state)
