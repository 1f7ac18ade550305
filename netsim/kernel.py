"""The kernel: what happens to a message, through inboxes, cores and the network, in virtual time.

Three rules make a run a function of its seed alone, wherever the actors live.

1. *Arrival order.* An actor's state changes in the order in which messages and timers arrive at it.
   Service time delays what it sends, not its state; so a message goes to the host as soon as it
   arrives.
2. *Sync point.* A message that starts service at t is waited for at t + floor, where floor is what
   such a message costs at the least. What overlaps in virtual time runs in parallel in real
   processes, and no order depends on real time. What an actor raises is raised there, too.
3. *One order.* Things that meet at one virtual time are taken by (sender's rank, sender's sequence
   number), never by when a reply happened to come.

Inboxes are bounded. A sender whose receiver has no room waits, and starts no further service until
its message has left (credit-based flow control), so pressure travels back to the source. Credits
themselves travel in no time, and cost no bytes. Answers (`FEEDBACK`) need no room.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Any, cast
from zlib import crc32

import networkx as nx
import simpy

from actors.protocol import (
    FEEDBACK,
    NO_SPAN,
    START,
    TIMER,
    ActorError,
    Host,
    Progress,
    Reply,
    Sent,
    Wiring,
    channels,
)
from joins.work import NO_WORK
from netsim.cost import CostProfile
from netsim.faults import FOREVER_NS
from netsim.network import BYTE_NS, NetworkError, link_between
from netsim.outcome import Outcome
from netsim.trace import Trace, pack_row, trace_names

INBOX_MESSAGES = 16
"""Default room of an inbox, as deep as an engine's exchange buffers; 1 is the least."""

_EVENTS_BETWEEN_REPORTS = 4_096

_IDLE_REPORTS = 1_024
"""So often a run reports its progress while nothing but timers happens before it is stopped. Those
are four million events, of more than a million timers: one each virtual millisecond would go on for
a quarter of an hour after the last message, and what an actor waits for then comes in seconds."""

_UNFETCHED_MESSAGES = 1_024
_UNFETCHED_BYTES = 2**24
"""Replies not fetched from the host at most, and bytes of the messages they answer: they take
memory of the actors' processes."""


_LONGEST_NS = 86_400_000_000_000
"""What the work of one message takes at the most, a day: the sum of many stays inside int64."""

_SEQ_BITS = 40
"""An event's priority is (rank << 40) + seq: so a sender's first 10^12 messages stay in order."""

_NO_REPLY = Reply()
_NOTHING = Sent("", (), None, 0, 0, NO_SPAN)
"""What a timer carries."""


@dataclass(slots=True, eq=False)
class SiteState:
    """The kernel's record of one site: cores that actors compete for, and one port each way."""

    cores: int
    free_cores: int
    ready: list[tuple[int, int, Node]] = field(default_factory=list)
    """Actors that wait for a core, by how long they have waited and rank: a heap."""
    egress_free_ns: int = 0
    ingress_free_ns: int = 0
    foresees: bool = True
    """Whether every message takes some time to reach it, so that `coming` is their order."""
    coming: deque[Letter] = field(default_factory=deque)
    """Messages on their way to its port, in the order in which they will reach it."""
    received_ns: int = 0
    """When the port has received all that were on their way before those."""


@dataclass(slots=True)
class Node:
    """The kernel's record of one actor."""

    name: str
    rank: int
    site: SiteState
    credits: int
    profiles: tuple[CostProfile, ...]
    """What work costs, by how many other cores of the site are at work as it starts."""
    is_source: bool
    only_emits: bool
    channels: dict[str, ChannelState] = field(default_factory=dict)
    inbox: deque[Letter] = field(default_factory=deque)
    waiting: deque[Letter] = field(default_factory=deque)
    delayed_timers: list[tuple[int, str]] = field(default_factory=list)
    busy: bool = False
    unsent: int = 0
    seq: int = 0


