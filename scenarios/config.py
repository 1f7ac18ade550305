"""What a run is: the keys of a scenario of ours or of a person's TOML file, and their types."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, Any, Literal

import networkx as nx
import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticSerializationError, to_json

from actors.source import LINGER_NS
from joins.queries.interval import TIME_FIELD
from joins.queries.parser import on_one_line
from netsim.faults import ActorFault, ActorKind, Fault, LinkFault, LinkKind
from netsim.kernel import INBOX_MESSAGES
from netsim.network import PRESETS, Link, NetworkError, full_mesh, sites_without_links
from netsim.recovering_kernel import INTERVAL_NS, STORAGE_BPS, Guarantee
from scenarios.survey import AnySurvey
from scenarios.synthetic import SyntheticStream
from topologies import Topology, registered_names
from topologies.own_class import check_path, import_path
from topologies.quantities import (
    NUMBER,
    BitsPerSecond,
    Bound,
    Duration,
    Nanoseconds,
    Patience,
    TimeFromZero,
)
from topologies.topology import SinkPlace

SCALES = ("smoke", "laptop", "paper")
MAX_SEED = 2**32 - 1

PositiveInt64 = Annotated[int, Field(ge=1, le=2**63 - 1), NUMBER]

_NAME = re.compile(r"(?!\.)[\w.-]{1,100}")


def _name(value: str) -> str:
    """Refuse a name that would lead out of the folder that is named after it."""
    if not _NAME.fullmatch(value):
        raise ValueError(
            "at most 100 letters, digits, '_', '-' and '.' are allowed, and no '.' at the start"
        )
    return value


Name = Annotated[str, AfterValidator(_name)]


def _processes(value: Any) -> Any:
    """Refuse what is neither a number of processes nor ``each``, in one message."""
    if value == "each" or (str(value).isdecimal() and int(value) >= 1):
        return value
    raise ValueError("Input should be greater than or equal to 1, or each")


Processes = Annotated[PositiveInt64 | Literal["each"], BeforeValidator(_processes)]


def name_topology(topology: Any) -> Any:
    """Return the name of a topology; refuse a class that only the caller knows.

    What is neither is returned as it is.
    """
    if isinstance(topology, type | Topology):
        return registered_names(topology)[0]
    return topology


def plain_value(value: Any) -> Any:
    """Return a parameter as files have it: NumPy's numbers as Python's, a class by its path."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    return import_path(value) if isinstance(value, type) else value


def passed_value(value: Any) -> Any:
    """Return the `plain_value` of what was passed; refuse a class whose path leads to another."""
    if isinstance(value, type):
        check_path(value)
    return plain_value(value)


def _storable(value: Any) -> Any:
    """Return a `passed_value`; refuse what no file can have."""
    value = passed_value(value)
    try:
        to_json(value)
    except PydanticSerializationError:
        raise ValueError("pass a number, text, a list, a mapping or a class") from None
    return value


class Section(BaseModel):
    """A section of a configuration: frozen, and a key that means nothing is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class StreamConfig(Section):
    """Where a stream of the query comes from."""

    name: Name | None = None
    """As the query spells it; by default the streams of the query in their order."""
    files: tuple[str, ...] = ()
    """Candidates: the first that is found is read, as given, or in one of the data folders."""
    synthetic: SyntheticStream | None = None
    """What to generate instead of reading files."""
    table: str | None = None
    """In words, a table that the caller passed in memory; it cannot be found again by itself."""
    time: str | None = None
    """Column or expression of the event time, or ``rows``, the order of the rows; without it, a
    column is looked for."""
    arrival: str | None = None
    """The order in which tuples arrive: a column of times, or ``rows``, the order of the rows; by
    default that of event time. For the queries that ``feeding.disorder`` is for."""
    where: str | None = None
    """Condition on the rows to take; by default all. What an expression may have in it:
    `spark_bridge.pipeline.expressions`."""

    @field_validator("time")
    @classmethod
    def _time_of_files(cls, time: str | None, others: ValidationInfo) -> str | None:
        if others.data.get("synthetic") and time not in (None, TIME_FIELD):
            raise ValueError(f"a synthetic stream has times of its own, in {TIME_FIELD}")
        return time

    @model_validator(mode="after")
    def _one_origin(self) -> StreamConfig:
        if bool(self.files) + bool(self.synthetic) + bool(self.table) != 1:
            raise ValueError("a stream needs one of files, synthetic and table")
        return self


class LinkConfig(Section):
    """One link that differs from the preset."""

    a: str
    """The site at one end."""
    b: str
    """The site at the other."""
    latency: TimeFromZero | None = None
    """Time that a message is under way; by default the network's."""
    jitter: TimeFromZero | None = None
    """Spread of the latency; by default the network's."""
    bandwidth: BitsPerSecond | None = Field(default=None, ge=1)
    """Bits per second; by default the network's."""


