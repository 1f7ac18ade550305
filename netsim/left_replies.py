"""Replies of actors that only emit: nothing in virtual time waits for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from actors.protocol import Host
from joins.work import NO_WORK
from netsim.parts import Letter

_MESSAGES_MOST = 1_024
_BYTES_MOST = 2**24
"""Replies left with the host at most, and bytes of the messages they answer: what they hold is
memory of the actors' processes."""


class LeftReplies:
    """Leaves replies with the host and fetches them together, in virtual order.

    Parameters
    ----------
    host
        Keeps the replies.
    collect
        Called with what an actor emitted.
    """

    def __init__(self, host: Host, collect: Callable[[list[Any]], None]) -> None:
        self._host = host
        self._collect = collect
        self._tickets: deque[int] = deque()
        self._nbytes = 0

    def leave(self, letter: Letter) -> None:
        """Leave the reply to *letter* for later."""
        self._tickets.append(letter.ticket)
        self._nbytes += letter.nbytes
        if len(self._tickets) > _MESSAGES_MOST or self._nbytes > _BYTES_MOST:
            self.fetch()

    def fetch(self) -> None:
        """Collect what was emitted meanwhile.

        Raise :exc:`ValueError` when an actor asked for something else.
        """
        while self._tickets:
            reply = self._host.reply(self._tickets.popleft())
            if reply.sends or reply.timers or reply.work != NO_WORK:
                raise ValueError("an actor declared to only emit asked for something else")
            self._collect(reply.emitted)
        self._nbytes = 0
