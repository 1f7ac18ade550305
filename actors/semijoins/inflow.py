"""What comes into a site interval by interval: its own stream, or an output stream made there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from joins.semijoins.horizon import Horizon


@dataclass
class Inflow:
    """A stream at a site.

    Attributes
    ----------
    stream
        Its number: of a stream of the query its position.
    horizon
        Which of its tuples may still be seen.
    tick
        End of the latest execution interval that it brought.
    """

    stream: int
    horizon: Horizon
    tick: int = -1

    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {"horizon": self.horizon.snapshot(), "tick": self.tick}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self.horizon.restore(state["horizon"])
        self.tick = state["tick"]
