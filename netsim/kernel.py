"""The kernel: simpy's clock, the actors' inboxes, the sites' cores and the network's ports.

Three rules make a run a function of its seed alone, wherever the actors live.

1. *Arrival order.* An actor's state changes in the order in which messages and timers arrive at it.
   Service time delays what it sends, not what it knows; so a message goes to the host as soon as it
   arrives.
2. *Sync point.* A message that starts service at t is waited for at t + floor, where floor is what
   such a message costs at the least. What overlaps in virtual time runs in parallel in real
   processes, and no order depends on real time.
3. *One order.* Things that meet at one virtual time are taken by (sender's rank, sender's sequence
   number), never by when a reply happened to come.

Inboxes are bounded. A sender whose receiver has no room keeps the message and starts no further
service until it is taken (credit-based flow control), so pressure travels back to the source.
Credits themselves travel in no time, and cost no bytes. Answers (`FEEDBACK`) need no room.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from types import MappingProxyType
from typing import Any
from zlib import crc32

import networkx as nx
import numpy as np
import simpy

from actors.protocol import FEEDBACK, START, TIMER, Host, Reply, Sent, Wiring
from joins.work import NO_WORK
from netsim.cost import CostProfile
from netsim.network import NetworkError, link_between
from netsim.parts import Channel, Letter, Moment, Node, Site
from netsim.trace import Trace

INBOX_MESSAGES = 16
"""Default room of an inbox, as deep as an engine's exchange buffers; 1 is the least."""

_STEPS_BETWEEN_REPORTS = 4_096

_UNFETCHED_MOST = 1_024
_UNFETCHED_BYTES = 2**24
"""Replies left with the host at most, and bytes of the messages they answer: what they hold is
memory of the actors' processes."""


