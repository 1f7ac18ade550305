"""N_2 where N_1 is told of V_2, the distinct join attribute values of W_2 (Algorithms 8 and 9)."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from actors.semijoins.part import Desk, DestinationPart, OneWayStep
from actors.semijoins.payloads import WindowUpdate
from joins.batch import Batch
from joins.semijoins.distinct_values import DistinctValues, ValueChanges


class ValuedDestination(DestinationPart):
    """Keeps V_2, and which of its values each tuple of W_2 has; tells of every change."""

    def __init__(self, step: OneWayStep) -> None:
        super().__init__(step)
        fields = step.schema.fields
        self._values = DistinctValues([fields[field] for field in step.attributes.stored])
        self._entry = np.empty(0, np.int64)

    def insert(self, batch: Batch, tick: int, keep_from: int, desk: Desk) -> None:
        """Update W_2 and V_2, and tell."""
        gone = len(self.update(batch, keep_from, desk))
        changes, entries, flagged = self._values.update(
            self.step.attributes.of_stored(batch), self._entry[:gone]
        )
        self._entry = np.concatenate([self._entry[gone:], entries])
        if len(batch) or gone or desk.execution.ships_nothing:
            self.ship(self._told(changes, batch.take(flagged), batch, tick, keep_from), desk)

    @abstractmethod
    def _told(
        self, changes: ValueChanges, shipped: Batch, batch: Batch, tick: int, keep_from: int
    ) -> WindowUpdate:
        """Return what N_1 is to hear.

        *shipped* are the tuples of *batch* with values whose tuples N_1 holds.
        """

    def snapshot(self) -> dict[str, Any]:
        """Return the window, V_2, and the entry of each tuple."""
        return {
            **super().snapshot(),
            "values": self._values.snapshot(),
            "entry": self._entry,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        super().restore(state)
        self._values.restore(state["values"])
        self._entry = state["entry"]
