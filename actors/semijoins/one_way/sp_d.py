"""SP-D: simple join at the destination (Algorithm 2). All tuples of S_1 are shipped there."""

from __future__ import annotations

from typing import Any

from actors.semijoins.part import Desk, DestinationPart, SourcePart
from actors.semijoins.payloads import Combinations, Shipment
from joins.batch import Batch
from joins.semijoins.joined import Joined


class SpDSource(SourcePart):
    """Ships what comes."""

    def start(self, joined: Joined, tick: int, final: bool, desk: Desk) -> None:
        """Ship B_1 (line 3)."""
        self.ship(Combinations(step=self.step.number, tick=tick, final=final, joined=joined), desk)

    def hear(self, payload: Shipment, desk: Desk) -> None:
        """Hear nothing: N_2 never answers."""
        raise ValueError(f"a source of SP-D was sent a {type(payload).__name__}")

    def snapshot(self) -> dict[str, Any]:
        """Return nothing: nothing is kept."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over nothing."""


class SpDDestination(DestinationPart):
    """Joins what comes with W_2."""

    def insert(self, batch: Batch, tick: int, keep_from: int, desk: Desk) -> None:
        """Update W_2 (line 7)."""
        self.update(batch, keep_from, desk)

    def hear(self, payload: Combinations, desk: Desk) -> None:
        """Join (line 4)."""
        self.join(payload, desk)