class Letter:
    """A message or a timer on its way through the kernel: an event of the clock, many times."""

    __slots__ = (
        "arrived_ns", "channel", "epoch", "first_bit_ns", "handle", "left_ns", "nbytes", "port",
        "priority", "profile", "receiver", "reply", "rows", "sender", "sent_ns", "seq", "span",
        "started_ns", "ticket", "tx_ns",
    )  # fmt: skip

    channel: ChannelState
    epoch: int
    """Of a run with snapshots: see `netsim.recovering_kernel`."""
    first_bit_ns: int
    profile: CostProfile
    started_ns: int
    tx_ns: int
    ticket: int
    reply: Reply | None

    def __init__(
        self,
        sender: Node,
        receiver: Node,
        port: str,
        now: int,
        sent: Sent = _NOTHING,
    ) -> None:
        self.sender = sender
        self.receiver = receiver
        self.port = port
        self.seq = sender.seq
        sender.seq += 1
        self.priority = (sender.rank << _SEQ_BITS) + self.seq
        self.handle = sent.handle
        self.nbytes = sent.nbytes
        self.rows = sent.rows
        self.span = sent.span
        self.sent_ns = self.left_ns = self.arrived_ns = now


def _profiles_at_sites(
    placement: Mapping[str, str],
    network: nx.Graph,
    profile: CostProfile,
    operators: Mapping[str, CostProfile],
) -> dict[str, tuple[CostProfile, ...]]:
    """Return what work costs each actor, by how many other cores of its site are at work."""
    actors = Counter(placement.values())
    known: dict[tuple[int, int], tuple[CostProfile, ...]] = {}
    profiles = {}
    for name, site in placement.items():
        own, cores = operators.get(name, profile), min(actors[site], network.nodes[site]["cores"])
        if (id(own), cores) not in known:
            known[id(own), cores] = tuple(own.on_cores(n) for n in range(1, cores + 1))
        profiles[name] = known[id(own), cores]
    return profiles


_Action = Callable[[Any, int], None]
"""Called with the event, which has a priority (without faults, a message), and the time."""


class _Clock(simpy.Environment):
    """Virtual time from 0 on, in nanoseconds: simpy's, with its queue in its order.

    Every event happens, and is one action on one message: so the queue has these themselves, and
    none of what `simpy.Event` has for failures, conditions and processes.
    """

    def __init__(self) -> None:
        super().__init__(initial_time=0)
        self._events = cast(list[tuple[int, int, int, _Action, Any]], self._queue)

    def at(self, at_ns: int, action: _Action, event: Any) -> None:
        """Schedule *action* on *event* at *at_ns*; at equal times the least priority is first.

        Raise :exc:`NetworkError` where that is after the end of virtual time.
        """
        if at_ns >= FOREVER_NS:
            raise NetworkError(
                "the run would go on past the 292 years of virtual time, an int64 of nanoseconds: "
                "let links, work, timers or faults take less of it"
            )
        # As `schedule` does, whose priorities are two, urgent and normal; any number serves.
        heappush(self._events, (at_ns, event.priority, next(self._eid), action, event))

    def advance(self, events: int) -> bool:
        """Process the next *events*; return whether there were as many."""
        queue, now = self._events, self._now
        for _ in range(events):
            if not queue:
                break
            now, _, _, action, event = heappop(queue)
            action(event, now)
        self._now = now
        return bool(queue)

    def __len__(self) -> int:
        """How many events are pending."""
        return len(self._events)

    def pending(self) -> list[Any]:
        """Return the events that are pending, in order."""
        return [event for *_, event in sorted(self._events)]

    def drop_unless(self, stays: Callable[[Any], bool]) -> None:
        """Drop the pending events but those that *stays* is true of."""
        self._events[:] = [one for one in self._events if stays(one[4])]
        heapify(self._events)


@dataclass(slots=True, eq=False)
class ChannelState:
    """The kernel's record of a channel, which never reorders; within one site it takes no time."""

    receiver: Node
    bandwidth_bps: int = 0
    draw_ns: Callable[[], int] | None = None
    last_first_bit_ns: int = 0
    due: int = 0
    """Messages that were to be received so far, see `Outcome.due`."""
    served: int = 0
    """Those that were served; of a run with snapshots alone."""


