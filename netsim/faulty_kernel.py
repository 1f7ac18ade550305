"""The kernel over links and sites with faults.

A message that crosses a link with faults is a frame. It occupies the sender's port, and then it may
be lost, delayed, overtaken or doubled; what gets there occupies the receiver's port. With the
reliable transport (`netsim.connection`) each pair of actors has a connection: acknowledgements and
frames that are sent again travel as frames too, over the same ports and faults, and the message
arrives once, in its channel's order. With transport ``none`` it arrives as its frames do, or never;
then its room in the inbox is free again when it should have arrived, and a second copy that finds
no room is dropped.

An actor that pauses has its services interrupted, while its messages still arrive and are
acknowledged, as by an operating system. Other links and actors are as in the plain kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from heapq import heappop
from typing import Any, Literal
from zlib import crc32

import numpy as np

from actors.protocol import FEEDBACK, ActorError, Reply, channels
from netsim.connection import ACKNOWLEDGEMENT_BYTES, Acknowledgement, Receiving, Sending
from netsim.faults import SOUND, ActorFaults, Faults, LinkFaults
from netsim.kernel import ChannelState, Kernel, Letter, Node, SiteState
from netsim.network import BYTE_NS, link_between
from netsim.outcome import Injected, Outcome

Transport = Literal["reliable", "none"]

_CONNECTION_BITS = 40
_FIRST_PRIORITY = -(1 << 62)
"""Frames and timeouts have priorities of their own, before all messages of the same time: by
connection, then in the order in which the connection made them."""


@dataclass(slots=True, eq=False)
class _Way:
    """From one site's port to another's, with what goes wrong in between."""

    sender: SiteState
    receiver: SiteState
    bandwidth_bps: int
    draw_ns: Callable[[], int]
    faults: LinkFaults | None
    rng: np.random.Generator
    last_first_bit_ns: int = 0


@dataclass(slots=True, eq=False)
class _Frame:
    """What crosses a link: a message, or an acknowledgement of one."""

    priority: int
    connection: _Connection
    way: _Way
    letter: Letter | None
    number: int = 0
    acknowledges: Acknowledgement | None = None
    tx_ns: int = 0
    left_ns: int = 0
    """When its last bit has left."""


@dataclass(slots=True, eq=False)
class _Connection:
    """A channel over a link with faults: both of its ends, and the ways there and back."""

    there: _Way
    back: _Way
    rtt_ns: int
    """The round trip as its handshake measures it."""
    sending: Sending[Letter]
    receiving: Receiving[Letter]
    next_priority: int
    alarm_ns: int | None = None
    """When it is to be woken next."""

    @property
    def priority(self) -> int:
        """A priority that no other event has."""
        self.next_priority += 1
        return self.next_priority


@dataclass(slots=True)
class _WrongClock:
    """The clock of an actor that is wrong: it begins at 0, and does not run backwards."""

    faults: ActorFaults
    latest_ns: int = 0

    def read(self, now: int) -> int:
        """Return what it shows at virtual time *now*."""
        self.latest_ns = max(self.latest_ns, now + self.faults.offset_ns(now))
        return self.latest_ns


@dataclass(kw_only=True, eq=False)
class FaultyKernel(Kernel):
    """Runs one wired system over a network with faults."""

    faults: Faults
    """What goes wrong."""
    transport: Transport = "reliable"
    """What carries messages over links that have faults."""

    def __post_init__(self) -> None:
        self._reliable = self.transport == "reliable"
        if not self._reliable:
            # What fails goes on as failed from that moment; a later fetch would be too late.
            self.only_emit = ()
        super().__post_init__()
        self._injected = Injected()
        self._counts: Counter[str] = self._injected.counts
        self._lost = self._doubled = 0
        self._connections: dict[ChannelState, _Connection] = {}
        for sender, receiver in channels(self.wiring):
            self._connect(sender, receiver)
        of_actors = {name: self.faults.on_actor(name) for name in self.wiring}
        self._of_actor = {name: found for name, found in of_actors.items() if found}
        self._clocks = {
            name: _WrongClock(found) for name, found in self._of_actor.items() if found.skews
        }
        self._copies: set[Letter] = set()
        self._host_submit = self._submit
        if self._clocks or not self._reliable:
            self._submit = self._submit_to_faulty

    def _connect(self, sender: str, receiver: str) -> None:
        """Prepare the connection between two actors, if their link has faults."""
        here, there, seed = self.placement[sender], self.placement[receiver], self.seed
        link = link_between(self.network, here, there)
        onward, backward = self.faults.on_link(here, there), self.faults.on_link(there, here)
        if link is None or not (onward or backward):
            return
        ends = self._nodes[sender], self._nodes[receiver]
        channel = ends[0].channels[receiver]
        assert channel.draw_ns is not None
        name = crc32(f"{sender}>{receiver}".encode())
        # Sites on such a link see their frames come one by one, which may overtake each other.
        for end in ends:
            end.site.foresees = False
        onward_way = _Way(
            ends[0].site, ends[1].site, link.bandwidth_bps, channel.draw_ns, onward,
            np.random.default_rng([seed, name, 1]),
        )  # fmt: skip
        backward_way = _Way(
            ends[1].site, ends[0].site, link.bandwidth_bps, link.latency.sampler([seed, name, 2]),
            backward, np.random.default_rng([seed, name, 3]),
        )  # fmt: skip
        rtt_ns = 2 * link.latency.mean_ns
        self._connections[channel] = _Connection(
            onward_way,
            backward_way,
            rtt_ns,
            Sending(rtt_ns),
            Receiving(),
            _FIRST_PRIORITY + (len(self._connections) << _CONNECTION_BITS),
        )

    def _reconnect(self) -> None:
        """Begin all connections anew: nothing of them is on its way any more."""
        self._copies.clear()
        for connection in self._connections.values():
            connection.sending = Sending(connection.rtt_ns)
            connection.receiving = Receiving()
            connection.alarm_ns = None
            connection.there.last_first_bit_ns = connection.back.last_first_bit_ns = 0

    def _outcome(self) -> Outcome:
        outcome = super()._outcome()
        return replace(
            outcome,
            lost=self._lost,
            doubled=self._doubled,
            injected=self._injected,
        )

    def _under_way(self) -> int:
        return super()._under_way() - self._lost + self._doubled

    # Links.

    def _transmit(self, letter: Letter, now: int) -> None:
        connection = self._connections.get(letter.channel)
        if connection is None:
            super()._transmit(letter, now)
            return
        frame = _Frame(connection.priority, connection, connection.there, letter)
        if self._reliable:
            frame.number = connection.sending.next
            self._emit_numbered(frame, letter, now)
        else:
            self._emit(frame, letter.nbytes, now)
        letter.left_ns = frame.left_ns - frame.tx_ns

    def _emit_numbered(self, frame: _Frame, letter: Letter, now: int) -> None:
        self._emit(frame, letter.nbytes, now)
        frame.connection.sending.sent(frame.number, letter, frame.left_ns)
        self._set_alarm(frame.connection)

    def _emit(self, frame: _Frame, nbytes: int, now: int) -> None:
        """Send a frame as soon as its port is free, subject to the faults at that time."""
        way, counts = frame.way, self._counts
        begins_ns = max(now, way.sender.egress_free_ns)
        state = way.faults.at(begins_ns) if way.faults else SOUND
        bandwidth_bps = way.bandwidth_bps
        if state.bandwidth != 1:
            bandwidth_bps = max(1, int(bandwidth_bps * state.bandwidth))
            counts["bandwidth"] += 1
        frame.tx_ns = nbytes * BYTE_NS // bandwidth_bps
        frame.left_ns = way.sender.egress_free_ns = begins_ns + frame.tx_ns
        first_bit_ns = begins_ns + way.draw_ns() + state.delay_ns
        if state.delay_ns:
            counts["delay"] += 1
        if state.cut or (state.loss and way.rng.random() < state.loss):
            counts["partition" if state.cut else "loss"] += 1
            if frame.letter and self._is_bare(frame.letter):
                self._clock.at(first_bit_ns, self._give_up, frame)
            return
        if state.reorder and way.rng.random() < state.reorder:
            counts["reorder"] += 1
            first_bit_ns += int(way.rng.integers(state.reorder_ns + 1))
        else:
            first_bit_ns = max(first_bit_ns, way.last_first_bit_ns)
            way.last_first_bit_ns = first_bit_ns
        self._clock.at(first_bit_ns, self._reach_port, frame)
        if state.duplicate and way.rng.random() < state.duplicate:
            counts["duplicate"] += 1
            again = replace(frame, priority=frame.connection.priority)
            if frame.letter and self._is_bare(frame.letter):
                again.letter = copy(frame.letter)
                again.letter.left_ns = begins_ns
                self._copies.add(again.letter)
            self._clock.at(begins_ns + way.draw_ns() + state.delay_ns, self._reach_port, again)

    def _is_bare(self, letter: Letter) -> bool:
        """Return whether a message is lost, or comes twice, where its frame does."""
        return not self._reliable

    def _reach_port(self, frame: _Frame, now: int) -> None:
        site = frame.way.receiver
        site.ingress_free_ns = max(site.ingress_free_ns, now) + frame.tx_ns
        self._clock.at(site.ingress_free_ns, self._receive, frame)

    def _receive(self, frame: _Frame, now: int) -> None:
        """Take a frame whose last bit has come."""
        connection, letter = frame.connection, frame.letter
        if letter is None:
            assert frame.acknowledges is not None
            number = connection.sending.acknowledge(frame.acknowledges, now)
            self._send_again(connection, number, now)
        elif self._reliable:
            ready, answer = connection.receiving.receive(frame.number, letter, frame.left_ns)
            reply = _Frame(connection.priority, connection, connection.back, None)
            reply.acknowledges = answer
            self._injected.acknowledgements += 1
            self._count_overhead(ACKNOWLEDGEMENT_BYTES)
            self._emit(reply, ACKNOWLEDGEMENT_BYTES, now)
            for one in ready:
                one.arrived_ns = now
                self._arrive(one, now)
        elif self._takes(letter):
            letter.arrived_ns = now
            self._arrive(letter, now)

    def _takes(self, letter: Letter) -> bool:
        """Return whether what came is taken: a second copy only where there is room for it."""
        if letter not in self._copies:
            return True
        self._copies.discard(letter)
        if letter.port != FEEDBACK:  # it needs none
            if not letter.receiver.credits:
                return False
            letter.receiver.credits -= 1
        self._doubled += 1
        letter.channel.due += 1
        return True

    def _send_again(self, connection: _Connection, number: int | None, now: int) -> None:
        if number is not None:
            letter = connection.sending.item(number)
            self._injected.retransmissions += 1
            self._count_overhead(letter.nbytes)
            frame = _Frame(connection.priority, connection, connection.there, letter, number)
            self._emit_numbered(frame, letter, now)
        else:
            self._set_alarm(connection)

    def _count_overhead(self, nbytes: int) -> None:
        self._injected.overhead_bytes += nbytes
        self._nbytes += nbytes

    def _set_alarm(self, connection: _Connection) -> None:
        """Set an alarm for the sending end's deadline, unless an earlier one is set."""
        deadline_ns, alarm_ns = connection.sending.deadline_ns, connection.alarm_ns
        if deadline_ns is not None and (alarm_ns is None or deadline_ns < alarm_ns):
            connection.alarm_ns = deadline_ns
            self._clock.at(deadline_ns, self._wake, connection)

    def _wake(self, connection: _Connection, now: int) -> None:
        if connection.alarm_ns != now:  # an earlier alarm has taken its place
            return
        connection.alarm_ns = None
        number = connection.sending.expire(now)
        if number is not None:
            self._injected.timeouts += 1
        self._send_again(connection, number, now)

    def _give_up(self, frame: _Frame, now: int) -> None:
        """Free the room of a message that should have arrived, and never will."""
        assert frame.letter is not None
        self._lost += 1
        frame.letter.channel.due -= 1
        self._free_room(frame.letter, now)

    # Actors.

    def _submit_to_faulty(
        self, ticket: int, actor: str, sender: str, port: str, handle: Any, now: int
    ) -> Reply | None:
        """Submit a message by the actor's clock; one that has failed for good does nothing."""
        if actor in self._injected.failed:
            return Reply()
        clock = self._clocks.get(actor)
        if clock:
            local_ns = clock.read(now)
            self._counts["skew"] += local_ns != now
            now = local_ns
        return self._host_submit(ticket, actor, sender, port, handle, now)

    def _fail(self, letter: Letter, failure: ActorError, now: int) -> None:
        """Let an actor that fails where input may be damaged do nothing from then on."""
        if self._reliable:
            super()._fail(letter, failure, now)
            return
        node = letter.receiver
        self._injected.failed[node.name] = str(failure)
        for one in (letter, *node.inbox):
            one.reply = Reply()
        self._complete(letter, now)

    def _set_timers(self, node: Node, timers: list[tuple[int, str]], now: int) -> None:
        clock = self._clocks.get(node.name)
        if clock:
            ahead_ns = clock.read(now) - now
            timers = [(at_ns - ahead_ns, name) for at_ns, name in timers]
        super()._set_timers(node, timers, now)

    def _arrive(self, letter: Letter, now: int) -> None:
        """Deliver *letter*, unless it is the timer of an actor that stalls."""
        node = letter.receiver
        faults = self._of_actor.get(node.name)
        if faults and letter.sender is node:
            again_ns = faults.stalled_until(now)
            if again_ns > now:
                self._counts["stall"] += 1
                self._at(again_ns, self._arrive, letter)
                return
        self._deliver(letter, now)

    def _deliver(self, letter: Letter, now: int) -> None:
        super()._arrive(letter, now)

    def _start(self, node: Node, now: int) -> None:
        site = node.site
        while (again_ns := self._paused_until(node, now)) > now:
            node.busy = True
            self._counts["pause"] += 1
            self._at(again_ns, self._end_pause, node.inbox[0])
            # It may have come from the head of the queue for a core, which is the next one's now.
            if not (site.free_cores and site.ready):
                return
            node = heappop(site.ready)[2]
        super()._start(node, now)

    def _paused_until(self, node: Node, now: int) -> int:
        faults = self._of_actor.get(node.name)
        return faults.paused_until(now) if faults else now

    def _end_pause(self, letter: Letter, now: int) -> None:
        """Serve what has waited for the end of a pause."""
        self._start(letter.receiver, now)

    def _complete(self, letter: Letter, now: int) -> None:
        """Complete a service, unless a fault prolongs it."""
        faults = self._of_actor.get(letter.receiver.name)
        if faults and faults.stretches:
            done_ns = faults.done_ns(letter.started_ns, now - letter.started_ns)
            if done_ns > now:
                slowed = faults.slowed(letter.started_ns) > 1
                self._counts["slow" if slowed else "pause"] += 1
                self._at(done_ns, self._finish, letter)
                return
        self._finish(letter, now)

    def _finish(self, letter: Letter, now: int) -> None:
        super()._complete(letter, now)
