"""Crashes in virtual time, and recovery from them: coloured snapshots and replay.

A snapshot is a consistent cut through all actors: a state of each, and the messages that were sent
before the sender's part of it and received after the receiver's. It is taken while the run goes on,
after Chandy and Lamport ("Distributed snapshots", 1985). Sources begin. An actor stores its state
when the first *marker* reaches it, and sends markers down its channels, which no message overtakes.
What still comes down a channel before its marker is part of the snapshot, and as soon as every
channel's marker has come the snapshot is complete. No actor waits for another, as it would for
aligned barriers such as Flink's: those block where actors answer those that send to them, and
several systems have such cycles.

Each message has the number of the sender's latest snapshot, its *epoch* (a colour, after Lai and
Yang, "On distributed snapshots", 1987): an actor's state changes when a message arrives, and what
it then sends leaves when the service is done. So the cut is made at an arrival, and what the
messages before it still send, or emit, belongs before the cut; the markers leave behind that.
Timers are part of the state: those that have not fired when the markers leave, and those of the
earlier epoch that fired since the cut.

After a crash all actors go back to the last complete snapshot: results since then are not committed
(`actors.results`), messages under way are dropped, the messages of the snapshot are sent once
more, and sources go on from the position that is their state. With the guarantee ``none`` there are
no snapshots: a crashed actor begins anew, and what was sent to it meanwhile is lost.

Storing or restoring a state costs an actor service time, by the byte; markers are sent over the
network. Finding out that an actor is gone, and that all have stored their part, costs nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sized
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop
from itertools import chain
from typing import Any, Literal, Protocol

import networkx as nx

from actors.protocol import (
    HEADER_BYTES,
    NO_SPAN,
    START,
    ActorError,
    Reply,
    RestartingHost,
    Sent,
    channels,
)
from netsim.faults import FOREVER_NS
from netsim.faulty_kernel import FaultyKernel
from netsim.kernel import Letter, Node
from netsim.network import BYTE_NS, NetworkError
from netsim.outcome import Outcome, Recovered

Guarantee = Literal["exactly_once", "at_least_once", "none"]

INTERVAL_NS = 100_000_000
"""Default time from one snapshot to the next."""
STORAGE_BPS = 8 * 10**9
"""Default speed at which states are stored and read: a gigabyte a second, as a good disk's."""

_MOST_ROLLBACKS = 100
"""To one snapshot: after so many the next will not complete either."""

_MARKER, _STORED, _RESTORED = "\0marker", "\0stored", "\0restored"
"""Ports of the kernel's own: no actor has one of such a name."""


class Results(Protocol):
    """Takes results by epoch: the number of the snapshot that they were emitted behind."""

    def add(self, epoch: int, results: list[Any], now: int) -> None:
        """Take *results* that were emitted at *now*."""

    def commit(self, epoch: int | None, now: int) -> None:
        """Hand on what was emitted before the snapshot number *epoch*; None: everything."""

    def discard(self, epoch: int) -> None:
        """Forget what was emitted behind the snapshot number *epoch*, unless it was handed on."""


@dataclass(slots=True)
class _Snapshot:
    """A snapshot, while it is taken and afterwards; without states it is the beginning."""

    epoch: int
    """Its number: of messages that are sent after it."""
    missing: int = 0
    """Actors and channels whose part is not there yet."""
    marked: set[tuple[int, int]] = field(default_factory=set)
    """Channels, by the ranks of sender and receiver, whose marker has come."""
    states: dict[str, Sized] = field(default_factory=dict)
    """Actor name to its state."""
    letters: list[tuple[Node, Node, Sent]] = field(default_factory=list)
    """Sender, receiver and content of each message that was under way, in the order of arrival."""
    timers: list[tuple[Node, str, int]] = field(default_factory=list)
    """Whose, port, and when it fires."""


@dataclass(slots=True)
class _Part:
    """An actor's part in snapshots and crashes."""

    epoch: int = 0
    """Number of the latest snapshot that has its state."""
    sends: int = 0
    """Epoch of what it sends: of the state that the served message changed."""
    marked: bool = True
    """Whether its markers for the latest snapshot have left."""
    timers: dict[Letter, int] = field(default_factory=dict)
    """Those that have not fired, and when they do."""
    down_until_ns: int = 0
    """When it receives again after a crash; with snapshots, not before all actors go back."""
    starts_ns: int = 0
    """When it can start again after a crash."""
    started_ns: int = 0
    """When it did: services that began earlier were interrupted."""


