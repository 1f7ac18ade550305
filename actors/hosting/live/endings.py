"""Ends a process's actors when nothing more can come to them, and tells those behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from actors.hosting.live.components import Component
from actors.hosting.live.parcels import Channel, Report
from actors.hosting.live.post import Post
from actors.hosting.live.seat import Outlet, Seat


class Endings:
    """Knows which components still live; see `actors.hosting.live.components`.

    Parameters
    ----------
    here
        This process.
    components
        All of the system, by number.
    seats, outlets
        The actors of this process and their channels.
    post
        Goes to the other processes.
    """

    def __init__(
        self,
        here: int,
        components: list[Component],
        seats: Mapping[str, Seat],
        outlets: Mapping[Channel, Outlet],
        post: Post,
    ) -> None:
        self._here, self._components, self._post = here, components, post
        self._seats, self._outlets = seats, outlets
        self._component_of = {name: part for part in components for name in part.members}
        self._alive = {part.number for part in components if here in part.homes}
        self._reported: dict[int, Report] = {}

    @property
    def all_ended(self) -> bool:
        """Whether every actor here has ended."""
        return not self._alive

    def look_at(self, actor: str) -> None:
        """End the component of *actor* if nothing is left to do in it, here and elsewhere."""
        component = self._component_of[actor]
        if component.number not in self._alive:
            return
        if not all(seat.at_rest for seat in self._members(component)):
            return
        if len(component.homes) == 1:
            self.settled(component.number)
            return
        report = self._report(component)
        if report != self._reported.get(component.number):
            self._reported[component.number] = report
            if component.homes[0] == self._here:
                self.heard(self._here, report)
            else:
                self._post.to(component.homes[0]).reports.append(report)

    def heard(self, process: int, report: Report) -> None:
        """Take what a process says of a component whose reports are gathered here."""
        component = self._components[report.component]
        if component.at_rest(process, report):
            for home in component.homes[1:]:
                self._post.to(home).settled.append(component.number)
            self.settled(component.number)

    def settled(self, number: int) -> None:
        """End a component's actors that live here: say so on the channels that lead out of it."""
        self._alive.discard(number)
        component = self._components[number]
        inside = set(component.inside)
        for channel, outlet in self._outlets.items():
            if self._component_of[channel[0]] is not component or channel in inside:
                continue
            if outlet.home == self._here:
                self.ended(channel)
            else:
                self._post.to(outlet.home).ends.append(channel)

    def ended(self, channel: Channel) -> None:
        """Take the punctuation: on *channel* no more will come."""
        self._seats[channel[1]].open_inputs -= 1
        self.look_at(channel[1])

    def _members(self, component: Component) -> Iterator[Seat]:
        return (self._seats[name] for name in component.members if name in self._seats)

    def _report(self, component: Component) -> Report:
        sent, received = {}, {}
        for channel in component.inside:
            sender, receiver = channel
            if sender in self._seats:
                sent[channel] = self._outlets[channel].sent
            if receiver in self._seats:
                received[channel] = self._seats[receiver].received.get(channel, 0)
        return Report(component.number, sent, received)