class NetworkConfig(Section):
    """The network: a preset, and what differs from it."""

    preset: Literal[tuple(PRESETS)] = "rack"  # type: ignore[valid-type]
    """Kind of network, see `netsim.network.PRESETS`."""
    latency: TimeFromZero | None = None
    """Time that a message is under way, on every link; by default the preset's."""
    jitter: TimeFromZero | None = None
    """Spread of the latency; by default the preset's."""
    latency_kind: Literal["constant", "uniform", "normal", "pareto"] | None = None
    """Distribution of the latency; by default the preset's."""
    bandwidth: BitsPerSecond | None = Field(default=None, ge=1)
    """Bits per second of every link; by default the preset's."""
    cores: PositiveInt64 = 1
    """Cores of each site."""
    sites: Literal["placed", "processes"] = "placed"
    """Where actors live: each where the system places it, or, as in a live run, in one of the run's
    processes, which are then the sites."""
    inbox_messages: PositiveInt64 = INBOX_MESSAGES
    """Room of each actor's inbox."""
    transport: Literal["reliable", "none"] = "reliable"
    """Over links with faults: ``reliable`` sends again what is lost, and delivers in order, once;
    ``none`` delivers what arrives, as it arrives."""
    mesh: bool = True
    """Whether a link joins every two sites; else only those that *links* names."""
    links: tuple[LinkConfig, ...] = ()
    """Single links that differ."""


def with_preset(network: Any) -> Any:
    """Take the name of a preset for the whole section."""
    return {"preset": network} if isinstance(network, str) else network


class FeedingConfig(Section):
    """How streams are fed in."""

    batch_rows: PositiveInt64 | None = None
    """Tuples a message. By default those that gather until the first has waited for *linger*, and
    more while receivers are behind (see `actors.source.Feeding`)."""
    linger: TimeFromZero = LINGER_NS
    """How long the first tuple of a message may wait for others."""
    rate_tps: PositiveInt64 | None = None
    """Tuples per virtual second, of all streams together; by default as fast as they are taken."""
    disorder: TimeFromZero = 0
    """Delay by which tuples arrive out of order, in event time, drawn from the seed: the longest,
    or if not *bounded* the mean. For interval joins, and windows of time in a system that joins out
    of order."""
    bounded: bool = True
    """Whether delays are uniform up to *disorder*; else they are exponential with that mean."""
    watermark_lag: TimeFromZero | None = None
    """How far watermarks stay behind the latest event time; by default as far as *disorder*."""
    watermarks: bool = True
    """Whether streams get watermarks; without them state is never dropped."""
    unbounded_state: bool = False
    """Asks for a run without watermarks, whose state grows as long as the streams do."""


class RecoveryConfig(Section):
    """How a system recovers from crashes, see `netsim.recovering_kernel`.

    A live run recovers from the loss of its processes (`actors.hosting.live.recovery`), exactly
    once; *interval* is then real time, and *storage* has no meaning.
    """

    guarantee: Guarantee = "exactly_once"
    """``exactly_once``: after a crash all actors go back to a snapshot, and results are committed
    with the next one. ``at_least_once``: results are passed on at once, and some come again.
    ``none``: no snapshots; a crashed actor begins anew, and what it stored is lost."""
    interval: Duration = INTERVAL_NS
    """Virtual time from one snapshot to the next."""
    storage: BitsPerSecond = Field(default=STORAGE_BPS, ge=1)
    """Bits per second at which a state is stored and restored."""


