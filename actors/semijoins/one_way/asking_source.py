"""What the sources of two-step joins and of SM-S1 share: they ask N_2, and tuples wait for it."""

from __future__ import annotations

import numpy as np

from actors.semijoins.asked import Queue
from actors.semijoins.part import OneWayStep, SourcePart
from joins.semijoins.distinct import distinct
from joins.semijoins.joined import Joined


class AskingSource(SourcePart):
    """A source whose tuples wait for answers of N_2."""

    def __init__(self, step: OneWayStep) -> None:
        super().__init__(step)
        self._asked = Queue()

    @property
    def waits(self) -> bool:
        """Whether tuples wait here for an answer of N_2."""
        return len(self._asked) > 0

    def distinct_values(self, joined: Joined) -> tuple[np.ndarray, ...]:
        """Return the distinct values of *joined*'s join attributes, a column per attribute."""
        columns = self.step.attributes.of_joined(joined)
        first, _ = distinct(columns)
        return tuple(column[first] for column in columns)
