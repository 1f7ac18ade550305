"""An inner node of a tree that spreads messages out to many actors, or gathers them from many."""

from __future__ import annotations

from actors.protocol import Actor, Context, Message
from joins.state import State


class Relay(Actor):
    """Passes on what comes, as it is; port ``out``."""

    def receive(self, message: Message, context: Context) -> None:
        """Send the payload to everybody downstream."""
        context.send("out", message.payload)

    def snapshot(self) -> State:
        """Return nothing: a relay keeps nothing."""
        return {}

    def restore(self, state: State) -> None:
        """Take over nothing."""
