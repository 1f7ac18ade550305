"""What can evaluate a query: topologies with their structures and PEs, and what is good of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from scenarios.config import RunConfig
from scenarios.measures import ENDS, look_up
from scenarios.plan import Plan, Prepare, make_plan
from scenarios.scenario_files import ConfigError, change
from scenarios.sweep import PES
from topologies import TOPOLOGIES, Topology, TopologyError, find_topology


class Goal(NamedTuple):
    """What is to be good: a measure of runs at saturation, or at the caller's own rate."""

    measure: str
    unit: str
    highest: bool
    saturated: bool


GOALS = {
    "throughput": Goal("throughput_tps", "tuples/s", highest=True, saturated=True),
    "latency": Goal("latency_ms.p95", "ms p95", highest=False, saturated=False),
    "bytes": Goal("network.each", "bytes a tuple", highest=False, saturated=False),
    "memory": Goal("state_bytes.total", "bytes of state", highest=False, saturated=False),
}

STRUCTURES = ("index", "structure", "immutable")
"""Parameters that choose how a PE stores its tuples: all their values are tried."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A topology with its parameters, and what it came to in its longest runs.

    Attributes
    ----------
    topology, parameters
        What runs.
    kind
        Its label without the number of PEs.
    pes, machines, cores
        Actors that neither feed it nor take its results, the sites that these are on, and the cores
        of those that they can use.
    rows
        Tuples of each stream that it ran over; 0 where it has not run.
    saturated, fed
        Records of runs as fast as tuples are taken, and at the caller's rate; one for each seed.
        The throughput of one that is not the last is extrapolated where it can be.
    keeps_up
        Whether it sustained the rate; None where that is not known.
    last
        Whether it ran in the last round: over all tuples, with its answers judged.
    """

    topology: str
    parameters: Mapping[str, Any]
    kind: str
    pes: int
    machines: int
    cores: int
    rows: int = 0
    saturated: tuple[dict[str, Any], ...] = ()
    fed: tuple[dict[str, Any], ...] = ()
    keeps_up: bool | None = None
    last: bool = False

    @property
    def label(self) -> str:
        """Its name in a table."""
        return _label(self.topology, self.parameters)

    def configure(self, config: RunConfig) -> RunConfig:
        """Return *config* with its topology and parameters."""
        system = {"topology": self.topology, "parameters": dict(self.parameters)}
        return change(config, system)

    def values(self, goal: Goal) -> list[float]:
        """Return what it came to, one for each seed."""
        records = self.saturated if goal.saturated or not self.fed else self.fed
        known = [look_up(one, goal.measure) for one in records]
        return [value for value in known if value is not None]


def _label(topology: str, parameters: Mapping[str, Any]) -> str:
    return ", ".join([topology, *(f"{name}={value}" for name, value in parameters.items())])


def best_of_topologies(ranked: Sequence[Candidate]) -> dict[str, Candidate]:
    """Return the first of each topology."""
    return {one.topology: one for one in reversed(ranked)}


def candidates(
    config: RunConfig,
    prepare: Prepare,
    *,
    machines: int,
    topologies: Sequence[str] = (),
    parameters: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> tuple[list[Candidate], dict[str, str]]:
    """Return what can evaluate the query on *machines*, and why other topologies cannot.

    *parameters* are what is set already, by topology.

    Each exact topology comes with every structure that it offers, and PEs in powers of two.
    """
    found: dict[str, Candidate] = {}
    refused: dict[str, str] = {}
    most = machines * config.network.cores
    for name in topologies or TOPOLOGIES:
        topology = find_topology(name)
        if not topology.exact:
            refused[name] = "it does not claim to be exact"
            continue
        own = dict(parameters.get(name, {}))
        for shape, kind in _settings(topology, most, config.network.cores, own):
            settings = own | shape | kind
            try:
                system = change(config, {"topology": name, "parameters": settings})
                plan = make_plan(system, prepare=prepare)
            except (TopologyError, ConfigError) as error:
                refused.setdefault(name, str(error))
                continue
            one = _sized(plan, settings, _label(name, kind))
            if one.machines > machines or one.cores > most:
                refused.setdefault(name, f"it needs {one.machines} machines at the least")
            elif topology.claims_exact(plan.parameters):
                found.setdefault(repr((name, plan.parameters)), one)
    fit = {one.topology for one in found.values()}
    # The likely ones first: a round's first good one stops others early.
    ranked = sorted(found.values(), key=lambda one: ("nested_loop" in one.label, -one.pes))
    return ranked, {name: why for name, why in refused.items() if name not in fit}


def _settings(
    topology: Topology[Any], most: int, cores: int, own: Mapping[str, Any]
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the PEs and the structures to try, for up to *most* cores, where *own* leave them open.

    Most PEs come first.
    """
    known = {one.name for one in fields(topology.parameters_type)}
    hints = get_type_hints(topology.parameters_type)
    pes = next((name for name in PES if name in known), None)
    shapes: list[dict[str, Any]] = [{}]
    if pes is not None and pes not in own:
        top = cores if pes == "threads" else most
        # One machine fewer, where a router has one of its own.
        counts = {1 << power for power in range(top.bit_length())} | {max(1, top - 1)}
        shapes = [{pes: count} for count in sorted(counts | ({0} if pes == "threads" else set()))]
    elif {"grid_rows", "grid_columns"} <= known:
        sides = [(r, c) for r in (1, 2, 4, 8) for c in (r, 2 * r) if r * c <= most]
        shapes = [{"grid_rows": rows, "grid_columns": columns} for rows, columns in sides]
    structure = next((name for name in STRUCTURES if get_origin(hints.get(name)) is Literal), None)
    kinds: list[dict[str, Any]] = [{}]
    if structure and structure not in own:
        kinds = [{structure: value} for value in get_args(hints[structure])]
    for shape in reversed(shapes):
        for kind in kinds:
            yield shape, kind


def _sized(plan: Plan, parameters: Mapping[str, Any], kind: str) -> Candidate:
    graph = plan.graph(pairs=False)
    roles = graph.nodes(data="role")
    on = Counter(graph.placement[actor] for actor, role in roles if role not in ENDS)
    threads = int(parameters.get("threads", 1)) or 1
    return Candidate(
        topology=plan.topology.name,
        parameters=parameters,
        kind=kind,
        pes=on.total(),
        machines=len(on),
        cores=sum(max(min(n, plan.config.network.cores), threads) for n in on.values()),
    )
