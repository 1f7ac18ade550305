"""From a configuration to everything looked up and prepared.

Which system evaluates a query that names none follows from the query alone, because it is chosen
before any data are read: the first system of `RULES` that can evaluate the query as it is set.
Their order is that of measured comparisons (`joinsim compare`), whose winner at a rate, a window
and a network of one's own may be another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import networkx as nx

from actors.feed import Disorder, Recorded, StreamData, StreamFile, StreamTable
from actors.hosting.processes import check_reachable
from actors.source import Feeding
from joins.errors import suggest
from joins.queries.parser import on_one_line, parse_query
from joins.queries.query import JoinQuery
from joins.queries.selection import select
from joins.queries.windows import ExtentError, read_extent
from netsim.cost import CostProfile, load_profile, operator_profiles
from netsim.faults import Faults
from netsim.network import NetworkError, is_full_mesh
from scenarios.config import FaultConfig, RunConfig, build_network
from scenarios.formatting import group_refusals
from scenarios.scenario_files import ConfigError, place_of, validate
from scenarios.tables import TableStream
from spark_bridge.prepared import PreparedStream
from topologies import AUTO, TOPOLOGIES, Topology, TopologyError, find_topology
from topologies.actor_graph import ActorGraph
from topologies.assumptions import assumptions_of
from topologies.topology import Job

Prepare = Callable[[RunConfig, JoinQuery], tuple[PreparedStream, ...]]
"""Returns the streams of a query, prepared."""


SMALL_WINDOW = 2_500
"""Tuples up to which it is faster to scan a window than to search an index of it."""


def _any(query: JoinQuery) -> bool:
    return True


def _keyed(query: JoinQuery) -> bool:
    return query.key is not None


def _small(query: JoinQuery) -> bool:
    return query.window is not None and all(
        window.kind == "count" and window.length <= SMALL_WINDOW for window in query.windows
    )


RULES: tuple[tuple[str, Callable[[JoinQuery], bool], str], ...] = (
    ("hash_join", _keyed, "an equality sends each tuple to the one PE of its key"),
    ("kp_oij", _keyed, "in an interval join with an equality each key has its PE"),
    ("dp_oij", _any, "in an interval join without an equality PEs take tuples in turns"),
    ("join_matrix", _small, "without an equality small windows are best scanned, in a grid of PEs"),
    (
        "panjoin",
        _any,
        "without an equality large windows need an index, which it divides by values",
    ),
    ("spo_join", _any, "without an equality a stream that joins itself needs an index"),
    ("ibwj", _any, "each stream has a window of its own"),
    ("semijoin", _any, "it joins more than two streams, each at a site of its own"),
)
"""Systems in the order in which they are tried, for which queries, and why; then all others."""


def choose(
    query: JoinQuery, feeding: Feeding, parameters: Mapping[str, Any]
) -> tuple[Topology[Any], str]:
    """Return the system for *query*, and why: of those that have *parameters*, the first that can.

    Raise :exc:`ConfigError` for parameters that no system has, and :exc:`TopologyError` with the
    reasons where none can evaluate the query.
    """
    check_parameters(parameters, TOPOLOGIES.values(), "topology")
    preferred = [(name, why) for name, fits, why in RULES if fits(query)]
    whatever = [(name, "those preferred cannot evaluate the query so") for name in TOPOLOGIES]
    refusals = {}
    for name, why in (*preferred, *whatever):
        topology = TOPOLOGIES[name]
        if not topology.exact or not parameters.keys() <= parameter_names(topology):
            continue
        refused = refusal(topology, query, feeding)
        if refused is None:
            return topology, f"no topology was named: {name} is taken, because {why}"
        refusals[name] = refused
    if not refusals:
        raise ConfigError(
            f"no topology has all of the parameters {', '.join(parameters)}: name one, and its own"
        )
    raise TopologyError(f"no system can evaluate the query: {group_refusals(refusals)}")


def refusal(
    topology: Topology[Any], query: JoinQuery, feeding: Feeding, parameters: Any = None
) -> str | None:
    """Return why *topology* cannot evaluate *query*; None where it can.

    Without *parameters* it is left at its defaults.
    """
    job = replace(topology.sketch(query), feeding=feeding)
    try:
        topology.build(job, parameters or topology.parameters_type())
    except TopologyError as error:
        return str(error)
    return None


def check_parameters(keys: Iterable[str], topologies: Iterable[Topology[Any]], who: str) -> None:
    """Raise :exc:`ConfigError` for a key that is no parameter of any of *topologies*.

    The message calls one of them *who*.
    """
    every = sorted(set().union(*map(parameter_names, topologies)))
    for key in keys:
        if key not in every:
            raise ConfigError(
                f"{key}: no {who} has such a parameter; {suggest(key, every)}{place_of(key)}"
            )


def parameter_names(topology: Topology[Any]) -> set[str]:
    """Return the names of the parameters of *topology*."""
    return {field.name for field in fields(topology.parameters_type)}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A configuration with everything looked up: what is left to go wrong is the run itself."""

    config: RunConfig
    query: JoinQuery
    topology: Topology[Any]
    parameters: Any
    streams: tuple[PreparedStream, ...]
    files: tuple[StreamData, ...]
    """What is read of the prepared streams."""
    address: str | None = None
    """Of a running Ray cluster; None starts one here when the backend is Ray."""
    warnings: tuple[str, ...] = ()
    """What a person should know before the run."""
    choice: str | None = None
    """Why that topology, where none was named; it is that of *config* too."""

    @property
    def query_line(self) -> str:
        """The query as it runs, its placeholders bound, on one line."""
        return on_one_line(str(self.query))

    def with_settings(self, **settings: Any) -> Plan:
        """Return the plan with keys of its configuration changed, unchecked; its streams stay."""
        return replace(self, config=self.config.model_copy(update=settings))

    def job(self, *, pairs: bool) -> Job:
        """Return what the topology is to be built for."""
        return Job(
            query=self.query,
            files=self.files,
            feeding=self.feeding,
            pairs=pairs,
            profile=self.profile,
            network=partial(build_network, self.config.network),
            live=self.config.clock == "live",
            sink=self.config.sink,
        )

    @property
    def rows(self) -> tuple[int, ...]:
        """Per stream how many of its tuples are read."""
        return tuple(min(stream.rows, self.config.rows or stream.rows) for stream in self.streams)

    @property
    def stored_files(self) -> tuple[StreamFile, ...]:
        """The files, for engines that read Parquet by themselves.

        Raise :exc:`ConfigError` where a stream is a table in memory.
        """
        stored = tuple(file for file in self.files if isinstance(file, StreamFile))
        if len(stored) < len(self.files):
            raise ConfigError(
                "real engines read streams from files, and a table in memory has none: pass a "
                "prepared stream (joinsim.prepare)"
            )
        return stored

    @cached_property
    def profile(self) -> CostProfile:
        """What work costs."""
        return load_profile(self.config.profile)

    @property
    def feeding(self) -> Feeding:
        """How the streams are fed in."""
        return _feeding(self.config, [stream.delays for stream in self.streams])

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on parameters that are allowed, but say less than they seem to."""
        # As they were set: `parameters` has a plan in place of the search for it.
        chosen = make_parameters(self.topology, self.config.parameters)
        noted = self.topology.notes(self.job(pairs=False), chosen)
        if self.choice is not None:
            noted = (self.choice, *noted)
        config = self.config
        matters = config.backend == "ray" or config.network.sites == "processes"
        if config.processes != RunConfig.model_fields["processes"].default and not matters:
            only = f"processes = {config.processes} is for backend = 'ray'"
            noted = (*noted, f"{only}: inline, all actors live in this process")
        if config.measured:
            first, stop = config.measured
            arrivals = sum(file.tuples for file in self.files)
            if stop > arrivals:
                note = f"measured = [{first}, {stop}]: there are only {arrivals:,} arrivals"
                noted = (*noted, note + (", so nothing is measured" if first >= arrivals else ""))
        return noted

    @property
    def assumptions(self) -> list[str]:
        """What virtual time assumes of the run, a sentence each; nothing where it is live."""
        if self.config.clock == "live":
            return []
        known = assumptions_of(self.topology.name, self.profile, self.parameters)
        return [str(one) for one in known]

    @cached_property
    def faults(self) -> Faults:
        """What goes wrong meanwhile."""
        graph = self.graph()
        return Faults(
            [row for fault in self.config.faults for row in fault.rows()],
            placement=graph.placement,
            sources=graph.sources,
            seed=self.config.seed,
        )

    @cached_property
    def network(self) -> nx.Graph:
        """The sites of the run's actors, and the links between them."""
        return build_network(self.config.network, self.graph().placement.values())

    @property
    def recovers(self) -> bool:
        """Whether actors crash in virtual time, or could."""
        crash = any(fault.kind == "crash" for fault in self.config.faults)
        return crash or self.config.recovery is not None

    @property
    def rehearsal(self) -> tuple[Topology[Any], Any, Job]:
        """The arguments of a rehearsal of this run."""
        return self.topology, self.parameters, self.job(pairs=self.config.pairs)

    def graph(self, *, pairs: bool | None = None) -> ActorGraph:
        """Return the actors of the run, which list pairs or only count them; by default as set."""
        pairs = self.config.pairs if pairs is None else pairs
        if pairs not in self._graphs:
            built = self.topology.build(self.job(pairs=pairs), self.parameters)
            self._graphs[pairs] = _at_sites(built, self.config)
        return self._graphs[pairs]

    @cached_property
    def _graphs(self) -> dict[bool, ActorGraph]:
        return {}