@dataclass(kw_only=True, eq=False)
class Kernel:
    """Runs one wired system over one network in virtual time."""

    wiring: Wiring
    """Actor name to port to receivers; every actor is a key, in the order of rank."""
    placement: Mapping[str, str]
    """Actor name to the site it lives on."""
    network: nx.Graph
    """Sites (``cores``) and edges (``link``), see `netsim.network`."""
    profile: CostProfile
    """What work costs."""
    host: Host
    """Runs the actors."""
    seed: int
    """Of the latencies drawn."""
    trace: Trace
    """Takes every message."""
    collect: Callable[[list[Any]], None]
    """Called with the results an actor emitted, in virtual order."""
    inbox_messages: int = INBOX_MESSAGES
    """Room of each inbox, at least 1."""
    only_emit: Collection[str] = ()
    """Actors that emit what they receive and ask for nothing else: a message costs them the floor,
    so nothing in virtual time waits for their replies, and they are fetched later."""
    operators: Mapping[str, CostProfile] = field(default_factory=dict)
    """Actor name to what it costs there, where that is another profile."""

    def __post_init__(self) -> None:
        if self.inbox_messages < 1:
            raise NetworkError(f"inboxes of {self.inbox_messages} messages: must be at least 1")
        self._clock = _Clock()
        self._at = self._clock.at
        self._submit, self._reply = self.host.submit, self.host.reply
        self._record = self.trace.record
        self._unfetched: deque[Letter] = deque()
        self._unfetched_bytes = 0
        self._tickets = 0
        self._tuples = self._messages = self._nbytes = 0
        self._served = self._end_ns = 0
        self._unpriced: dict[str, None] = {}
        cores = self.network.nodes(data="cores")
        self._sites = {name: SiteState(cores=n, free_cores=n) for name, n in cores}
        wired = channels(self.wiring)
        self._nodes = self._make_nodes(fed={receiver for _, receiver in wired})
        for sender, receiver in wired:
            self._make_channel(sender, receiver)
        self._port_code = {
            name: code
            for code, name in enumerate(trace_names(self.wiring))
            if code >= len(self.wiring)
        }
        self._timer_code = self._port_code[TIMER]

    def _make_nodes(self, fed: Collection[str]) -> dict[str, Node]:
        """Return the record of each actor; those that no other has *fed* are sources."""
        profiles = _profiles_at_sites(self.placement, self.network, self.profile, self.operators)
        return {
            name: Node(
                name=name,
                rank=rank,
                site=self._sites[self.placement[name]],
                credits=self.inbox_messages,
                profiles=profiles[name],
                is_source=name not in fed,
                only_emits=name in self.only_emit,
            )
            for rank, name in enumerate(self.wiring)
        }

    def _make_channel(self, sender: str, receiver: str) -> None:
        if sender == receiver:
            raise NetworkError(f"{sender} is wired to itself: use a timer")
        link = link_between(self.network, self.placement[sender], self.placement[receiver])
        node = self._nodes[receiver]
        channel = ChannelState(node)
        if link is not None:
            draws = [self.seed, crc32(f"{sender}>{receiver}".encode())]
            channel = ChannelState(node, link.bandwidth_bps, link.latency.sampler(draws))
            node.site.foresees &= link.latency.least_ns > 0
        self._nodes[sender].channels[receiver] = channel

    def run(self, *, progress: Callable[[Progress], None] | None = None) -> Outcome:
        """Start the sources and run until nothing is left to happen.

        *progress* is called now and then, and at the end. Raise whatever it or the host raises.
        """
        self._begin()
        idle, served = 0, -1
        while self._clock.advance(_EVENTS_BETWEEN_REPORTS):
            self.trace.flush_if_full()
            if progress:
                progress(self._progress())
            idle = 0 if self._served != served or self._under_way() else idle + 1
            served = self._served
            if idle >= _IDLE_REPORTS:
                self._refuse_endless_timers()
        self._fetch()
        if progress:
            progress(self._progress())
        return self._outcome()

    def _outcome(self) -> Outcome:
        return Outcome(
            virtual_ns=self._end_ns,
            tuples=self._tuples,
            messages=self._messages,
            nbytes=self._nbytes,
            due={
                (node.name, receiver): channel.due
                for node in self._nodes.values()
                for receiver, channel in node.channels.items()
            },
            in_flight=self._under_way(),
            standstill=self._standstill(),
            unserved=self._unserved_failures(),
            digest=self.trace.close(),
            unpriced=tuple(self._unpriced),
        )

    def _under_way(self) -> int:
        """Return how many messages have been sent and neither served nor lost."""
        return self._messages - self._served

    def _refuse_endless_timers(self) -> None:
        """Raise :exc:`ActorError` naming the actor that sets timers; not while a source has one."""
        timers = (
            one
            for one in self._clock.pending()
            if type(one) is Letter and one.sender is one.receiver
        )
        at_work = [timer.receiver for timer in timers]
        at_work += [node for node in self._nodes.values() if node.inbox]
        if at_work and not any(node.is_source for node in at_work):
            raise ActorError(
                f"{at_work[0].name} sets one timer after another for ever: the sources have ended, "
                f"and in {_IDLE_REPORTS * _EVENTS_BETWEEN_REPORTS:,} events in a row no message "
                "was under way and none was sent; let it set a timer only while it waits for "
                "something that is still to come"
            )

    def _standstill(self) -> tuple[str, ...]:
        """Return actors that wait for room at each other in a circle, if any."""
        waits_for = nx.DiGraph(
            (letter.sender.name, node.name)
            for node in self._nodes.values()
            for letter in node.waiting
        )
        try:
            return tuple(sender for sender, _ in nx.find_cycle(waits_for))
        except nx.NetworkXNoCycle:
            return ()

    def _unserved_failures(self) -> tuple[str, ...]:
        """Return what actors raised first on messages that are still in their inboxes."""
        failures: list[str] = []
        for node in self._nodes.values():
            replies = (letter.reply or self._reply(letter.ticket) for letter in node.inbox)
            failures += islice((str(reply.failure) for reply in replies if reply.failure), 1)
        return tuple(failures)

    def _begin(self) -> None:
        for node in self._nodes.values():
            if node.is_source:
                self._at(0, self._arrive, Letter(node, node, START, 0))

    def _progress(self) -> Progress:
        return Progress(int(self._clock.now), self._tuples, self._messages)

    # A message's life, in order: post, credit, transmit, reach, arrive, start, sync, complete. Two
    # of these are events, arrive and complete; reach and sync where they have to be.

    def _post(self, letter: Letter, now: int) -> None:
        self._messages += 1
        letter.channel.due += 1
        receiver = letter.receiver
        if letter.sender.site is not receiver.site:
            self._nbytes += letter.nbytes
        if letter.port == FEEDBACK:
            self._transmit(letter, now)
        elif receiver.credits:
            receiver.credits -= 1
            self._transmit(letter, now)
        else:
            receiver.waiting.append(letter)
            letter.sender.unsent += 1

    def _transmit(self, letter: Letter, now: int) -> None:
        """Send *letter* off as soon as its sender's port is free (see `netsim.network`)."""
        channel = letter.channel
        draw_ns = channel.draw_ns
        if draw_ns is None:
            letter.left_ns = letter.arrived_ns = now
            self._at(now, self._arrive, letter)
            return
        port = letter.sender.site
        letter.tx_ns = tx_ns = letter.nbytes * BYTE_NS // channel.bandwidth_bps
        left_ns = port.egress_free_ns
        if left_ns < now:
            left_ns = now
        letter.left_ns = left_ns
        port.egress_free_ns = left_ns + tx_ns
        first_bit_ns = left_ns + draw_ns()
        if first_bit_ns < channel.last_first_bit_ns:
            first_bit_ns = channel.last_first_bit_ns
        channel.last_first_bit_ns = letter.first_bit_ns = first_bit_ns
        site = letter.receiver.site
        if not site.foresees:
            self._at(first_bit_ns, self._reach, letter)
            return
        # The port receives messages in the order of their first bits. One that is sent later and
        # gets there sooner puts off those it overtakes: they wait again when their time has come.
        coming = site.coming
        while coming and coming[0].first_bit_ns <= now:
            site.received_ns = coming.popleft().arrived_ns
        if coming:
            last = coming[-1]
            if last.first_bit_ns > first_bit_ns or (
                last.first_bit_ns == first_bit_ns and last.priority > letter.priority
            ):
                self._overtake(letter, site)
                return
        coming.append(letter)
        free_ns = site.ingress_free_ns
        letter.arrived_ns = (free_ns if free_ns > first_bit_ns else first_bit_ns) + tx_ns
        site.ingress_free_ns = letter.arrived_ns
        self._at(letter.arrived_ns, self._arrive, letter)

    def _overtake(self, letter: Letter, site: SiteState) -> None:
        """Put *letter* before those whose first bit comes later, and put off their arrival."""
        coming = site.coming
        order = (letter.first_bit_ns, letter.priority)
        place = len(coming)
        while place and (coming[place - 1].first_bit_ns, coming[place - 1].priority) >= order:
            place -= 1
        free_ns = coming[place - 1].arrived_ns if place else site.received_ns
        coming.insert(place, letter)
        for one in islice(coming, place, None):
            free_ns = max(free_ns, one.first_bit_ns) + one.tx_ns
            one.arrived_ns = free_ns
        site.ingress_free_ns = free_ns
        self._at(letter.arrived_ns, self._arrive, letter)

    def _reach(self, letter: Letter, now: int) -> None:
        """Receive the first bit at a port that cannot foresee it; the last one is the arrival."""
        site = letter.receiver.site
        free_ns = site.ingress_free_ns
        letter.arrived_ns = site.ingress_free_ns = max(free_ns, now) + letter.tx_ns
        self._at(letter.arrived_ns, self._arrive, letter)

    def _arrive(self, letter: Letter, now: int) -> None:
        if letter.arrived_ns > now:  # it was overtaken on its way
            self._at(letter.arrived_ns, self._arrive, letter)
            return
        letter.arrived_ns = now
        node = letter.receiver
        letter.ticket = self._tickets
        self._tickets += 1
        letter.reply = self._submit(
            letter.ticket, node.name, letter.sender.name, letter.port, letter.handle, now
        )
        letter.handle = None
        node.inbox.append(letter)
        if not node.busy and not node.unsent:
            self._start(node, now)

    def _start(self, node: Node, now: int) -> None:
        """Serve the first message in the inbox of *node*, now or when its site has a core.

        A node that is busy serves one already; one with unsent messages waits for room for them.
        """
        node.busy = True
        site = node.site
        if not site.free_cores:
            heappush(site.ready, (now, node.rank, node))
            return
        site.free_cores -= 1
        letter = node.inbox.popleft()
        letter.started_ns = now
        self._free_room(letter, now)
        letter.profile = profile = node.profiles[site.cores - site.free_cores - 1]
        floor = profile.local_ns if letter.sender.site is site else profile.floor_ns
        least_ns = now + floor(letter.rows, letter.nbytes)
        reply = letter.reply
        if reply is None or node.only_emits or reply.failure:
            self._at(least_ns, self._sync, letter)
        else:
            self._at(least_ns + self._extra_ns(letter, reply), self._complete, letter)

    def _free_room(self, letter: Letter, now: int) -> None:
        """Give the room of *letter* in its receiver's inbox, if it takes any, to the next one."""
        node = letter.receiver
        if letter.sender is node or letter.port == FEEDBACK:
            return
        if node.waiting:
            self._admit(node.waiting.popleft(), now)
        else:
            node.credits += 1

    def _admit(self, letter: Letter, now: int) -> None:
        """Transmit a message that waited for room; its sender goes on if none of its others do."""
        self._transmit(letter, now)
        sender = letter.sender
        sender.unsent -= 1
        if not sender.unsent:
            self._set_timers(sender, sender.delayed_timers, now)
            sender.delayed_timers = []
            if sender.inbox:
                # As an event of its own: a chain of blocked senders would otherwise recurse.
                self._at(now, self._resume, letter)

    def _resume(self, letter: Letter, now: int) -> None:
        """Resume the sender of *letter*, its last message that waited for room."""
        node = letter.sender
        if node.inbox and not node.busy and not node.unsent:
            self._start(node, now)

    def _sync(self, letter: Letter, now: int) -> None:
        node = letter.receiver
        if node.only_emits:
            self._unfetched.append(letter)
            self._unfetched_bytes += letter.nbytes
            if (
                letter.reply  # an inline host has it at once, and results are written meanwhile
                or len(self._unfetched) > _UNFETCHED_MESSAGES
                or self._unfetched_bytes > _UNFETCHED_BYTES
            ):
                self._fetch()
            self._complete(letter, now)
            return
        letter.reply = reply = letter.reply or self._reply(letter.ticket)
        if reply.failure:
            self._fail(letter, reply.failure, now)
            return
        extra_ns = self._extra_ns(letter, reply)
        if extra_ns:
            self._at(now + extra_ns, self._complete, letter)
        else:
            self._complete(letter, now)

    def _fail(self, letter: Letter, failure: ActorError, now: int) -> None:
        """Raise what an actor raised that served *letter*."""
        raise failure

    def _fetch(self) -> None:
        """Collect what actors that only emit have emitted meanwhile, in virtual order.

        Raise :exc:`ActorError` when one asked for something else, or raised it.
        """
        while self._unfetched:
            letter = self._unfetched.popleft()
            reply = letter.reply or self._reply(letter.ticket)
            if reply.failure:
                raise reply.failure
            if reply.sends or reply.timers or reply.steps or reply.work != NO_WORK:
                raise ActorError(
                    f"{letter.receiver.name} only emits, as its topology says, but it sent, set a "
                    "timer or charged work"
                )
            self.collect(reply.emitted)
        self._unfetched_bytes = 0

    def _extra_ns(self, letter: Letter, reply: Reply) -> int:
        """Return what a message costs on top of the floor, given what came of it."""
        profile = letter.profile
        if reply.steps:
            extra_ns = profile.steps_ns(reply.steps, reply.work)
            for step, work in reply.steps:
                if step.name not in profile.structures and profile.structures and work != NO_WORK:
                    self._unpriced[step.name] = None
        else:
            extra_ns = 0 if reply.work is NO_WORK else profile.work_ns(reply.work)
        if extra_ns and (not 0 < extra_ns <= _LONGEST_NS or isinstance(extra_ns, float)):
            raise ActorError(
                f"{letter.receiver.name} charged work of {extra_ns} ns in all: the counters of "
                "Work are integers, 0 or more, and a message takes a day at the most"
            )
        if profile.charges_senders:
            extra_ns += self._sending_ns(letter.receiver, reply.sends)
        return extra_ns

    def _sending_ns(self, node: Node, sends: list[Sent]) -> int:
        rows = sum(sent.rows for sent in sends) if node.is_source else 0
        leaving = [
            sent.nbytes
            for sent in sends
            for name in sent.receivers
            if self._nodes[name].site is not node.site
        ]
        return node.profiles[0].sent_ns(rows, len(leaving), sum(leaving))

    def _complete(self, letter: Letter, now: int) -> None:
        node, sender = letter.receiver, letter.sender
        self._end_ns = now
        if sender is not node:
            self._served += 1
        first, last = letter.span
        self._record(pack_row(
            sender.rank, node.rank,
            # A timer's port ends in its name, and so has no code of its own.
            self._port_code.get(letter.port, self._timer_code),
            letter.seq, letter.nbytes, letter.rows, first, last,
            letter.sent_ns, letter.left_ns, letter.arrived_ns, letter.started_ns, now,
        ))  # fmt: skip
        if node.only_emits:
            reply = _NO_REPLY
        else:
            reply, letter.reply = letter.reply or _NO_REPLY, None
        if reply.emitted:
            self.collect(reply.emitted)
        for sent in reply.sends:
            for name in sent.receivers:
                channel = node.channels[name]
                message = Letter(node, channel.receiver, sent.port, now, sent)
                message.channel = channel
                self._post(message, now)
            self._tuples += sent.rows if node.is_source else 0
        if node.unsent:
            # A blocked source must not run on: its clock waits with it.
            node.delayed_timers += reply.timers
        elif reply.timers:
            self._set_timers(node, reply.timers, now)
        node.busy = False
        site = node.site
        site.free_cores += 1
        if site.ready:
            self._start(heappop(site.ready)[2], now)
        if node.inbox and not node.unsent:
            self._start(node, now)

    def _set_timers(self, node: Node, timers: list[tuple[int, str]], now: int) -> None:
        for at_ns, name in timers:
            self._set_timer(node, TIMER + name, at_ns, now)

    def _set_timer(self, node: Node, port: str, at_ns: int, now: int) -> None:
        """Set a timer of *node* for *at_ns*, or for now if that is past."""
        letter = Letter(node, node, port, now)
        self._at(at_ns if at_ns > now else now, self._arrive, letter)
