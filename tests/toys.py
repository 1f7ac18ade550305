"""Small actors for tests of the kernel and the hosts; importable, so that Ray can run them too."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from actors.protocol import NO_SPAN, Actor, Context, Message, Payload
from joins.work import Work


@dataclass(frozen=True)
class Parcel(Payload):
    """A payload of a declared size, carrying an array."""

    number: int
    nbytes: int = 100
    rows: int = 1
    span: tuple[int, int] = NO_SPAN
    data: np.ndarray | None = None


class Sender(Actor):
    """Sends *count* parcels on every port, one each *gap_ns*."""

    state = ("sent",)

    def __init__(
        self, count: int, gap_ns: int = 0, nbytes: int = 100, ports: tuple[str, ...] = ("out",)
    ) -> None:
        self.count, self.gap_ns, self.size, self.ports = count, gap_ns, nbytes, ports
        self.sent = 0

    def receive(self, message: Message, context: Context) -> None:
        if self.sent < self.count:
            for port in self.ports:
                context.send(port, Parcel(self.sent, self.size, data=np.arange(self.sent % 7)))
            self.sent += 1
            context.set_timer(context.now + self.gap_ns, "next")


class Worker(Actor):
    """Charges *comparisons* a parcel and passes it on, if it has a port, to a random peer."""

    state = ("seen",)

    def __init__(self, comparisons: int = 0, port: str | None = None) -> None:
        self.comparisons, self.port = comparisons, port
        self.seen: list[int] = []

    def receive(self, message: Message, context: Context) -> None:
        parcel: Parcel = message.payload
        self.seen.append(parcel.number)
        context.charge(Work(comparisons=self.comparisons))
        if self.port:
            peers = context.peers(self.port)
            context.send(self.port, parcel, to=int(context.rng.integers(len(peers))))


class Recorder(Actor):
    """Emits what arrives: sender, number, time, and the sum of its data."""

    state = ()

    def receive(self, message: Message, context: Context) -> None:
        parcel: Parcel = message.payload
        total = 0 if parcel.data is None else int(parcel.data.sum())
        context.emit((message.sender, parcel.number, context.now, total))