def make_plan(
    config: RunConfig,
    *,
    address: str | None = None,
    topology: Topology[Any] | None = None,
    prepare: Prepare,
) -> Plan:
    """Look everything up that *config* names, and *prepare* its streams.

    *topology* is used in place of the registered one that *config* names; *address* is that of a
    running Ray cluster.

    Raise :exc:`ConfigError`, :exc:`TopologyError`, :exc:`QueryError` or :exc:`DataError` naming the
    key, query part, file or row that is wrong, before anything runs.
    """
    _check_address(config, address)
    query = bound_query(config.query, config.bind)
    choice = None
    if topology is None and config.topology == AUTO:
        topology, choice = choose(query, _feeding(config), config.parameters)
        config = config.model_copy(update={"topology": topology.name})
    topology = topology or find_topology(config.topology)
    parameters = make_parameters(topology, config.parameters)
    if not (config.feeding.watermarks or config.feeding.unbounded_state):
        raise ConfigError(
            "feeding.watermarks = false: without watermarks no tuple is ever let go, and the state "
            "grows as long as the streams do; set feeding.unbounded_state = true to have it so"
        )
    # Before the data, because preparing them can take minutes.
    job = replace(topology.sketch(query), feeding=_feeding(config), sink=config.sink)
    sketch = _at_sites(topology.build(job, parameters), config)
    read_profile(config.profile, topology.name)
    network = build_network(config.network, sketch.placement.values())
    _check_links(network, sketch)
    check_names(config.faults, list(sketch), list(sketch.placement.values()))
    streams = prepare(config, query)
    files = tuple(_data(stream, config.rows) for stream in streams)
    plan = Plan(
        config=config,
        query=query,
        topology=topology,
        parameters=parameters,
        streams=streams,
        files=files,
        address=address,
        choice=choice,
    )
    # Now with the fields that the streams have.
    query.check_fields([stream.schema for stream in streams])
    select(query, [stream.names for stream in streams])
    plan.graph()
    with topology.naming_faults():
        fitted = topology.fitted(plan.job(pairs=False), parameters, network)
        warnings = topology.warnings(query, fitted, network)
        # What these raise is said before the run; they are asked again after it.
        topology.claims_exact(fitted)
        topology.approximation(query, fitted)
    if fitted is parameters and not warnings:
        return plan
    return replace(plan, parameters=fitted, warnings=warnings)


