"""The kernel: what happens to a message, through inboxes, cores and the network, in virtual time.

Three rules make a run a function of its seed alone, wherever the actors live.

1. *Arrival order.* An actor's state changes in the order in which messages and timers arrive at it.
   Service time delays what it sends, not its state; so a message goes to the host as soon as it
   arrives.
2. *Sync point.* A message that starts service at t is waited for at t + floor, where floor is what
   such a message costs at the least. What overlaps in virtual time runs in parallel in real
   processes, and no order depends on real time.
3. *One order.* Things that meet at one virtual time are taken by (sender's rank, sender's sequence
   number), never by when a reply happened to come.

Inboxes are bounded. A sender whose receiver has no room waits, and starts no further service until
its message has left (credit-based flow control), so pressure travels back to the source. Credits
themselves travel in no time, and cost no bytes. Answers (`FEEDBACK`) need no room.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any

import networkx as nx

from actors.protocol import FEEDBACK, START, TIMER, Host, Reply, Sent, Wiring
from joins.work import NO_WORK
from netsim.cost import CostProfile
from netsim.network import NetworkError
from netsim.outcome import EndlessRunError, Outcome, Progress
from netsim.parts import Clock, Letter, Moment, Node, Site
from netsim.trace import Trace, trace_names
from netsim.wires import Wires

INBOX_MESSAGES = 16
"""Default room of an inbox, as deep as an engine's exchange buffers; 1 is the least."""

_EVENTS_BETWEEN_REPORTS = 4_096

