"""What a run is: the keys of a scenario of ours or of a person's TOML file, and their types."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from netsim.kernel import INBOX_MESSAGES
from netsim.network import PRESETS
from scenarios.quantities import BitsPerSecond, Nanoseconds
from scenarios.surveys.kinds import AnySurvey
from scenarios.synthetic.stream import SyntheticStream

SCALES = ("smoke", "laptop", "paper")
_MAX_SEED = 2**32 - 1

Count = Annotated[int, Field(ge=1)]


class Section(BaseModel):
    """A section of a configuration: frozen, and a key that means nothing is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class StreamConfig(Section):
    """Where a stream of the query comes from.

    Attributes
    ----------
    name
        As the query spells it; by default the streams of the query in their order.
    files
        Candidates: the first that is found is read, as given, or in one of the data folders.
    synthetic
        What to generate instead of reading files.
    time
        Column or SQL expression of the event time; None looks for one.
    where
        SQL condition on the rows to take; None takes all.
    """

    name: str | None = None
    files: tuple[str, ...] = ()
    synthetic: SyntheticStream | None = None
    time: str | None = None
    where: str | None = None

    @model_validator(mode="after")
    def _one_origin(self) -> StreamConfig:
        if bool(self.files) == bool(self.synthetic):
            raise ValueError("a stream needs either files or synthetic")
        return self


class LinkConfig(Section):
    """One link that differs from the preset: between sites *a* and *b*."""

    a: str
    b: str
    latency: Nanoseconds | None = Field(default=None, ge=0)
    jitter: Nanoseconds | None = Field(default=None, ge=0)
    bandwidth: BitsPerSecond | None = Field(default=None, ge=1)


class NetworkConfig(Section):
    """The network: a preset, and what differs from it.

    Attributes
    ----------
    preset
        Kind of network, see `netsim.network.PRESETS`.
    latency, bandwidth
        Of every link, in place of the preset's.
    jitter, latency_kind
        Spread of the latency, and its distribution.
    cores
        Of each site.
    sites
        Where actors live: each where the system places it, or, as in a live run, in one of the
        run's processes, which are then the sites.
    inbox_messages
        Room of each actor's inbox.
    mesh
        Whether a link joins every two sites; else only those that *links* names.
    links
        Single links that differ.
    """

    preset: Literal[tuple(PRESETS)] = "rack"  # type: ignore[valid-type]
    latency: Nanoseconds | None = Field(default=None, ge=0)
    jitter: Nanoseconds | None = Field(default=None, ge=0)
    latency_kind: Literal["constant", "uniform", "normal", "pareto"] | None = None
    bandwidth: BitsPerSecond | None = Field(default=None, ge=1)
    cores: Count = 1
    sites: Literal["placed", "processes"] = "placed"
    inbox_messages: Count = INBOX_MESSAGES
    mesh: bool = True
    links: tuple[LinkConfig, ...] = ()


class FeedingConfig(Section):
    """How streams are fed in.

    Attributes
    ----------
    batch_rows, rate_tps
        Tuples a message, and tuples per virtual second (None: as fast as they are taken).
    disorder, bounded
        Event time by which tuples arrive late, seeded: the longest delay, uniform; or if not
        *bounded* the mean delay, exponential. For interval joins, and windows of time in a system
        that joins out of order.
    watermark_lag
        How far watermarks stay behind the latest event time; None: as far as *disorder*.
    watermarks, unbounded_state
        Whether streams get watermarks at all; without them its state grows as long as the
        streams do, which must be asked for.
    """

    batch_rows: Count = 500
    rate_tps: Count | None = None
    disorder: Nanoseconds = Field(default=0, ge=0)
    bounded: bool = True
    watermark_lag: Nanoseconds | None = Field(default=None, ge=0)
    watermarks: bool = True
    unbounded_state: bool = False


class RunConfig(Section):
    """One run, whole.

    Attributes
    ----------
    name, title, figure
        What it is called, one line about it, and which figure or table of a paper it belongs to.
    topology, parameters
        The system and what is set of it.
    query, bind
        The query's text, and values of its placeholders.
    streams
        Where the query's streams come from.
    rows
        Tuples taken of each stream; None takes all.
    feeding, network, profile
        How fast, over what, and what work costs.
    measured
        First arrival that ``busy_seconds``, ``capacity_tps`` and ``balance`` are of, and the one
        past the last; None: all. So a study can leave out what fills the windows, or measure
        nothing else.
    backend, clock, processes, seed, pairs
        Where actors live, in virtual time or live (on Ray alone), in how many processes, the run's
        seed, whether pairs are written.
    survey
        What to find out instead of running a query; of a study's points alone.
    scales
        Per scale, what it changes of all this.
    """

    name: str = "custom"
    title: str = ""
    figure: str | None = None
    topology: str = "spo_join"
    parameters: dict[str, Any] = {}
    query: str
    bind: dict[str, str | int] = {}
    streams: tuple[StreamConfig, ...]
    rows: Count | None = None
    feeding: FeedingConfig = FeedingConfig()
    network: NetworkConfig = NetworkConfig()
    profile: str = "default"
    measured: tuple[Annotated[int, Field(ge=0)], Count] | None = None
    backend: Literal["inline", "ray"] = "inline"
    clock: Literal["virtual", "live"] = "virtual"
    processes: Count = 2
    seed: int = Field(default=1, ge=0, le=_MAX_SEED)
    pairs: bool = False
    survey: AnySurvey | None = None
    scales: dict[Literal[SCALES], dict[str, Any]] = {}  # type: ignore[valid-type]

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
    def _live_on_ray(self) -> RunConfig:
        if self.clock == "live" and self.backend != "ray":
            raise ValueError(
                "clock = 'live' is for actors in processes of their own: set backend = 'ray' too"
            )
        return self

    @model_validator(mode="after")
    def _measures_something(self) -> RunConfig:
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
