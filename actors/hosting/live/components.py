"""When actors that answer each other have ended.

Punctuation ends an actor: when on every channel to it nothing more will come, and nothing is left
to do, it says the same on its own channels. Actors on a cycle would wait for each other for ever.
So they end together, as one *component* (strongly connected, of the graph of actors), when every
channel into it has ended, none of its actors has anything left to do, and nothing is under way
between them.

The last is found by counting channels (Mattern, Algorithms for distributed termination detection,
1987, section 6): each process reports, whenever it is at rest, what it has sent and received on
each channel. If for all channels the two are equal in the latest reports of all processes, all are
at rest for ever: the first to wake after its report would have to get a message that was sent
before some other's report, and that one counts as sent but not as received.
"""

from __future__ import annotations

from collections.abc import Mapping

import networkx as nx

from actors.hosting.live.parcels import Channel, Report
from actors.protocol import Wiring


class Component:
    """Actors that end together; most often one actor alone.

    Attributes
    ----------
    number
        Components are numbered by the rank of their first actor.
    members
        The actors, in the order of rank.
    homes
        The processes they live in, ascending; the first of them gathers the reports.
    inside
        Channels between members.
    """

    def __init__(
        self, number: int, members: list[str], inside: list[Channel], homes: Mapping[str, int]
    ) -> None:
        self.number = number
        self.members = members
        self.inside = inside
        self.homes = sorted({homes[member] for member in members})
        self._reports: dict[int, Report] = {}

    def at_rest(self, process: int, report: Report) -> bool:
        """Take a process's report; return whether nothing can happen in the component any more."""
        self._reports[process] = report
        if len(self._reports) < len(self.homes):
            return False
        sent: dict[Channel, int] = {}
        received: dict[Channel, int] = {}
        for latest in self._reports.values():
            sent |= latest.sent
            received |= latest.received
        return sent == received


def channels(wiring: Wiring) -> list[Channel]:
    """Return all channels, each once, in the order of wiring."""
    return list(
        dict.fromkeys(
            (sender, receiver)
            for sender, ports in wiring.items()
            for receivers in ports.values()
            for receiver in receivers
        )
    )


def components_of(wiring: Wiring, homes: Mapping[str, int]) -> list[Component]:
    """Return the components of a system; *homes* is actor name to process."""
    graph = nx.DiGraph(channels(wiring))
    graph.add_nodes_from(wiring)
    rank = {name: place for place, name in enumerate(wiring)}
    found = [sorted(part, key=rank.__getitem__) for part in nx.strongly_connected_components(graph)]
    found.sort(key=lambda members: rank[members[0]])
    number_of = {name: number for number, members in enumerate(found) for name in members}
    inside: list[list[Channel]] = [[] for _ in found]
    for sender, receiver in graph.edges:
        if number_of[sender] == number_of[receiver]:
            inside[number_of[sender]].append((sender, receiver))
    return [
        Component(number, members, inside[number], homes) for number, members in enumerate(found)
    ]
