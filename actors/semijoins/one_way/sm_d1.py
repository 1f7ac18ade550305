"""SM-D1: one-step semijoin at the destination (Algorithm 5).

N_1 keeps V_2@N_1, the distinct join attribute values of W_2, and ships only the tuples that match
one of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from actors.semijoins.one_way.valued_destination import ValuedDestination
from actors.semijoins.part import Desk, OneWayStep, SourcePart
from actors.semijoins.payloads import Combinations, WindowUpdate
from joins.batch import Batch
from joins.semijoins.copied_values import CopiedValues
from joins.semijoins.distinct_values import ValueChanges
from joins.semijoins.joined import Joined


class SmD1Source(SourcePart):
    """Keeps V_2@N_1 and ships what matches, δ later."""

    delayed = True

    def __init__(self, step: OneWayStep) -> None:
        super().__init__(step)
        self._copied = CopiedValues(step.schema, step.attributes)

    def start(self, joined: Joined, tick: int, final: bool, desk: Desk) -> None:
        """Reduce B_1 and ship it (lines 3 and 4)."""
        row, _, work = self._copied.matches(joined)
        desk.charge(work)
        reduced = joined.take(np.unique(row))
        if len(reduced) or desk.execution.ships_nothing:
            self.ship(
                Combinations(step=self.step.number, tick=tick, final=final, joined=reduced), desk
            )

    def hear(self, payload: WindowUpdate, desk: Desk) -> None:
        """Update V_2@N_1 (line 10)."""
        self.heard = payload.tick
        assert payload.values is not None
        desk.charge(self._copied.update(payload.values))

    def snapshot(self) -> dict[str, Any]:
        """Return V_2@N_1."""
        return {"copied": self._copied.snapshot(), "heard": self.heard}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self._copied.restore(state["copied"])
        self.heard = state["heard"]


class SmD1Destination(ValuedDestination):
    """Tells of the changes of V_2 (lines 8 and 9), and joins what comes."""

    def _told(
        self, changes: ValueChanges, shipped: Batch, batch: Batch, tick: int, keep_from: int
    ) -> WindowUpdate:
        none = np.empty(0, np.int64)
        return WindowUpdate(
            step=self.step.number, tick=tick, values=changes, keep_from=0, ids=none, ts=none
        )

    def hear(self, payload: Combinations, desk: Desk) -> None:
        """Join (line 5)."""
        self.join(payload, desk)