_UNFETCHED_MESSAGES = 1_024
_UNFETCHED_BYTES = 2**24
"""Replies not fetched from the host at most, and bytes of the messages they answer: they take
memory of the actors' processes."""


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
        self._clock = Clock()
        self._at = self._clock.at
        self._now = 0  # of the moment that is happening
        self._host = host
        self._trace = trace
        self._collect = collect
        self._deferred = _DeferredReplies(host, collect)
        self._tickets = 0
        self._tuples = self._messages = self._nbytes = 0
        self._served = self._end_ns = 0

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
        wires = Wires(self._clock, self._nodes, wiring, placement, network, seed, self._arrive)
        self._transmit = wires.transmit
        self._port_code = {
            name: code for code, name in enumerate(trace_names(wiring)) if code >= len(wiring)
        }
        self._timer_code = self._port_code[TIMER]

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
                self._at(0, self._arrive, Letter(node, node, START, 0))
        while self._clock.advance(_EVENTS_BETWEEN_REPORTS):
            self._trace.flush_if_full()
            if progress:
                progress(self._progress())
            if until_ns is not None and self._now > until_ns:
                raise EndlessRunError(
                    f"the run has not ended after {until_ns / 1e9:g} virtual seconds"
                )
        self._deferred.fetch()
        if progress:
            progress(self._progress())
        return Outcome(
            virtual_ns=self._end_ns,
            tuples=self._tuples,
            messages=self._messages,
            nbytes=self._nbytes,
            in_flight=self._messages - self._served,
            digest=self._trace.close(),
        )

    def _progress(self) -> Progress:
        return Progress(virtual_ns=self._now, tuples=self._tuples, messages=self._messages)

    # A message's life, in order: post, (credit), transmit, arrive, start, sync, complete.

    def _post(self, letter: Letter) -> None:
        self._messages += 1
        receiver = letter.receiver
        if letter.sender.site is not receiver.site:
            self._nbytes += letter.nbytes
        if letter.port == FEEDBACK:
            self._transmit(letter, self._now)
        elif receiver.credits:
            receiver.credits -= 1
            self._transmit(letter, self._now)
        else:
            receiver.waiting.append(letter)
            letter.sender.unsent += 1

    def _arrive(self, moment: Moment) -> None:
        letter = moment.letter
        self._now = now = moment.at_ns
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
        if node.site.claim_core(node, self._now):
            self._start(node)

    def _start(self, node: Node) -> None:
        letter = node.inbox.popleft()
        now = self._now
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
        self._transmit(letter, self._now)
        sender = letter.sender
        sender.unsent -= 1
        if not sender.unsent:
            self._set_timers(sender, sender.delayed_timers)
            sender.delayed_timers = []
            # As an event of its own: a chain of blocked senders would otherwise recurse.
            self._at(self._now, self._resume, letter)

    def _resume(self, moment: Moment) -> None:
        self._now = moment.at_ns
        sender = moment.letter.sender
        if sender.inbox and not sender.busy and not sender.unsent:
            self._claim_core(sender)

    def _sync(self, moment: Moment) -> None:
        self._now = moment.at_ns
        letter = moment.letter
        if letter.receiver.only_emits:
            self._complete_unasked(letter)
            return
        letter.reply = reply = self._host.reply(letter.ticket)
        profile = letter.receiver.profile
        extra_ns = profile.work_ns(reply.work)
        if profile.charges_senders:
            extra_ns += self._sending_ns(letter.receiver, reply.sends)
        if extra_ns:
            self._at(self._now + extra_ns, self._complete, letter)
        else:
            self._complete(moment)

    def _sending_ns(self, node: Node, sends: list[Sent]) -> int:
        rows = sum(sent.rows for sent in sends) if node.is_source else 0
        leaving = [
            sent.nbytes
            for sent in sends
            for name in sent.receivers
            if self._nodes[name].site is not node.site
        ]
        return node.profile.sent_ns(rows, len(leaving), sum(leaving))

    def _complete_unasked(self, letter: Letter) -> None:
        self._record(letter)
        self._deferred.defer(letter)
        self._release_core(letter.receiver)

    def _complete(self, moment: Moment) -> None:
        letter = moment.letter
        node = letter.receiver
        reply: Reply = letter.reply
        self._now = now = moment.at_ns
        self._record(letter)
        if reply.emitted:
            self._collect(reply.emitted)
        for sent in reply.sends:
            content = (sent.port, now, sent.handle, sent.nbytes, sent.rows, sent.span)
            for name in sent.receivers:
                self._post(Letter(node, self._nodes[name], *content))
            if node.is_source:
                self._tuples += sent.rows
        if node.unsent:
            # A blocked source must not run on: its clock waits with it.
            node.delayed_timers += reply.timers
        else:
            self._set_timers(node, reply.timers)
        self._release_core(node)

    def _set_timers(self, node: Node, timers: list[tuple[int, str]]) -> None:
        now = self._now
        for at_ns, name in timers:
            letter = Letter(node, node, TIMER + name, now)
            self._at(at_ns if at_ns > now else now, self._arrive, letter)

    def _release_core(self, node: Node) -> None:
        node.busy = False
        waited = node.site.release_core()
        if waited:
            self._start(waited)
        if node.inbox and not node.unsent:
            self._claim_core(node)

    def _record(self, letter: Letter) -> None:
        self._end_ns = self._now
        if letter.sender is not letter.receiver:
            self._served += 1
        # A timer's port ends in its name, and so has no code of its own.
        port = self._port_code.get(letter.port, self._timer_code)
        self._trace.record(letter.trace_row(port, self._end_ns))


class _DeferredReplies:
    """Replies of actors that only emit: nothing waits for them, so they are fetched together.

    Parameters
    ----------
    host
        Stores the replies.
    collect
        Called with what an actor emitted.
    """

    def __init__(self, host: Host, collect: Callable[[list[Any]], None]) -> None:
        self._host = host
        self._collect = collect
        self._tickets: deque[int] = deque()
        self._nbytes = 0

    def defer(self, letter: Letter) -> None:
        """Fetch the reply to *letter* later."""
        self._tickets.append(letter.ticket)
        self._nbytes += letter.nbytes
        if len(self._tickets) > _UNFETCHED_MESSAGES or self._nbytes > _UNFETCHED_BYTES:
            self.fetch()

    def fetch(self) -> None:
        """Collect what was emitted meanwhile, in virtual order.

        Raise :exc:`ValueError` when an actor asked for something else.
        """
        while self._tickets:
            reply = self._host.reply(self._tickets.popleft())
            if reply.sends or reply.timers or reply.work != NO_WORK:
                raise ValueError("an actor declared to only emit asked for something else")
            self._collect(reply.emitted)
        self._nbytes = 0
