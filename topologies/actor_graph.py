"""Who talks to whom: what every topology builds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import Any, NamedTuple

import networkx as nx

from actors.hosting.processes import ProcessCount, pack
from actors.protocol import Actor, ActorSpec, Wiring
from actors.results import Sink

_RUN_LATER = (isgeneratorfunction, iscoroutinefunction, isasyncgenfunction)
"""A call of such a function returns at once, and runs nothing of it."""


class OperatorSummary(NamedTuple):
    """The actors of one role, and who they send to."""

    actors: Sequence[str]
    """Their names."""
    sends: Mapping[str, Sequence[str]]
    """Port to the names of its receivers, of all these actors together."""
    has_results: bool
    """Whether results stay with them (see `ActorGraph.partition_sinks`)."""


class ActorGraph(nx.MultiDiGraph):  # type: ignore[misc, unused-ignore]
    """Actors as nodes and channels as edges.

    A node has ``spec`` (how to build the actor), ``role`` (the operator's name) and ``site`` (the
    machine it lives on); an edge has ``port``. Nodes are ranked in the order they were added, and a
    port's receivers are indexed in the order they were connected. ``ActorGraph(machines=3)`` has
    three machines that actors without a site share in turns; by default each has one of its own.

    A topology adds one sink for all its results (`add_sink`). Whether a run has that one, or
    results stay at the PEs that find them, is the run's choice (`partition_sinks`).
    """

    def add(
        self,
        role: str,
        name: str,
        actor: type[Actor],
        *,
        site: str | None = None,
        only_emits: bool = False,
        **arguments: object,
    ) -> str:
        """Add an actor of a class and its *arguments*, and return its name.

        It lives on *site*, by default on the next machine. *only_emits* is `ActorSpec`'s.

        Raise :exc:`ValueError` when there is an actor of this *name*, and :exc:`TypeError` when
        *actor* is no class of actors, or its ``receive`` no plain method.
        """
        if self.nodes.get(name, {}).get("spec"):
            raise ValueError(f"two actors are called {name!r}; each has a name of its own")
        if not (isinstance(actor, type) and issubclass(actor, Actor)):
            raise TypeError(f"{name}: {actor!r} is no class that derives from Actor")
        if any(runs_later(actor.receive) for runs_later in _RUN_LATER):
            raise TypeError(
                f"{name}: receive of {actor!r} is async or has a yield, so that a call of it runs "
                "nothing: make it a plain method"
            )
        machines = self.graph.get("machines")
        if machines and not site:
            turn = self.graph["turn"] = self.graph.get("turn", -1) + 1
            site = f"node.{turn % machines}"
        spec = ActorSpec(actor=actor, arguments=arguments, only_emits=only_emits)
        self.add_node(name, role=role, spec=spec, site=site or name)
        return name

    def add_each(
        self, role: str, count: int, actor: type[Actor], number: str | None = None, **rest: Any
    ) -> list[str]:
        """Add ``role.0`` and so on, *count* in all, with the arguments *rest*; return their names.

        Each gets its number as the argument *number*, if one is named.
        """
        return [
            self.add(role, f"{role}.{i}", actor, **(rest | {number: i} if number else rest))
            for i in range(count)
        ]

    def set_loads(self, loads: Mapping[str, float]) -> None:
        """Set the loads of actors, each relative to the average of its operator; by default 1."""
        nx.set_node_attributes(self, loads, "load")

    def add_sink(self, *senders: str, gathers: bool = False) -> str:
        """Add the sink, on a site of its own, and wire port ``sink`` of *senders* to it.

        One that *gathers* ends a tree of collectors: it stays one, whatever a run chooses.
        """
        sink = self.add("sink", "sink", Sink, site="sink", only_emits=True)
        self.nodes[sink]["divisible"] = not gathers
        for sender in senders:
            self.connect(sender, "sink", sink)
        return sink

    def connect(self, sender: str, port: str, *receivers: str) -> None:
        """Wire *receivers*, in this order, to a port of *sender*, behind those that it has."""
        first = self.graph.get("connected", 0)  # channels so far, of all ports
        self.graph["connected"] = first + len(receivers)
        for index, receiver in enumerate(receivers, first):
            self.add_edge(sender, receiver, port=port, index=index)

    def partition_sinks(self) -> None:
        """Replace the sink by one beside each actor that sends to it, on the site of that actor.

        Results then stay partitioned as they were found, and no network carries them. A sink that
        gathers, one that others are fed from, and one that the topology itself placed, stay.
        """
        divisible = [name for name, yes in self.nodes(data="divisible") if yes]
        for sink in divisible:
            if self.out_degree(sink):
                continue
            channels = list(self.in_edges(sink, data="port"))
            self.remove_node(sink)
            for sender, _, port in channels:
                name = f"{sink}.{sender}"
                if name not in self:
                    self.add("sink", name, Sink, site=self.nodes[sender]["site"], only_emits=True)
                    self.nodes[name]["partition_of"] = sender
                self.connect(sender, port, name)

    @property
    def partitions(self) -> dict[str, str]:
        """Sink to the actor whose results it takes, of sinks that `partition_sinks` made."""
        owners: dict[str, str | None] = dict(self.nodes(data="partition_of"))
        return {sink: owner for sink, owner in owners.items() if owner is not None}

    def summary(self) -> dict[str, OperatorSummary]:
        """Return each operator by its role; partitions of results are a part of who finds them."""
        owners, whole = set(self.partitions.values()), self.without_partitions()
        wiring, summary = whole.wiring, {}
        for role, names in whole.operators.items():
            sends: dict[str, dict[str, None]] = {}
            for name in names:
                for port, receivers in wiring[name].items():
                    sends.setdefault(port, {}).update(dict.fromkeys(receivers))
            lists = {port: list(receivers) for port, receivers in sends.items()}
            summary[role] = OperatorSummary(names, lists, not owners.isdisjoint(names))
        return summary

    def __repr__(self) -> str:
        """Return who sends to whom, a line per operator and port."""
        lines = [super().__str__()]
        for role, operator in self.summary().items():
            lines.append(f"{role}  {abbreviated(operator.actors)}")
            lines += ["    results stay here"] * operator.has_results
            lines += [f"    {port} -> {abbreviated(to)}" for port, to in operator.sends.items()]
        return "\n".join(lines)

    __str__ = __repr__  # networkx prints numbers of nodes and edges alone

    def without_partitions(self) -> ActorGraph:
        """Return a copy in which an actor's partition of the results is a part of the actor."""
        graph: ActorGraph = self.copy()
        graph.remove_nodes_from(self.partitions)
        return graph

    @property
    def specs(self) -> dict[str, ActorSpec]:
        """Actor name to how it is built, in the order of rank."""
        return dict(self.nodes(data="spec"))

    @property
    def only_emit(self) -> set[str]:
        """Actors whose replies nothing waits for."""
        return {name for name, spec in self.specs.items() if spec.only_emits}

    @property
    def roles(self) -> dict[str, str]:
        """Actor name to its operator."""
        return dict(self.nodes(data="role"))

    @property
    def operators(self) -> dict[str, list[str]]:
        """Operator to its actors."""
        operators: dict[str, list[str]] = {}
        for name, role in self.roles.items():
            operators.setdefault(role, []).append(name)
        return operators

    @property
    def sources(self) -> set[str]:
        """Actors that no other sends to."""
        return {name for name, degree in self.in_degree() if not degree}

    @property
    def placement(self) -> dict[str, str]:
        """Actor name to site."""
        return dict(self.nodes(data="site"))

    def homes(self, processes: ProcessCount) -> dict[str, int]:
        """Return the process of each actor, as `actors.hosting.processes.pack` spreads them.

        An actor's partition of the results is in the actor's process.
        """
        loads = {name: load for name, load in self.nodes(data="load") if load is not None}
        homes = pack(self.without_partitions().roles, self.placement, processes, loads)
        return homes | {sink: homes[owner] for sink, owner in self.partitions.items()}

    @property
    def wiring(self) -> Wiring:
        """Actor name to port to receivers."""
        wiring: dict[str, dict[str, list[str]]] = {name: {} for name in self}
        channels = sorted(self.edges(data=True), key=lambda channel: channel[2]["index"])
        for sender, receiver, data in channels:
            wiring[sender].setdefault(data["port"], []).append(receiver)
        return {
            name: {port: tuple(receivers) for port, receivers in ports.items()}
            for name, ports in wiring.items()
        }


def abbreviated(names: Sequence[str]) -> str:
    """Return the names of a few actors in full, and of many the first and the last."""
    return ", ".join(names) if len(names) <= 4 else f"{names[0]} .. {names[-1]} ({len(names)})"
