"""What the kernel keeps of sites, actors and channels, and of each message on its way.

Small mutable records with slots: a run makes one `Letter` a message and touches it six times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import simpy

from actors.protocol import NO_SPAN, Reply
from netsim.cost import CostProfile

_SEQ_BITS = 40
"""An event's priority is (rank << 40) + seq: a sender's first 10^12 messages keep their order."""


class Site:
    """Cores that actors compete for, and one port each way."""

    __slots__ = ("egress_free_ns", "free_cores", "ingress_free_ns", "ready")

    def __init__(self, cores: int) -> None:
        self.free_cores = cores
        self.ready: list[tuple[int, int, Node]] = []
        self.egress_free_ns = 0
        self.ingress_free_ns = 0


class Node:
    """What the kernel keeps of one actor."""

    __slots__ = (
        "busy",
        "credits",
        "held_timers",
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
        self.held_timers: list[tuple[int, str]] = []
        self.busy = False
        self.unsent = 0
        self.seq = 0


class Channel:
    """From one actor to another: never reorders. Within one site it takes no time."""

    __slots__ = ("bandwidth_bps", "draw_ns", "last_first_bit_ns")

    def __init__(self, bandwidth_bps: int = 0, draw_ns: Callable[[], int] | None = None) -> None:
        self.bandwidth_bps = bandwidth_bps
        self.draw_ns = draw_ns
        self.last_first_bit_ns = 0


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


class Moment(simpy.Event):
    """A simpy event that is sure to happen; built without a process, which would cost twice."""

    def __init__(self, env: simpy.Environment, action: Callable[[Any], None], value: Any) -> None:
        self.env = env
        self.callbacks = [action]
        self._value = value
        self._ok = True