_NAMES = {
    "kind": "kind", "start": "from_ns", "end": "to_ns", "every": "every_ns", "random": "random",
    "rate": "rate", "delay": "delay_ns", "factor": "factor", "offset": "offset_ns",
}  # fmt: skip
"""Keys of faults, and their names in the simulation."""

Rate = Annotated[float, Field(ge=0, lt=1)]


class FaultConfig(Section, ABC):
    """When a fault is active."""

    start: TimeFromZero = 0
    """Virtual time at which it begins."""
    end: Duration | None = None
    """Virtual time at which it ends; by default with the run."""
    every: Duration | None = None
    """Time from one start of the span to the next; by default it comes once."""
    random: bool = False
    """In each period of *every* the span begins at a moment drawn from the run's seed."""

    @model_validator(mode="after")
    def _means_something(self) -> FaultConfig:
        self.rows()
        return self

    @abstractmethod
    def rows(self) -> tuple[Fault, ...]:
        """Return what it is for the simulation; raise :exc:`NetworkError` if that means nothing."""

    @property
    def _values(self) -> dict[str, Any]:
        """What, when and how much, by its names in the simulation."""
        return {name: getattr(self, key) for key, name in _NAMES.items() if hasattr(self, key)}


class LinkFaultConfig(FaultConfig):
    """A fault of links: from sites to sites, or both ways between some and others."""

    kind: LinkKind
    """What goes wrong; it decides which of rate, delay and factor there are."""
    sender: str | None = None
    """Pattern of the sending sites' names such as ``joiner.*``; by default all."""
    receiver: str | None = None
    """Pattern of the receiving sites' names; by default all."""
    between: tuple[str, str] | None = None
    """Two patterns, in place of sender and receiver: the fault is active both ways."""

    def rows(self) -> tuple[LinkFault, ...]:
        """Return one row for each direction."""
        ways = {(self.sender or "*", self.receiver or "*"): None}
        if self.between:
            if self.sender or self.receiver:
                raise NetworkError("between names both ends: leave out sender and receiver")
            ways = dict.fromkeys((self.between, self.between[::-1]))
        return tuple(LinkFault(sender=a, receiver=b, **self._values) for a, b in ways)


class Loss(LinkFaultConfig):
    """Frames that are lost."""

    kind: Literal["loss"]
    rate: Rate
    """Share of the frames that are hit."""


class Duplicate(LinkFaultConfig):
    """Frames that arrive twice."""

    kind: Literal["duplicate"]
    rate: Rate
    """Share of the frames that are hit."""


class Reorder(LinkFaultConfig):
    """Frames that come up to *delay* later, and are overtaken meanwhile."""

    kind: Literal["reorder"]
    rate: Rate
    """Share of the frames that are hit."""
    delay: Duration
    """How much later frames come."""


class Delay(LinkFaultConfig):
    """A delay spike: every frame takes *delay* longer."""

    kind: Literal["delay"]
    delay: Duration
    """How much later frames come."""


class Partition(LinkFaultConfig):
    """No frame gets through, until it heals."""

    kind: Literal["partition"]


class Bandwidth(LinkFaultConfig):
    """The bandwidth, multiplied by *factor*."""

    kind: Literal["bandwidth"]
    factor: Annotated[float, Field(ge=1e-6, le=1e6)]
    """What the bandwidth is multiplied by."""


class ActorFaultConfig(FaultConfig):
    """A fault of actors: of those whose name, and whose site's name, the patterns match."""

    kind: ActorKind
    """What goes wrong; it decides which of factor and offset there are."""
    actor: str | None = None
    """Pattern of the actors' names such as ``joiner.*``; by default all."""
    site: str | None = None
    """Pattern of the names of the sites that they are at; by default all."""

    def rows(self) -> tuple[ActorFault, ...]:
        """Return its one row."""
        return (ActorFault(actor=self.actor or "*", site=self.site or "*", **self._values),)


class Pause(ActorFaultConfig):
    """A process that pauses, as in a long garbage collection; messages still arrive."""

    kind: Literal["pause"]


class Slow(ActorFaultConfig):
    """Service that takes *factor* times as long."""

    kind: Literal["slow"]
    factor: Annotated[float, Field(ge=1, le=1e6)]
    """How many times as long service takes."""


