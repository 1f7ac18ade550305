"""A stopwatch around the inline host: how long operators really took, not what they are charged.

It stands here because nothing simulated may read a clock.
"""

from __future__ import annotations

import time
from typing import Any

from actors.hosting.held import held_bytes
from actors.hosting.inline import InlineHost
from actors.protocol import Reply


class TimedHost:
    """Passes everything on to *host* and adds up the wall seconds spent in each actor.

    Attributes
    ----------
    seconds
        Actor name to seconds.
    """

    def __init__(self, host: InlineHost) -> None:
        self._host = host
        self.seconds = dict.fromkeys(host.cells, 0.0)

    def submit(
        self, ticket: int, actor: str, sender: str, port: str, handle: Any, now: int
    ) -> None:
        """Run the actor at once and take the time."""
        start = time.perf_counter()
        self._host.submit(ticket, actor, sender, port, handle, now)
        self.seconds[actor] += time.perf_counter() - start

    def reply(self, ticket: int) -> Reply:
        """Return the reply to a submitted message."""
        return self._host.reply(ticket)

    def state_bytes(self) -> dict[str, int]:
        """Return actor name to the bytes of the arrays that it holds now, each array once."""
        return {name: held_bytes(cell.actor) for name, cell in self._host.cells.items()}
