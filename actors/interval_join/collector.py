"""The collector: in which order a replica takes what its channels bring."""

from __future__ import annotations

from collections import deque
from typing import Any, Literal

from actors.interval_join.payloads import Tuples
from actors.state import plain, revive

Order = Literal["ordered", "naive"]


class Collector:
    """One replica's collector (PPOIJ, sections 4.2 and 4.3).

    *Ordered*, it goes round the channels and takes one turn of each: base and probe emitters
    alternate, and what comes out of turn waits. All replicas then take what they have in common in
    one order, which is what makes each pair meet at exactly one of them.

    The paper's HP-OIJ goes round once per distinct key, with a queue per key and channel, since a
    channel may have nothing of a key for long (Example 4.3). Here emitters number nothing and say
    instead when their turn ends, to every replica, whether they had something for it or not. A
    turn may thus be empty, no key can hold up another for longer than that, and a queue per
    channel is enough: the order of each key's tuples is the order of turns at all its replicas.

    *Naive*, it hands everything on as it arrives: right for KP-OIJ, and the cause of duplicate and
    missing pairs in the other two (Examples 4.1 to 4.3).

    Parameters
    ----------
    order
        ``ordered`` or ``naive``.
    replica, channels
        Whose collector it is, and how many emitters there are.
    """

    def __init__(self, order: Order, replica: int, channels: int) -> None:
        self._ordered = order == "ordered"
        self._replica = replica
        self._queues: list[deque[Tuples]] = [deque() for _ in range(channels)]
        self._next = 0

    def __len__(self) -> int:
        return sum(tuples.rows for queue in self._queues for tuples in queue)

    def take(self, tuples: Tuples) -> list[Tuples]:
        """Take one message in and return those whose turn has come, in order."""
        if not self._ordered:
            return [tuples]
        self._queues[tuples.channel].append(tuples)
        due = []
        while self._queues[self._next]:
            message = self._queues[self._next].popleft()
            due.append(message)
            if self._replica in message.ends:
                self._next = (self._next + 1) % len(self._queues)
        return due

    def snapshot(self) -> dict[str, Any]:
        """Return what waits, and whose turn it is."""
        return {"queues": [plain(list(queue)) for queue in self._queues], "next": self._next}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self._queues = [deque(revive(queue)) for queue in state["queues"]]
        self._next = state["next"]