class Skew(ActorFaultConfig):
    """A clock that is ahead by *offset*; behind where it is negative (nanoseconds)."""

    kind: Literal["skew"]
    offset: Nanoseconds
    """How far a clock is ahead."""


class Stall(ActorFaultConfig):
    """A source without new data; its tuples come into being meanwhile, and are late."""

    kind: Literal["stall"]


class Crash(ActorFaultConfig):
    """A process that is gone from *start* to *end*, and then starts again."""

    kind: Literal["crash"]


AnyFault = Annotated[
    Loss
    | Duplicate
    | Reorder
    | Delay
    | Partition
    | Bandwidth
    | Pause
    | Slow
    | Skew
    | Stall
    | Crash,
    Field(discriminator="kind"),
]


class RunConfig(Section):
    """One run, whole."""

    name: Name = "custom"
    """What it is called."""
    title: str = ""
    """One line about it."""
    figure: str | None = None
    """Which figure or table of a paper it belongs to."""
    topology: Annotated[str, BeforeValidator(name_topology)] = "auto"
    """The system; ``auto`` takes one that fits the query."""
    parameters: dict[str, Annotated[Any, BeforeValidator(_storable)]] = {}
    """Parameters of the system."""
    query: str
    """The query's text."""
    bind: dict[str, Bound] = {}
    """Values of the query's placeholders."""
    streams: tuple[StreamConfig, ...]
    """Where the query's streams come from."""
    rows: PositiveInt64 | None = None
    """Tuples taken of each stream; by default all."""
    feeding: FeedingConfig = FeedingConfig()
    """How fast tuples are sent, in what order and in how large messages."""
    network: Annotated[NetworkConfig, BeforeValidator(with_preset)] = NetworkConfig()
    """What messages go over."""
    faults: tuple[AnyFault, ...] = ()
    """What goes wrong meanwhile, in virtual time."""
    recovery: RecoveryConfig | None = None
    """How a system recovers from crashes in virtual time, or a live one from the loss of a process;
    without it there are no snapshots, unless an actor crashes."""
    profile: str = "default"
    """What work costs in virtual time: a profile of ours, or a file of ``joinsim calibrate``."""
    sink: SinkPlace = "partitioned"
    """``partitioned``: results stay at the PEs that find them. ``single``: all are sent to one
    sink, on a site of its own."""
    measured: tuple[Annotated[int, Field(ge=0)], PositiveInt64] | None = None
    """First arrival that ``throughput_tps``, ``busy_seconds``, ``capacity_tps``, ``balance``,
    ``result_ms`` and, in virtual time, ``kernel_seconds`` and ``kernel_tps`` are of, and the one
    past the last; by default all. So a study can leave out what fills the windows, or measure
    nothing else."""
    backend: Literal["inline", "ray"] = "inline"
    """Where actors live: in this process, or in processes of Ray."""
    clock: Literal["virtual", "live"] = "virtual"
    """Virtual time, or live: the machine's clock, on Ray alone."""
    processes: Processes = 2
    """How many processes of Ray share the actors; ``each`` gives every actor one of its own. Inline
    it matters only where ``network.sites`` is ``processes``."""
    seed: Annotated[int, NUMBER] = Field(default=1, ge=0, le=MAX_SEED)
    """What all that is random is drawn from."""
    pairs: bool = False
    """Whether pairs are written, or counted alone."""
    silence: Patience = 60_000_000_000
    """For how long a process of Ray may give no sign of life before it is taken for dead."""
    encrypt: bool = False
    """Whether what processes send each other from machine to machine is encrypted."""
    survey: AnySurvey | None = None
    """What to find out instead of running a query; for the points of a study or a sweep."""
    scales: dict[Literal[SCALES], dict[str, Any]] = {}  # type: ignore[valid-type]
    """Per scale, what it changes of all this."""

    @property
    def query_line(self) -> str:
        """The query's text on one line, without comments."""
        return on_one_line(self.query)

    def written(self, *, without: Iterable[str] = ()) -> dict[str, Any]:
        """Return its keys as a file has them, but for *without* and those at their defaults."""
        exclude = {"scales", *without}  # what a scale changes has been changed
        return self.model_dump(mode="json", exclude_defaults=True, exclude=exclude)

    @model_validator(mode="after")
    def _streams_of_their_own(self) -> RunConfig:
        """Refuse two synthetic streams with fields in common: a join of a stream with a copy."""
        drawn: dict[int, int] = {}
        for place, stream in enumerate(self.streams):
            for seed in stream.synthetic.seeds if stream.synthetic else ():
                other = drawn.setdefault(seed, place)
                if other != place:
                    raise ValueError(
                        f"streams {other + 1} and {place + 1} both draw a field from seed {seed} "
                        "(each field has the next seed), so that its values are the same in both: "
                        "set seeds that are farther apart"
                    )
        return self

    @model_validator(mode="after")
    def _means_something(self) -> RunConfig:
        """Refuse keys that do not go together."""
        if self.clock == "live" and self.backend != "ray":
            raise ValueError(
                "clock = 'live' is for actors in processes of their own: set backend = 'ray' too"
            )
        if self.clock == "live" and self.recovery and self.recovery.guarantee != "exactly_once":
            raise ValueError(
                f"recovery.guarantee = {self.recovery.guarantee!r} is for virtual time: a live run "
                "recovers exactly once, or ends with its processes where there is no recovery"
            )
        if self.clock == "live" and self.faults:
            raise ValueError("faults are of virtual time: leave out clock = 'live'")
        if self.faults and self.network.transport == "none" and self.backend == "ray":
            raise ValueError(
                "without a transport a message may arrive twice, and a process of Ray has it once: "
                "set backend = 'inline', or network.transport = 'reliable'"
            )
        if self.measured is not None and self.measured[0] >= self.measured[1]:
            raise ValueError(
                f"measured = {list(self.measured)}: the first arrival must come before the end"
            )
        return self

    @model_validator(mode="before")
    @classmethod
    def _survey_has_no_query(cls, values: Any) -> Any:
        """Ask for no query and no streams where a survey has its own."""
        if isinstance(values, dict) and values.get("survey") is not None:
            return {"query": "", "streams": ()} | values
        return values