@dataclass(slots=True)
class _Pause(Reply):
    """What storing or restoring a state leads to: nothing, later."""

    pause_ns: int = 0


class _Control(Letter):
    """An event that is no message: a snapshot is due, an actor crashes or starts again."""

    __slots__ = ("end_ns",)

    def __init__(self, node: Node, end_ns: int = 0) -> None:
        self.receiver = node
        self.end_ns = end_ns
        self.priority = -1  # before the messages of its time


@dataclass(kw_only=True, eq=False)
class RecoveringKernel(FaultyKernel):
    """A kernel with crashes and all other faults.

    What a link or a pause does to a message comes first: recovery sees those that arrive.
    """

    guarantee: Guarantee
    """``exactly_once``: results are committed when the snapshot behind them is complete.
    ``at_least_once``: results are passed on at once; after a crash some come again.
    ``none``: there are no snapshots, and a crashed actor begins anew."""
    interval_ns: int
    """Virtual time from one snapshot to the next; one that is not complete puts off the next."""
    storage_bps: int
    """How fast an actor's state is stored and restored, bits per virtual second."""
    host: RestartingHost
    results: Results
    """Takes what actors emit."""
    collect: Callable[[list[Any]], None] = field(init=False)

    def __post_init__(self) -> None:
        # Results of actors that only emit are needed by epoch, so they are fetched at once.
        self.only_emit = ()
        self.collect = self._gather
        super().__post_init__()
        self._parts = [_Part() for _ in self._nodes]
        self._taking: _Snapshot | None = None
        self._put_off: _Control | None = None
        """A snapshot that is not due before something has changed."""
        self._last = _Snapshot(0)
        self._fed: Counter[int] = Counter()
        self._gathering = (0, 0)
        self._idle_controls = self._rollbacks = self._dropped = 0
        self._worked = self._worked_before_last = 0
        """Services since the run began, and those before the last snapshot: without any since, it
        is still that of the present."""
        self._tally: Counter[str] = Counter()
        sources = [node.name for node in self._nodes.values() if node.is_source]
        graph = nx.DiGraph(channels(self.wiring))
        graph.add_nodes_from(sources)
        layers = nx.bfs_layers(graph, sources)
        self._reached = [self._nodes[name] for name in chain.from_iterable(layers)]
        """The actors that sources feed, directly or not; the sources first."""
        for node in self._nodes.values():
            # A service that a crash interrupts has its core to its end: more cores of a site may
            # be at work than it has actors.
            more = node.site.cores - len(node.profiles)
            node.profiles += node.profiles[-1:] * more

    def _outcome(self) -> Outcome:
        """Commit the results that are left, and return how the run ended."""
        outcome = super()._outcome()
        self.results.commit(None, outcome.virtual_ns)
        names = ("crashes", "restarts", "snapshots", "snapshot_bytes")
        counts = {name: self._tally[name] for name in names}
        recovered = Recovered(
            guarantee=self.guarantee,
            # Nothing else leaves a snapshot incomplete, but actors that wait for room for ever.
            marker_lost=self._taking is not None and not outcome.standstill,
            **counts,
        )
        return replace(
            outcome,
            lost=outcome.lost + self._dropped,
            recovered=recovered,
        )

    def _under_way(self) -> int:
        return super()._under_way() - self._dropped

    def _begin(self) -> None:
        sources = [node for node in self._nodes.values() if node.is_source]
        self._last.timers = [(node, START, 0) for node in sources]
        for node, port, at_ns in self._last.timers:
            self._set_timer(node, port, at_ns, 0)
        if self.guarantee != "none":
            self._put_off = _Control(sources[0])
            self._await_snapshot(0)
        for node in self._nodes.values():
            self._await_crash(node, 0)

    # Additions to the handling of messages.

    def _post(self, letter: Letter, now: int) -> None:
        letter.epoch = self._parts[letter.sender.rank].sends
        super()._post(letter, now)

    def _set_timer(self, node: Node, port: str, at_ns: int, now: int) -> None:
        part = self._parts[node.rank]
        letter = Letter(node, node, port, now)
        letter.epoch = part.sends
        part.timers[letter] = at_ns = max(at_ns, now)
        self._at(at_ns, self._arrive, letter)

    def _deliver(self, letter: Letter, now: int) -> None:
        if letter.arrived_ns > now:  # it was overtaken on its way
            super()._deliver(letter, now)
            return
        node = letter.receiver
        part = self._parts[node.rank]
        down = part.down_until_ns > now
        if letter.port == _MARKER:
            if not down:
                self._receive_marker(letter, now)
            return
        if down:
            self._lose(letter, now)
            return
        if letter.sender is node and letter not in part.timers:
            return  # it was set before the actor crashed
        self._cut(letter)
        super()._deliver(letter, now)

    def _cut(self, letter: Letter) -> None:
        """Make a message, sent before the cut and received after it, part of the snapshot."""
        node, part = letter.receiver, self._parts[letter.receiver.rank]
        before = letter.epoch < part.epoch and self._taking is not None
        if letter.sender is node:
            at_ns = part.timers.pop(letter)
            if before and not part.marked:
                self._snapshot.timers.append((node, letter.port, at_ns))
        elif before:
            self._log(letter)
        letter.epoch = part.epoch

    def _finish(self, letter: Letter, now: int) -> None:
        node = letter.receiver
        if self._interrupted(letter, now):
            self._lose_served(letter, now)
            return
        self._parts[node.rank].sends = letter.epoch
        self._gathering = letter.epoch, now
        if letter.sender is not node:
            letter.channel.served += 1
        fed = self._tuples
        super()._finish(letter, now)
        self._fed[letter.epoch] += self._tuples - fed
        if letter.port == _STORED:
            self._send_markers(node, now)
        else:
            self._worked += 1
            self._await_snapshot(now)

    def _fail(self, letter: Letter, failure: ActorError, now: int) -> None:
        """End an actor that may have lost what it needs in a crash.

        One that has crashed and begun anew meanwhile goes on: the failure was of the one before.
        """
        if self.guarantee == "none" and self._interrupted(letter, now):
            self._lose_served(letter, now)
        elif self.guarantee == "none" and self._reliable and self._tally["crashes"]:
            self._stop(letter.receiver, now, until_ns=FOREVER_NS)
            self._lose_served(letter, now)
            self._injected.failed[letter.receiver.name] = str(failure)
        else:
            super()._fail(letter, failure, now)

    def _is_bare(self, letter: Letter) -> bool:
        # A marker is no message: it has no room in an inbox, and nobody counts it.
        return super()._is_bare(letter) and letter.port != _MARKER

    def _end_pause(self, letter: Letter, now: int) -> None:
        inbox = letter.receiver.inbox
        if inbox and inbox[0] is letter:  # else a crash has come in between
            super()._end_pause(letter, now)

    def _extra_ns(self, letter: Letter, reply: Reply) -> int:
        return reply.pause_ns if isinstance(reply, _Pause) else super()._extra_ns(letter, reply)

    def _gather(self, results: list[Any]) -> None:
        epoch, now = self._gathering
        self.results.add(epoch, results, now)

    # Snapshots.

    @property
    def _snapshot(self) -> _Snapshot:
        """The snapshot being taken; there is one while an actor is ahead of others."""
        assert self._taking
        return self._taking

    def _await_snapshot(self, now: int) -> None:
        """Schedule a postponed snapshot for the next interval."""
        if control := self._put_off:
            self._put_off = None
            began_ns = now // self.interval_ns * self.interval_ns
            self._await(control, began_ns + self.interval_ns, self._take_snapshot)

    def _take_snapshot(self, control: _Control, now: int) -> None:
        """Begin a snapshot at the sources, unless nothing has changed since the last.

        Nor while one is being taken or an actor is down. That nothing has changed ends a run: the
        transport's timeouts outlast the markers that it carried.
        """
        self._put_off = control
        if self._taking or any(part.down_until_ns > now for part in self._parts):
            return
        if self._worked == self._worked_before_last:
            return
        self._await_snapshot(now)
        self._worked_before_last = self._worked
        parts = len(self._reached) + sum(len(node.channels) for node in self._reached)
        self._taking = _Snapshot(self._last.epoch + 1, missing=parts)
        for node in self._reached:
            if node.is_source:
                self._store(node, now)

    def _store(self, node: Node, now: int) -> None:
        """Store the state of *node*; its markers leave when that is done."""
        snapshot, part = self._snapshot, self._parts[node.rank]
        state = snapshot.states[node.name] = self.host.snapshot(node.name)
        part.marked = False
        self._occupy(node, _STORED, len(state), now)
        part.epoch = snapshot.epoch

    def _occupy(self, node: Node, port: str, nbytes: int, now: int) -> None:
        """Keep *node* busy with storing or restoring a state of *nbytes*."""
        letter = Letter(node, node, port, now)
        letter.epoch = self._parts[node.rank].epoch
        letter.reply = _Pause(pause_ns=nbytes * BYTE_NS // self.storage_bps)
        node.inbox.append(letter)
        if not node.busy and not node.unsent:
            self._start(node, now)

    def _send_markers(self, node: Node, now: int) -> None:
        """Send a marker down each channel, behind all messages of the epoch before."""
        snapshot, part = self._snapshot, self._parts[node.rank]
        part.marked = True
        snapshot.timers += [
            (node, letter.port, at_ns)
            for letter, at_ns in part.timers.items()
            if letter.epoch < snapshot.epoch
        ]
        for channel in node.channels.values():
            marker = Sent(_MARKER, (), None, HEADER_BYTES, 0, NO_SPAN)
            letter = Letter(node, channel.receiver, _MARKER, now, marker)
            letter.channel, letter.epoch = channel, snapshot.epoch
            if channel.receiver.site is not node.site:
                self._nbytes += HEADER_BYTES
            self._transmit(letter, now)
        self._count_part(now)

    def _receive_marker(self, letter: Letter, now: int) -> None:
        if self._taking and letter.epoch == self._taking.epoch:
            channel = letter.sender.rank, letter.receiver.rank
            if channel in self._taking.marked:
                return  # it comes twice over a link without transport
            self._taking.marked.add(channel)
            if letter.epoch > self._parts[letter.receiver.rank].epoch:
                self._store(letter.receiver, now)
            self._count_part(now)

    def _log(self, letter: Letter) -> None:
        handle = self.host.keep(letter.receiver.name, letter.handle)
        sent = Sent(letter.port, (), handle, letter.nbytes, letter.rows, letter.span)
        self._snapshot.letters.append((letter.sender, letter.receiver, sent))

    def _count_part(self, now: int) -> None:
        """Count a state or a channel that the snapshot now has."""
        snapshot = self._snapshot
        snapshot.missing -= 1
        if not snapshot.missing:
            self._last, self._taking, self._rollbacks = snapshot, None, 0
            self._tally["snapshots"] += 1
            self._tally["snapshot_bytes"] += sum(map(len, snapshot.states.values()))
            self.results.commit(snapshot.epoch, now)
            self._await_snapshot(now)

    # Crashes.

    def _await(
        self, control: _Control, at_ns: int, action: Callable[[_Control, int], None]
    ) -> None:
        """Schedule an event that by itself does not keep a run going."""

        def happen(control: _Control, now: int) -> None:
            self._idle_controls -= 1
            if not self._finished():
                action(control, now)

        self._idle_controls += 1
        self._at(at_ns, happen, control)

    def _finished(self) -> bool:
        """Whether all scheduled events are ones that do not keep a run going."""
        return len(self._clock) == self._idle_controls

    def _await_crash(self, node: Node, now: int) -> None:
        """Schedule the next crash of *node*, at *now* or later."""
        faults = self._of_actor.get(node.name)
        crash = faults.crash(now) if faults else None
        if crash:
            start_ns, end_ns = crash
            self._await(_Control(node, end_ns), start_ns, self._crash)

    def _crash(self, control: _Control, now: int) -> None:
        """End an actor until the control's end: what it has received and not served is gone."""
        node = control.receiver
        self._tally["crashes"] += 1
        part = self._parts[node.rank]
        part.starts_ns = max(part.starts_ns, control.end_ns)
        alone = self.guarantee == "none"
        self._stop(node, now, until_ns=control.end_ns if alone else FOREVER_NS)
        self._at(control.end_ns, self._restart, control)

    def _stop(self, node: Node, now: int, until_ns: int) -> None:
        part = self._parts[node.rank]
        part.down_until_ns = max(part.down_until_ns, until_ns)
        node.busy = False
        ready = node.site.ready
        ready[:] = [one for one in ready if one[2] is not node]
        heapify(ready)
        letters = list(node.inbox)
        node.inbox.clear()
        for letter in letters:
            self._lose(letter, now)

    def _restart(self, control: _Control, now: int) -> None:
        """Start an actor again; with snapshots all actors, as soon as none is down any more."""
        node = control.receiver
        self._await_crash(node, now)
        part = self._parts[node.rank]
        if self.guarantee != "none":
            # Unless it crashed again meanwhile, or went back with the others.
            if part.starts_ns == now and all(one.starts_ns <= now for one in self._parts):
                self._roll_back(now)
        elif part.down_until_ns == now:
            self._tally["restarts"] += 1
            part.started_ns = now
            if not node.is_source:  # its position in the streams is in no memory that is lost
                part.timers.clear()
                node.delayed_timers = []
                self.host.restore(node.name, None)

    def _roll_back(self, now: int) -> None:
        """Put all actors back to the last complete snapshot."""
        snapshot = self._last
        self._tally["restarts"] += 1
        self._rollbacks += 1
        if self._rollbacks > _MOST_ROLLBACKS:
            raise NetworkError(
                f"recovery: after {_MOST_ROLLBACKS} restarts from the same snapshot there is no "
                "newer one: let actors crash less often, or take snapshots more often"
            )
        self.host.forget()
        self.results.discard(snapshot.epoch)
        self._fed = Counter({e: rows for e, rows in self._fed.items() if e < snapshot.epoch})
        self._tuples = self._fed.total()
        # What was sent and neither served nor lost is dropped.
        self._dropped += self._under_way()
        for node in self._nodes.values():
            for channel in node.channels.values():
                channel.due, channel.last_first_bit_ns = channel.served, 0
        self._taking = None
        self._clock.drop_unless(lambda event: isinstance(event, _Control))
        self._clear_sites(now)
        self._reconnect()
        for node in self._nodes.values():
            node.credits, node.busy, node.unsent = self.inbox_messages, False, 0
            node.delayed_timers = []
            node.inbox.clear()
            node.waiting.clear()
            self._parts[node.rank] = _Part(epoch=snapshot.epoch, sends=snapshot.epoch)
        for node in self._nodes.values():
            state = snapshot.states.get(node.name)
            self.host.restore(node.name, state)
            self._occupy(node, _RESTORED, 0 if state is None else len(state), now)
        for sender, receiver, sent in snapshot.letters:
            letter = Letter(sender, receiver, sent.port, now, sent)
            letter.channel = sender.channels[receiver.name]
            self._post(letter, now)
        for node, port, at_ns in snapshot.timers:
            self._set_timer(node, port, at_ns, now)
        self._await_snapshot(now)

    def _clear_sites(self, now: int) -> None:
        for site in self._sites.values():
            site.free_cores, site.ready = site.cores, []
            site.egress_free_ns = site.ingress_free_ns = site.received_ns = now
            site.coming.clear()

    # What is lost for good, where there are no snapshots.

    def _interrupted(self, letter: Letter, now: int) -> bool:
        """Whether an actor crashed while it served *letter*."""
        part = self._parts[letter.receiver.rank]
        return part.down_until_ns > now or letter.started_ns < part.started_ns

    def _lose(self, letter: Letter, now: int) -> None:
        """Drop a message that is, or would be, in the inbox of an actor that is down."""
        node = letter.receiver
        if self.guarantee != "none":
            return  # all that is under way is dropped when the actors go back
        if letter.sender is node:
            self._lose_timer(letter, now)
            return
        self._drop(letter)
        self._free_room(letter, now)

    def _drop(self, letter: Letter) -> None:
        self._dropped += 1
        letter.channel.due -= 1

    def _lose_timer(self, letter: Letter, now: int) -> None:
        """Postpone a source's timer to its restart, or skip the tuples that it was sending.

        A source that failed does not start again.
        """
        node = letter.receiver
        if not node.is_source or self._parts[node.rank].down_until_ns == FOREVER_NS:
            return
        if letter in self._parts[node.rank].timers:  # has not fired
            letter.arrived_ns = self._parts[node.rank].down_until_ns
            self._at(letter.arrived_ns, self._arrive, letter)
        else:
            self._set_timers(node, self._reply_to(letter).timers, now)

    def _lose_served(self, letter: Letter, now: int) -> None:
        """Drop the effects of a message whose service a crash interrupted."""
        node = letter.receiver
        if self.guarantee == "none":
            if letter.sender is node:
                self._lose_timer(letter, now)
            else:
                self._reply_to(letter)
                self._drop(letter)
        site = node.site
        site.free_cores += 1
        if site.ready:
            self._start(heappop(site.ready)[2], now)

    def _reply_to(self, letter: Letter) -> Reply:
        return letter.reply or self._reply(letter.ticket)
