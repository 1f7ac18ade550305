"""What a live process keeps of one of its actors, and of a channel that leads from one."""

from __future__ import annotations

from collections import deque

from actors.hosting.cell import Cell
from actors.hosting.live.parcels import Channel, Parcel, Served


class Seat:
    """One actor that lives here.

    Attributes
    ----------
    inbox
        Messages and timers to be served, in the order they arrived.
    waits
        Messages it has sent that have no room at their receiver yet; until all have, it starts
        nothing.
    timers
        Timers set that have not fired; *held_timers*, of them, are set when it no longer waits.
    open_inputs
        Channels from outside its component on which more may come.
    received
        Messages so far by channel.
    is_source
        Whether no channel leads to it.
    in_turn
        Whether it is among those that take turns.
    served
        What serving it has come to so far.
    """

    __slots__ = (
        "_seq", "cell", "held_timers", "in_turn", "inbox", "is_source", "name", "open_inputs",
        "received", "served", "timers", "waits",
    )  # fmt: skip

    def __init__(self, name: str, cell: Cell) -> None:
        self.name, self.cell = name, cell
        self.inbox: deque[Parcel] = deque()
        self.held_timers: list[tuple[int, str]] = []
        self.received: dict[Channel, int] = {}
        self.waits = self.timers = self.open_inputs = self._seq = 0
        self.served = Served()
        self.is_source, self.in_turn = True, False

    def next_seq(self) -> int:
        """Return the number of the next message or timer of this actor."""
        self._seq += 1
        return self._seq - 1

    @property
    def at_rest(self) -> bool:
        """Whether nothing is left to do, and nothing can come from outside its component."""
        return not (self.inbox or self.waits or self.timers or self.open_inputs)


class Outlet:
    """The end of a channel at its sender: how much room the receiver has left for it.

    Attributes
    ----------
    home
        The receiver's process.
    room
        Messages that may leave before the receiver has begun with one of those that left.
    waiting
        Those that have no room yet.
    sent
        Messages so far, waiting ones included.
    """

    __slots__ = ("home", "room", "sent", "waiting")

    def __init__(self, home: int, room: int) -> None:
        self.home, self.room = home, room
        self.waiting: deque[Parcel] = deque()
        self.sent = 0