def build_network(config: NetworkConfig, sites: Iterable[str]) -> nx.Graph:
    """Return the network of *config* over *sites*.

    Raise :exc:`NetworkError` naming a link between sites that are not there.
    """
    preset = PRESETS[config.preset]
    kind = config.latency_kind or ("uniform" if config.jitter else preset.latency.kind)
    base = _changed(replace(preset, latency=replace(preset.latency, kind=kind)), config)
    if config.mesh:
        network = full_mesh(sites, base, cores=config.cores)
    else:
        network = sites_without_links(sites, cores=config.cores)
    for link in config.links:
        _check_sites(link, network)
    place = {site: at for at, site in enumerate(network)}
    # In the order of the sites, which decides between two paths of as many links.
    ends = sorted({tuple(sorted((place[link.a], place[link.b]))) for link in config.links})
    names = list(network)
    network.add_edges_from(((names[a], names[b]) for a, b in ends), link=base)
    for link in config.links:
        edge = network.edges[link.a, link.b]
        edge["link"] = _changed(edge["link"], link)
    return network


def _changed(link: Link, section: NetworkConfig | LinkConfig) -> Link:
    """Return *link* with what a section sets of it."""
    latency = link.latency
    if section.latency is not None:
        # A latency given alone is the whole story: the preset's jitter does not belong to it.
        latency = replace(latency, mean_ns=section.latency, spread_ns=0)
    if section.jitter is not None:
        if isinstance(section, LinkConfig) and latency.kind == "constant":
            latency = replace(latency, kind="uniform")
        latency = replace(latency, spread_ns=section.jitter)
    return replace(link, latency=latency, bandwidth_bps=section.bandwidth or link.bandwidth_bps)


def _check_sites(link: LinkConfig, network: nx.Graph) -> None:
    for site in (link.a, link.b):
        if site not in network:
            raise NetworkError(
                f"network.links: there is no site {site!r}; there are {', '.join(network)}"
            )
    if link.a == link.b:
        raise NetworkError(f"network.links: {link.a!r} to itself is not a link")
