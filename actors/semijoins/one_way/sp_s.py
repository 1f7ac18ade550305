"""SP-S: simple join at the source (Algorithm 1). W_2 is exported to N_1."""

from __future__ import annotations

from typing import Any

from actors.semijoins.execution import FOREVER
from actors.semijoins.part import Desk, DestinationPart, OneWayStep, SourcePart
from actors.semijoins.payloads import FullTuples, Shipment
from joins.batch import Batch
from joins.semijoins.horizon import Horizon
from joins.semijoins.joined import Joined


class SpSSource(SourcePart):
    """Keeps W_2@N_1 and joins there, δ later."""

    delayed = True

    def __init__(self, step: OneWayStep) -> None:
        super().__init__(step)
        self._window = step.held()
        self._horizon = Horizon(step.window)
        self._done = -1

    def start(self, joined: Joined, tick: int, final: bool, desk: Desk) -> None:
        """Join (line 3)."""
        found, work = self._window.join(joined, self.step.window, self._horizon.line)
        desk.charge(work)
        if final:
            self._done = tick
        self.put(found, tick, final, desk)

    def hear(self, payload: FullTuples, desk: Desk) -> None:
        """Update W_2@N_1 (line 7)."""
        self.heard = payload.tick
        self._horizon.insert(payload.tick, payload.batch.id, payload.batch.ts)
        desk.charge(self._window.insert(payload.batch))
        keep_from = self._horizon.passed(desk.execution.may_remove(payload.tick, self._done))
        desk.charge(self._window.expire(keep_from)[1])

    def snapshot(self) -> dict[str, Any]:
        """Return W_2@N_1."""
        return {
            "window": self._window.snapshot(),
            "horizon": self._horizon.snapshot(),
            "done": self._done,
            "heard": self.heard,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self._window.restore(state["window"])
        self._horizon.restore(state["horizon"])
        self._done, self.heard = state["done"], state["heard"]


class SpSDestination(DestinationPart):
    """Ships its new tuples and keeps none."""

    def __init__(self, step: OneWayStep) -> None:
        super().__init__(step)
        self.done = FOREVER

    def insert(self, batch: Batch, tick: int, keep_from: int, desk: Desk) -> None:
        """Ship B_2 (line 6)."""
        if len(batch) or desk.execution.ships_nothing:
            self.ship(FullTuples(step=self.step.number, tick=tick, batch=batch), desk)

    def hear(self, payload: Shipment, desk: Desk) -> None:
        """Hear nothing: N_1 never asks."""
        raise ValueError(f"a destination of SP-S was sent a {type(payload).__name__}")
