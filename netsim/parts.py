"""The kernel's records of sites, actors, and each message on its way.

Small mutable records with slots: a run makes one `Letter` a message and touches it six times.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import Any

from actors.protocol import NO_SPAN, Reply
from netsim.cost import CostProfile

_SEQ_BITS = 40
"""An event's priority is (rank << 40) + seq: so a sender's first 10^12 messages stay in order."""


class Site:
    """Cores that actors compete for, and one port each way."""

    __slots__ = ("egress_free_ns", "free_cores", "ingress_free_ns", "ready")

    def __init__(self, cores: int) -> None:
        self.free_cores = cores
        self.ready: list[tuple[int, int, Node]] = []
        self.egress_free_ns = 0
        self.ingress_free_ns = 0

    def claim_core(self, node: Node, now: int) -> bool:
        """Return whether *node* has a core now; else it waits for one."""
        if self.free_cores:
            self.free_cores -= 1
            return True
        heappush(self.ready, (now, node.rank, node))
        return False

    def release_core(self) -> Node | None:
        """Free a core; return the actor that has waited longest for one, which gets it."""
        if self.ready:
            return heappop(self.ready)[2]
        self.free_cores += 1
        return None


class Node:
    """The kernel's record of one actor."""

    __slots__ = (
        "busy",
        "credits",
        "delayed_timers",
        "inbox",
        "is_source",
        "name",
        "only_emits",
        "profile",
        "rank",
        "seq",
        "site",
        "unsent",
        "waiting",
    )

    def __init__(
        self,
        name: str,
        rank: int,
        site: Site,
        credits: int,
        profile: CostProfile,
        *,
        is_source: bool,
        only_emits: bool,
    ) -> None:
        self.name = name
        self.rank = rank
        self.site = site
        self.credits = credits
        self.profile = profile
        self.is_source = is_source
        self.only_emits = only_emits
        self.inbox: deque[Letter] = deque()
        self.waiting: deque[Letter] = deque()
        self.delayed_timers: list[tuple[int, str]] = []
        self.busy = False
        self.unsent = 0
        self.seq = 0


class Letter:
    """A message or a timer on its way through the kernel."""

    arrived_ns: int
    started_ns: int
    tx_ns: int
    ticket: int
    reply: Reply

    __slots__ = (
        "arrived_ns",
        "handle",
        "left_ns",
        "nbytes",
        "port",
        "priority",
        "receiver",
        "reply",
        "rows",
        "sender",
        "sent_ns",
        "seq",
        "span",
        "started_ns",
        "ticket",
        "tx_ns",
    )

    def __init__(
        self,
        sender: Node,
        receiver: Node,
        port: str,
        now: int,
        handle: Any = None,
        nbytes: int = 0,
        rows: int = 0,
        span: tuple[int, int] = NO_SPAN,
    ) -> None:
        self.sender = sender
        self.receiver = receiver
        self.port = port
        self.seq = sender.seq
        sender.seq += 1
        self.priority = (sender.rank << _SEQ_BITS) + self.seq
        self.handle = handle
        self.nbytes = nbytes
        self.rows = rows
        self.span = span
        self.sent_ns = self.left_ns = now

    def trace_row(self, port: int, done_ns: int) -> tuple[int, ...]:
        """Return its row of the trace (`netsim.trace.COLUMNS`), now that it was served."""
        return (
            self.sender.rank,
            self.receiver.rank,
            port,
            self.seq,
            self.nbytes,
            self.rows,
            self.span[0],
            self.span[1],
            self.sent_ns,
            self.left_ns,
            self.arrived_ns,
            self.started_ns,
            done_ns,
        )
