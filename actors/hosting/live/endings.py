"""The actors and channels of a live process, and when they have ended.

Punctuation ends an actor: when on every channel to it nothing more will come, and nothing is left
to do, it sends the same down its own channels. Actors on a cycle would wait for each other for
ever. So they end together, as one *component* (strongly connected, of the graph of actors), when
every channel into it has ended, none of its actors has anything left to do, and nothing is under
way between them.

The last is detected by counting channels (Mattern, Algorithms for distributed termination
detection, 1987, section 6): each process reports, whenever it is at rest, what it has sent and
received on each channel. If for all channels the two are equal in the latest reports of all
processes, all are at rest for ever: the first to wake after its report would have to get a message
that was sent before some other's report, and that one counts as sent but not as received.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import networkx as nx

from actors.hosting.inline import Cell
from actors.hosting.live.post import ComponentReport, Parcel, Post, Served
from actors.protocol import Channel, Wiring, channels
from joins.state import storable


@dataclass(slots=True)
class Seat:
    """One actor that lives here."""

    name: str
    cell: Cell
    inbox: deque[Parcel] = field(default_factory=deque)
    """Messages and timers to be served, in the order they arrived."""
    waits: int = 0
    """Messages it has sent that have no room at their receiver yet; until all have, it starts
    nothing."""
    timers: int = 0
    """Timers set that have not fired; *delayed_timers*, of them, are set when it no longer
    waits."""
    delayed_timers: list[tuple[int, str]] = field(default_factory=list)
    open_inputs: int = 0
    """Channels from outside its component on which more may come."""
    received: dict[Channel, int] = field(default_factory=dict)
    """Messages so far by channel."""
    is_source: bool = True
    """Whether no channel leads to it."""
    in_turn: bool = False
    """Whether it waits in the queue of those to serve."""
    served: Served = field(default_factory=Served)
    """What serving it has come to so far."""
    _seq: int = 0

    def next_seq(self) -> int:
        """Return the number of the next message or timer of this actor."""
        self._seq += 1
        return self._seq - 1

    def snapshot(self) -> list[Any]:
        """Return the state of the actor and all other fields that change as it is served."""
        return [self.cell.snapshot(), *(getattr(self, name) for name in self._saved_names())]

    def restore(self, state: list[Any]) -> None:
        """Go back to what `snapshot` returned."""
        self.cell.restore(state[0])
        for name, value in zip(self._saved_names(), state[1:], strict=True):
            setattr(self, name, value)

    def _saved_names(self) -> list[str]:
        anew = ("name", "cell", "in_turn")
        return [one.name for one in fields(self) if one.name not in anew]

    @property
    def at_rest(self) -> bool:
        """Whether nothing is left to do, and nothing can come from outside its component."""
        return not (self.inbox or self.waits or self.timers or self.open_inputs)


@storable
@dataclass(slots=True)
class Outlet:
    """The end of a channel at its sender: how much room the receiver has left for it."""

    home: int
    """The receiver's process."""
    room: int
    """Messages that may leave before the receiver has begun with one of those that left."""
    waiting: deque[Parcel] = field(default_factory=deque)
    """Those that have no room yet."""
    sent: int = 0
    """Messages so far, waiting ones included."""


class Component:
    """Actors that end together; most often one actor alone."""

    def __init__(
        self, number: int, members: list[str], inside: list[Channel], homes: Mapping[str, int]
    ) -> None:
        self.number = number
        """Components are numbered by the rank of their first actor."""
        self.members = members
        """The actors, in the order of rank."""
        self.inside = inside
        """Channels between members."""
        self.homes = sorted({homes[member] for member in members})
        """The processes they live in, ascending; the first of them gathers the reports."""
        self.reports: dict[int, ComponentReport] = {}
        """The latest of each process, where they are gathered."""

    def at_rest(self, process: int, report: ComponentReport) -> bool:
        """Add a process's report; return whether nothing can happen in the component any more."""
        self.reports[process] = report
        if len(self.reports) < len(self.homes):
            return False
        sent: dict[Channel, int] = {}
        received: dict[Channel, int] = {}
        for latest in self.reports.values():
            sent |= latest.sent
            received |= latest.received
        return sent == received