def _check_links(network: nx.Graph, graph: ActorGraph) -> None:
    """Raise :exc:`NetworkError` where an actor would send to a site that no links lead to."""
    if is_full_mesh(network):
        return
    parts = list(nx.connected_components(network))
    part_of = {site: place for place, part in enumerate(parts) for site in part}
    placement = graph.placement
    for sender, receiver in graph.edges():
        here, there = placement[sender], placement[receiver]
        if part_of[here] != part_of[there]:
            links = ", ".join(f"{a} - {b}" for a, b in network.edges)
            raise NetworkError(
                f"network.links: {sender} at site {here!r} sends to {receiver} at site {there!r}, "
                f"and no links lead there; there are {links or 'none'}"
            )


def check_names(
    faults: Sequence[FaultConfig], actors: Collection[str], sites: Collection[str]
) -> None:
    """Raise :exc:`NetworkError` where a fault is about nobody: a pattern that matches no name."""
    for place, fault in enumerate(faults):
        for key in ("sender", "receiver", "between", "actor", "site"):
            patterns = getattr(fault, key, None) or ()
            names, of = (actors, "actor") if key == "actor" else (sites, "site")
            for pattern in (patterns,) if isinstance(patterns, str) else patterns:
                if not any(fnmatchcase(name, pattern) for name in names):
                    raise NetworkError(
                        f"faults.{place}.{key}: no {of} is called {pattern!r}; "
                        f"{suggest(pattern, dict.fromkeys(names))}"
                    )


def topology_of(config: RunConfig) -> Topology[Any]:
    """Return the topology that *config* names, or the one chosen for its query."""
    if config.topology != AUTO:
        return find_topology(config.topology)
    query = bound_query(config.query, config.bind)
    return choose(query, _feeding(config), config.parameters)[0]