class EndlessRunError(Exception):
    """A run that went past its limit of virtual time."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a run has come: virtual nanoseconds, tuples fed in, messages delivered."""

    virtual_ns: int
    tuples: int
    messages: int


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What the kernel counted in a run.

    Attributes
    ----------
    virtual_ns
        When the last service was done.
    tuples
        Tuples that sources fed in.
    messages, nbytes
        Messages that crossed between two actors, and the bytes of those that crossed between sites.
    in_flight
        Messages sent but not served when the run ended; 0 when nothing was lost.
    digest
        The trace's; None for a run that did not simulate, and is not repeatable.
    """

    virtual_ns: int
    tuples: int
    messages: int
    nbytes: int
    in_flight: int
    digest: str | None


class Kernel:
    """Runs one wired system over one network in virtual time.

    Parameters
    ----------
    wiring
        Actor name to port to receivers; every actor is a key, in the order of rank.
    placement
        Actor name to the site it lives on.
    network
        Sites (``cores``) and edges (``link``), see `netsim.network`.
    profile
        What work costs.
    operators
        Actor name to what it costs there, where that is another profile.
    host
        Runs the actors.
    seed
        Of the latencies drawn.
    trace
        Takes every message.
    collect
        Called with the results an actor emitted, in virtual order.
    inbox_messages
        Room of each inbox, at least 1.
    only_emit
        Actors that emit what they receive and ask for nothing else: a message costs them the floor,
        so nothing in virtual time waits for their replies, and they are fetched later.
    """

    def __init__(
        self,
        *,
        wiring: Wiring,
        placement: Mapping[str, str],
        network: nx.Graph,
        profile: CostProfile,
        host: Host,
        seed: int,
        trace: Trace,
        collect: Callable[[list[Any]], None],
        inbox_messages: int = INBOX_MESSAGES,
        only_emit: Collection[str] = (),
        operators: Mapping[str, CostProfile] = MappingProxyType({}),
    ) -> None:
        if inbox_messages < 1:
            raise NetworkError(f"inboxes of {inbox_messages} messages: must be at least 1")
        self._env: Any = simpy.Environment(
            initial_time=0
        )  # typed by simpy as float time; ours is int
        self._host = host
        self._trace = trace
        self._collect = collect
        self._tickets = 0
        self._tuples = self._messages = self._nbytes = 0
        self._served = self._sent = self._end_ns = 0

        sites = {name: Site(data["cores"]) for name, data in network.nodes(data=True)}
        fed = {receiver for ports in wiring.values() for to in ports.values() for receiver in to}
        self._nodes = {
            name: Node(
                name,
                rank,
                sites[placement[name]],
                inbox_messages,
                operators.get(name, profile),
                is_source=name not in fed,
                only_emits=name in only_emit,
            )
            for rank, name in enumerate(wiring)
        }
        self._unfetched: deque[int] = deque()
        self._unfetched_bytes = 0
        self._channels: dict[tuple[int, int], Channel] = {}
        for name, ports in wiring.items():
            for receivers in ports.values():
                for receiver in receivers:
                    self._open_channel(name, receiver, placement, network, seed)
        names = self.trace_names(wiring)
        self._port_code = {name: i for i, name in enumerate(names) if i >= len(wiring)}
        self._timer_code = self._port_code[TIMER]

    @staticmethod
    def trace_names(wiring: Wiring) -> list[str]:
        """Return what the codes in the trace of a system wired like this stand for."""
        return [
            *wiring,
            *sorted({port for ports in wiring.values() for port in ports}),
            START,
            TIMER,
        ]

    def run(
        self,
        *,
        progress: Callable[[Progress], None] | None = None,
        until_ns: int | None = None,
    ) -> Outcome:
        """Start the sources and run until nothing is left to happen.

        Raise :exc:`EndlessRunError` when something is still to happen after *until_ns*, and
        whatever the host raises.
        """
        for node in self._nodes.values():
            if node.is_source:
                letter = Letter(node, node, START, 0)
                self._at(0, self._arrive, letter)
        env = self._env
        try:
            while True:
                for _ in range(_STEPS_BETWEEN_REPORTS):
                    env.step()
                self._trace.flush_if_full()
                if progress:
                    progress(self._progress())
                if until_ns is not None and env.now > until_ns:
                    raise EndlessRunError(
                        f"the run has not ended after {until_ns / 1e9:g} virtual seconds"
                    )
        except simpy.core.EmptySchedule:
            self._fetch()
        if progress:
            progress(self._progress())
        return Outcome(
            virtual_ns=self._end_ns,
            tuples=self._tuples,
            messages=self._messages,
            nbytes=self._nbytes,
            in_flight=self._sent - self._served,
            digest=self._trace.close(),
        )

    def _progress(self) -> Progress:
        return Progress(virtual_ns=self._env.now, tuples=self._tuples, messages=self._messages)

    def _open_channel(
        self, sender: str, receiver: str, placement: Mapping[str, str], network: nx.Graph, seed: int
    ) -> None:
        if sender == receiver:
            raise NetworkError(f"{sender} is wired to itself: use a timer")
        key = (self._nodes[sender].rank, self._nodes[receiver].rank)
        if key in self._channels:
            return
        link = link_between(network, placement[sender], placement[receiver])
        if link is None:
            self._channels[key] = Channel()
            return
        rng = np.random.default_rng([seed, crc32(f"{sender}>{receiver}".encode())])
        self._channels[key] = Channel(link.bandwidth_bps, link.latency.sampler(rng))

    def _at(self, at_ns: int, action: Callable[[Any], None], letter: Letter) -> None:
        env = self._env
        env.schedule(Moment(env, action, letter), letter.priority, at_ns - env.now)

    # A message's life, in order: post, (credit), transmit, reach, arrive, start, sync, complete.

    def _post(self, letter: Letter) -> None:
        self._sent += 1
        self._messages += 1
        receiver = letter.receiver
        if letter.sender.site is not receiver.site:
            self._nbytes += letter.nbytes
        if letter.port == FEEDBACK:
            self._transmit(letter)
        elif receiver.credits:
            receiver.credits -= 1
            self._transmit(letter)
        else:
            receiver.waiting.append(letter)
            letter.sender.unsent += 1

    def _transmit(self, letter: Letter) -> None:
        now = self._env.now
        channel = self._channels[letter.sender.rank, letter.receiver.rank]
        draw_ns = channel.draw_ns
        if draw_ns is None:
            letter.left_ns = now
            self._at(now, self._arrive, letter)
            return
        port = letter.sender.site
        letter.tx_ns = tx_ns = letter.nbytes * 8_000_000_000 // channel.bandwidth_bps
        left_ns = port.egress_free_ns
        if left_ns < now:
            left_ns = now
        letter.left_ns = left_ns
        port.egress_free_ns = left_ns + tx_ns
        first_bit_ns = left_ns + draw_ns()
        if first_bit_ns < channel.last_first_bit_ns:
            first_bit_ns = channel.last_first_bit_ns
        channel.last_first_bit_ns = first_bit_ns
        self._at(first_bit_ns, self._reach, letter)

    def _reach(self, event: Any) -> None:
        """Take the first bit at the receiver's port; the message is in when the last bit is."""
        letter = event._value
        site = letter.receiver.site
        free_ns = site.ingress_free_ns
        now = self._env.now
        in_ns = (free_ns if free_ns > now else now) + letter.tx_ns
        site.ingress_free_ns = in_ns
        self._at(in_ns, self._arrive, letter)

    def _arrive(self, event: Any) -> None:
        letter: Letter = event._value
        now = self._env.now
        letter.arrived_ns = now
        node = letter.receiver
        letter.ticket = self._tickets
        self._tickets += 1
        self._host.submit(
            letter.ticket, node.name, letter.sender.name, letter.port, letter.handle, now
        )
        letter.handle = None
        node.inbox.append(letter)
        if not node.busy and not node.unsent:
            self._claim_core(node)

    def _claim_core(self, node: Node) -> None:
        node.busy = True
        site = node.site
        if site.free_cores:
            site.free_cores -= 1
            self._start(node)
        else:
            heappush(site.ready, (self._env.now, node.rank, node))

    def _start(self, node: Node) -> None:
        letter = node.inbox.popleft()
        now = self._env.now
        letter.started_ns = now
        if letter.sender is not node and letter.port != FEEDBACK:
            self._return_credit(node)
        profile = node.profile
        floor = profile.local_ns if letter.sender.site is node.site else profile.floor_ns
        self._at(now + floor(letter.rows, letter.nbytes), self._sync, letter)

    def _return_credit(self, node: Node) -> None:
        if not node.waiting:
            node.credits += 1
            return
        letter = node.waiting.popleft()
        self._transmit(letter)
        sender = letter.sender
        sender.unsent -= 1
        if not sender.unsent:
            self._set_timers(sender, sender.held_timers)
            sender.held_timers = []
            # As an event of its own: a chain of blocked senders would otherwise recurse.
            self._at(self._env.now, self._resume, letter)

    def _resume(self, event: Any) -> None:
        sender = event._value.sender
        if sender.inbox and not sender.busy and not sender.unsent:
            self._claim_core(sender)

    def _sync(self, event: Any) -> None:
        letter: Letter = event._value
        if letter.receiver.only_emits:
            self._complete_unfetched(letter)
            return
        letter.reply = reply = self._host.reply(letter.ticket)
        profile = letter.receiver.profile
        extra_ns = profile.work_ns(reply.work)
        if profile.charges_senders:
            extra_ns += self._sending_ns(letter.receiver, reply.sends)
        if extra_ns:
            self._at(self._env.now + extra_ns, self._complete, letter)
        else:
            self._complete(event)

    def _sending_ns(self, node: Node, sends: list[Sent]) -> int:
        rows = sum(sent.rows for sent in sends) if node.is_source else 0
        leaving = [
            sent.nbytes
            for sent in sends
            for name in sent.receivers
            if self._nodes[name].site is not node.site
        ]
        return node.profile.sent_ns(rows, len(leaving), sum(leaving))

    def _complete_unfetched(self, letter: Letter) -> None:
        self._end_ns = self._env.now
        self._record(letter, self._end_ns)
        self._unfetched.append(letter.ticket)
        self._unfetched_bytes += letter.nbytes
        if len(self._unfetched) > _UNFETCHED_MOST or self._unfetched_bytes > _UNFETCHED_BYTES:
            self._fetch()
        self._release_core(letter.receiver)

    def _fetch(self) -> None:
        """Collect what was emitted meanwhile, in virtual order."""
        while self._unfetched:
            reply = self._host.reply(self._unfetched.popleft())
            if reply.sends or reply.timers or reply.work != NO_WORK:
                raise ValueError("an actor declared to only emit asked for something else")
            self._collect(reply.emitted)
        self._unfetched_bytes = 0

    def _complete(self, event: Any) -> None:
        letter: Letter = event._value
        node = letter.receiver
        reply: Reply = letter.reply
        now = self._end_ns = self._env.now
        self._record(letter, now)
        if reply.emitted:
            self._collect(reply.emitted)
        for sent in reply.sends:
            for name in sent.receivers:
                self._post(
                    Letter(
                        node,
                        self._nodes[name],
                        sent.port,
                        now,
                        sent.handle,
                        sent.nbytes,
                        sent.rows,
                        sent.span,
                    )
                )
            if node.is_source:
                self._tuples += sent.rows
        if node.unsent:
            # A blocked source must not run on: its clock waits with it.
            node.held_timers += reply.timers
        else:
            self._set_timers(node, reply.timers)
        self._release_core(node)

    def _set_timers(self, node: Node, timers: list[tuple[int, str]]) -> None:
        now = self._env.now
        for at_ns, name in timers:
            letter = Letter(node, node, TIMER + name, now)
            self._at(at_ns if at_ns > now else now, self._arrive, letter)

    def _release_core(self, node: Node) -> None:
        site = node.site
        site.free_cores += 1
        node.busy = False
        if site.ready:
            site.free_cores -= 1
            self._start(heappop(site.ready)[2])
        if node.inbox and not node.unsent:
            self._claim_core(node)

    def _record(self, letter: Letter, done_ns: int) -> None:
        if letter.sender is not letter.receiver:
            self._served += 1
        # A timer's port ends in its name, and so has no code of its own.
        code = self._port_code.get(letter.port, self._timer_code)
        self._trace.record(
            (
                letter.sender.rank,
                letter.receiver.rank,
                code,
                letter.seq,
                letter.nbytes,
                letter.rows,
                letter.span[0],
                letter.span[1],
                letter.sent_ns,
                letter.left_ns,
                letter.arrived_ns,
                letter.started_ns,
                done_ns,
            )
        )
