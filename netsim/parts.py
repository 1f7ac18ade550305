"""The kernel's parts: the virtual clock, and records of sites, actors, and messages on their way.

Small mutable records with slots: a run makes one `Letter` a message and touches it six times. simpy
owns time: whole nanoseconds, and what happens when.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

import simpy

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


class Clock(simpy.Environment):
    """Virtual time from 0 on, in nanoseconds."""

    _now: int  # simpy's own may be a float

    def __init__(self) -> None:
        super().__init__(initial_time=0)

    def at(self, at_ns: int, action: Callable[[Moment], None], letter: Letter) -> None:
        """Have *action* happen to *letter* at *at_ns*; of one time, the least priority is first."""
        moment = Moment(action, letter, at_ns)
        # simpy's own priorities are two, urgent and normal; any number serves.
        self.schedule(moment, letter.priority, at_ns - self._now)  # type: ignore[arg-type]

    def advance(self, events: int) -> bool:
        """Process the next *events*; return whether there were as many."""
        step = self.step
        try:
            for _ in range(events):
                step()
        except simpy.core.EmptySchedule:
            return False
        return True


class Moment(simpy.Event):
    """A simpy event that is sure to happen, with no more of one than the clock looks at.

    Built without a process, which would cost twice.
    """

    _ok = True

    def __init__(self, action: Callable[[Moment], None], letter: Letter, at_ns: int) -> None:
        self.callbacks = [action]
        self.letter = letter
        self.at_ns = at_ns