def bound_query(text: str, values: Mapping[str, str | int]) -> JoinQuery:
    """Return the query of a *text*, with *values* in place of its placeholders.

    Raise :exc:`ConfigError` for a value that is no number of tuples and no time.
    """
    for name, value in values.items():
        try:
            read_extent(str(value))
        except ExtentError:
            raise ConfigError(
                f"bind.{name} = {value!r}: it must be a number of tuples ('1000') or a time "
                "('2 hours', '10 min', '25 ms')"
            ) from None
    return parse_query(text).bind(**{name: str(value) for name, value in values.items()})


def bound_line(config: RunConfig) -> str:
    """Return the query of *config* as it runs, its placeholders bound, on one line."""
    return on_one_line(str(bound_query(config.query, config.bind)))


def _data(stream: PreparedStream, rows: int | None) -> StreamData:
    """Return what actors read of *stream*: its first *rows* tuples."""
    if isinstance(stream, TableStream):
        return StreamTable(schema=stream.schema, table=stream.table, rows=rows)
    return StreamFile(schema=stream.schema, directory=stream.path.resolve(), rows=rows)


def _feeding(config: RunConfig, delays: Sequence[tuple[int, int] | None] | None = None) -> Feeding:
    """Return how streams are fed in; *delays* are those of the prepared streams, once they are."""
    feeding = config.feeding
    disorder: Disorder | Recorded | None = None
    if feeding.disorder:
        disorder = Disorder(delay_ns=feeding.disorder, bounded=feeding.bounded, seed=config.seed)
    if delays is None:
        delays = [(0, 0) if stream.arrival else None for stream in config.streams]
    known = [one or (0, 0) for one in delays]
    if any(delays):
        if disorder is not None:
            raise ConfigError(
                f"feeding.disorder = {feeding.disorder}: the streams have an order of arrival of "
                "their own; leave one of the two out"
            )
        disorder = Recorded(
            streams=tuple(one is not None for one in delays),
            least_ns=min(least for least, _ in known),
            most_ns=max(most for _, most in known),
        )
    return Feeding(
        batch_rows=feeding.batch_rows,
        linger_ns=feeding.linger,
        rate_tps=feeding.rate_tps,
        disorder=disorder,
        watermark_lag_ns=feeding.watermark_lag,
        watermarks=feeding.watermarks,
    )


def _check_address(config: RunConfig, address: str | None) -> None:
    """Raise :exc:`ConfigError` where nothing listens at *address*, or the run is not for Ray."""
    if address is None:
        return
    if config.backend != "ray":
        raise ConfigError(
            f"address {address}: it is for the backend ray, and this run is {config.backend}"
        )
    try:
        check_reachable(address)
    except ValueError as error:
        raise ConfigError(f"address {address}: {error}") from None
    except ConnectionError as error:
        raise ConfigError(
            f"address {address}: {error}. Give the address of a running cluster (`ray start "
            "--head` prints it), or leave it out to start Ray here"
        ) from None


def read_profile(name: str | Path, topology: str = "") -> CostProfile:
    """Return what work costs; raise :exc:`ConfigError` where *name* is no profile.

    What it has of the operators of a *topology* must be right, too.
    """
    try:
        operator_profiles(name, topology)
        return load_profile(name)
    except ValueError as error:
        raise ConfigError(f"profile: {error}") from None


def _at_sites(graph: ActorGraph, config: RunConfig) -> ActorGraph:
    """Return *graph* with its actors at the sites of *config*: where it has them, or processes."""
    if config.network.sites == "processes":
        homes = graph.homes(config.processes)
        sites = {name: f"process.{home}" for name, home in homes.items()}
        nx.set_node_attributes(graph, sites, "site")
    return graph


def make_parameters(topology: Topology[Any], values: dict[str, Any]) -> Any:
    """Return the topology's parameters; raise :exc:`ConfigError` naming a wrong one."""
    with topology.naming_faults():
        return validate(topology.parameters_type, values, where=f"parameters of {topology.name}")


def name_others(config: RunConfig) -> str:
    """Return which systems can evaluate what that of *config* cannot, as a sentence to append.

    It is empty where the query is not what is wrong.
    """
    name, feeding = config.topology, _feeding(config)
    query = bound_query(config.query, config.bind)
    if name not in TOPOLOGIES or refusal(TOPOLOGIES[name], query, feeding) is None:
        return ""
    able = [other.name for other in TOPOLOGIES.values() if not refusal(other, query, feeding)]
    return f". These can evaluate it: {', '.join(able)}" if able else ". No system can evaluate it"
