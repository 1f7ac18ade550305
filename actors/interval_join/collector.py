"""The collector: in which order a replica takes what its channels bring."""

from __future__ import annotations

from collections import deque
from typing import Any, Literal

from actors.interval_join.payloads import Tuples
from joins.state import plain, revive

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

    Attributes
    ----------
    most_tuples
        Tuples that waited at once, at the most.
    tuples, waited_ns, longest_ns
        Tuples that passed through, how long they waited all together, and the longest of them.
    """

    def __init__(self, order: Order, replica: int, channels: int) -> None:
        self._ordered = order == "ordered"
        self._replica = replica
        self._queues: list[deque[tuple[int, Tuples]]] = [deque() for _ in range(channels)]
        self._next = 0
        self._waiting = 0
        self.most_tuples = self.tuples = self.waited_ns = self.longest_ns = 0

    def __len__(self) -> int:
        return self._waiting

    def take(self, tuples: Tuples, now: int) -> list[Tuples]:
        """Take one message in at *now*, and return those whose turn has come, in order."""
        self.tuples += tuples.rows
        if not self._ordered:
            return [tuples]
        self._queues[tuples.channel].append((now, tuples))
        self._waiting += tuples.rows
        due = []
        while self._queues[self._next]:
            since, message = self._queues[self._next].popleft()
            due.append(message)
            self._waiting -= message.rows
            if message.rows:
                self.waited_ns += message.rows * (now - since)
                self.longest_ns = max(self.longest_ns, now - since)
            if self._replica in message.ends:
                self._next = (self._next + 1) % len(self._queues)
        self.most_tuples = max(self.most_tuples, self._waiting)
        return due

    def snapshot(self) -> dict[str, Any]:
        """Return what waits, whose turn it is, and what has waited so far."""
        return {
            "queues": [plain([list(waiting) for waiting in queue]) for queue in self._queues],
            "next": self._next,
            "counted": [self.most_tuples, self.tuples, self.waited_ns, self.longest_ns],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self._queues = [
            deque((since, tuples) for since, tuples in revive(queue)) for queue in state["queues"]
        ]
        self._next = state["next"]
        self._waiting = sum(tuples.rows for queue in self._queues for _, tuples in queue)
        self.most_tuples, self.tuples, self.waited_ns, self.longest_ns = state["counted"]