def components_of(wiring: Wiring, homes: Mapping[str, int]) -> list[Component]:
    """Return the components of a system; *homes* is actor name to process."""
    graph = nx.DiGraph(channels(wiring))
    graph.add_nodes_from(wiring)
    rank = {name: place for place, name in enumerate(wiring)}
    parts = [sorted(part, key=rank.__getitem__) for part in nx.strongly_connected_components(graph)]
    parts.sort(key=lambda members: rank[members[0]])
    number_of = {name: number for number, members in enumerate(parts) for name in members}
    inside: list[list[Channel]] = [[] for _ in parts]
    for sender, receiver in graph.edges:
        if number_of[sender] == number_of[receiver]:
            inside[number_of[sender]].append((sender, receiver))
    return [
        Component(number, members, inside[number], homes) for number, members in enumerate(parts)
    ]


@dataclass(eq=False)
class Endings:
    """Ends this process's actors when nothing more can reach them, and their channels with them."""

    here: int
    """This process."""
    components: list[Component]
    """All of the system, by number."""
    seats: Mapping[str, Seat]
    outlets: Mapping[Channel, Outlet]
    """The actors of this process and their channels."""
    post: Post
    """Goes to the other processes."""

    def __post_init__(self) -> None:
        self._component_of = {name: part for part in self.components for name in part.members}
        self._leading_out: defaultdict[int, list[Channel]] = defaultdict(list)
        """Of each component the channels here that lead out of it."""
        for channel in self.outlets:
            sender, receiver = (self._component_of[name].number for name in channel)
            if sender != receiver:
                self._leading_out[sender].append(channel)
        self._alive = {part.number for part in self.components if self.here in part.homes}
        self._settling: deque[int] = deque()
        self._reported: dict[int, ComponentReport] = {}

    @property
    def all_ended(self) -> bool:
        """Whether every actor here has ended."""
        return not self._alive

    def snapshot(self) -> list[Any]:
        """Return what has ended, and what was reported by and to this process."""
        return [self._alive, self._reported, [part.reports for part in self.components]]

    def restore(self, state: list[Any]) -> None:
        """Go back to what `snapshot` returned."""
        self._alive, self._reported, reports = state
        for part, of_part in zip(self.components, reports, strict=True):
            part.reports = of_part

    def end_if_done(self, actor: str) -> None:
        """End the component of *actor* if nothing is left to do in it, here and elsewhere."""
        component = self._component_of[actor]
        if component.number not in self._alive:
            return
        if not all(seat.at_rest for seat in self._members(component)):
            return
        if len(component.homes) == 1:
            self.settle(component.number)
            return
        report = self._report(component)
        if report != self._reported.get(component.number):
            self._reported[component.number] = report
            if component.homes[0] == self.here:
                self.on_report(self.here, report)
            else:
                self.post.to(component.homes[0]).reports.append(report)

    def on_report(self, process: int, report: ComponentReport) -> None:
        """Add another process's report on a component whose reports are gathered here."""
        component = self.components[report.component]
        if component.at_rest(process, report):
            for home in component.homes[1:]:
                self.post.to(home).settled.append(component.number)
            self.settle(component.number)

    def settle(self, number: int) -> None:
        """End a component's actors that live here, and the channels that lead out of it.

        That may end the next component, and so on: in a queue, for a chain of them may be long.
        """
        self._alive.discard(number)
        self._settling.append(number)
        if len(self._settling) > 1:
            return  # a call of this that has not returned goes on with it
        while self._settling:
            for channel in self._leading_out[self._settling[0]]:
                home = self.outlets[channel].home
                if home == self.here:
                    self.end_channel(channel)
                else:
                    self.post.to(home).ends.append(channel)
            self._settling.popleft()

    def end_channel(self, channel: Channel) -> None:
        """Handle the punctuation: on *channel* no more will come."""
        self.seats[channel[1]].open_inputs -= 1
        self.end_if_done(channel[1])

    def _members(self, component: Component) -> Iterator[Seat]:
        return (self.seats[name] for name in component.members if name in self.seats)

    def _report(self, component: Component) -> ComponentReport:
        sent, received = {}, {}
        for channel in component.inside:
            sender, receiver = channel
            if sender in self.seats:
                sent[channel] = self.outlets[channel].sent
            if receiver in self.seats:
                received[channel] = self.seats[receiver].received.get(channel, 0)
        return ComponentReport(component.number, sent, received)
