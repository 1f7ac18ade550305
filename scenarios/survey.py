"""The ``[survey]`` sections of scenarios: what each kind of survey varies, and its defaults."""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import core_schema

from joins.errors import suggest

if TYPE_CHECKING:
    from joins.indexes.panjoin.lookup import StructureName
    from joins.window_join.window_join_spec import IndexName
    from netsim.cost import CostProfile
    from scenarios.calibration.window_workload import WindowWorkload
else:
    IndexName = StructureName = str  # see `_OneOf`


Kind = Literal["simulated", "measured", "derived"]
"""Where a figure comes from: virtual time and counted work, this machine's clock, or a model."""


class _OneOf:
    """For a key: the names in a registry, ``module:variable``, and *others*.

    They are looked up as one is named: to load them takes a while.
    """

    def __init__(self, registry: str, *others: str) -> None:
        self._registry, self._others = registry, others

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return core_schema.no_info_after_validator_function(self._check, handler(str))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {"enum": self._names(), "type": "string"}

    def _names(self) -> list[str]:
        return [*pkgutil.resolve_name(self._registry), *self._others]

    def _check(self, name: str) -> str:
        if name not in self._names():
            raise ValueError(suggest(name, self._names()))
        return name


@dataclass(frozen=True, kw_only=True)
class Surveyed:
    """The result of a survey.

    Attributes
    ----------
    record
        Figures, as of a run (see `scenarios.measures`).
    checked, passed
        A condition that must hold if they are right, in words, and whether it does.
    """

    record: dict[str, Any]
    checked: str
    passed: bool


class Survey(BaseModel):
    """What to measure without a run; the field ``of`` names the kind.

    Attributes
    ----------
    clocked, estimated
        Which figures of its record are read from this machine's clock, and which are computed from
        a model, without anything executed: their names, or the first parts of those.
    assumed
        Names of `topologies.assumptions` that its figures rest on, where work costs what they say.
    taken_by
        The function that takes it, ``module:function`` of this package: as text, since the modules
        load all indexes, which runs need not.
    of
        Which survey it is; it decides which keys there are.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    clocked: ClassVar[tuple[str, ...]] = ()
    estimated: ClassVar[tuple[str, ...]] = ()
    assumed: ClassVar[tuple[str, ...]] = ()
    taken_by: ClassVar[str]

    @property
    def memory_bytes(self) -> int:
        """About how much memory it takes, where that is so much that it may not be there."""
        return 0

    def kind_of(self, measure: str) -> Kind:
        """Return where a figure of the record comes from."""
        if any(f"{measure}.".startswith(f"{name}.") for name in self.clocked):
            return "measured"
        estimated = any(f"{measure}.".startswith(f"{name}.") for name in self.estimated)
        return "derived" if estimated else "simulated"


def _several(value: Any) -> Any:
    """Take a single value as a choice of one."""
    return value if isinstance(value, (list, tuple)) or value is None else (value,)


Choice = Annotated[tuple[float, ...] | None, BeforeValidator(_several)]
JoinGraph = Literal["chain", "star", "cycle", "fully connected"]
WindowBits = Annotated[int, Field(ge=6, le=26)]
"""A window of 2 to the power of so many tuples."""
MergeRatio = Annotated[float, Field(gt=0, le=1)]
Threads = Annotated[int, Field(ge=0, le=64)]
"""Real threads that share an index; 0 is one without locks."""
Passes = Annotated[int, Field(ge=1, le=100)]


class PlanSurvey(Survey):
    """How much longer greedy plans of random queries take than the best.

    ``executed`` has what plans took when they were executed in memory, ``estimated`` what the cost
    formulas say, both per second of arrivals. Of either, ``greedy_s`` and ``exhaustive_s`` are the
    means; ``ratio`` has mean, median, deviation, max and min of the first over the second of each
    query; ``share.-10``, ``share.0``, ``share.10`` ... are how many percent of the queries take so
    many percent longer by the greedy plan, rounded to tens.

    Attributes
    ----------
    join_graph, streams
        Kind of the join graph, and how many streams it has.
    queries
        How many, each drawn anew.
    runs
        Seconds of arrivals for which each plan is executed, one after the other once windows are
        full; its time is their mean.
    fields, selectivity, rate_tps, window_s
        What every stream draws from, several values or one; None takes Table 2's (see
        `topologies.semijoins.random_queries.QueryValues`).
    latency_s, bandwidth_bps
        Of every link; None takes the paper's 25 ms and 1,024 kb/s.
    """

    estimated: ClassVar[tuple[str, ...]] = ("estimated",)
    assumed: ClassVar[tuple[str, ...]] = ("messages", "free messages")
    taken_by: ClassVar[str] = "plan_surveys:take_plans"

    of: Literal["plans"] = "plans"
    join_graph: JoinGraph = "chain"
    streams: int = Field(default=4, ge=2, le=8)
    queries: int = Field(default=100, ge=1)
    runs: int = Field(default=10, ge=1)
    fields: Choice = None
    selectivity: Choice = None
    rate_tps: Choice = None
    window_s: Choice = None
    latency_s: Annotated[float, Field(gt=0)] | None = None
    bandwidth_bps: Annotated[int, Field(ge=1)] | None = None


class IndexStepsSurvey(Survey):
    """What the steps of a join take while one full window is replaced, two matches a tuple.

    ``counted_ns`` and ``processor_ns`` are times a tuple, virtual ones (of the work that was
    counted, at the prices of the index's join) and this processor's: of ``insert``, ``delete``,
    ``search`` (the way to where a range begins), ``scan`` (what its matches add), ``merge`` and
    ``total``. ``merges`` likewise has ``counted_ms`` and ``processor_ms`` of one merge,
    ``counted_ns`` and ``processor_ns`` of one entry of the tree that is merged, and what share of
    all time merging takes, ``counted_percent`` and ``processor_percent``; all 0 where nothing is
    merged.

    Attributes
    ----------
    index, window_bits
        Of what, and its window: 2^*window_bits* tuples.
    """

    clocked: ClassVar[tuple[str, ...]] = (
        "processor_ns",
        "merges.processor_ms",
        "merges.processor_ns",
        "merges.processor_percent",
    )
    assumed: ClassVar[tuple[str, ...]] = ("caches",)
    taken_by: ClassVar[str] = "index_surveys:take_index_steps"

    of: Literal["index steps"] = "index steps"
    index: Literal["b_plus_tree", "im_tree", "pim_tree"] = "pim_tree"
    window_bits: WindowBits = 16


class InsertSpreadSurvey(Survey):
    """How the inserts of the second phase are spread, on average over its windows.

    ``fullest_percent`` of them go to the subindex that gets the most; ``idle_percent`` of the
    subindexes get a tenth of the mean or less. ``share.10`` ... ``share.100`` are how many percent
    of the inserts the first 10 to 100 % of the subindexes get, those with the fewest first.

    Attributes
    ----------
    shift
        How far the mean moves over the phase, in standard deviations.
    window_bits
        The window holds 2^*window_bits* tuples; so many are inserted from one merge to the next.
    """

    assumed: ClassVar[tuple[str, ...]] = ("speed of a drift",)
    taken_by: ClassVar[str] = "index_surveys:take_insert_spread"

    of: Literal["insert spread"] = "insert spread"
    shift: Annotated[float, Field(ge=0)] = 0.0
    window_bits: WindowBits = 14


class MemoryTrafficSurvey(Survey):
    """What the work of a join over full windows comes to in bytes, two matches a tuple.

    ``gb_s`` are gigabytes per virtual second: ``read``, ``written`` and ``total``;
    ``written_percent`` is the second's share of the last. A comparison reads a key, an insert
    writes a key and a position, a move does both, a copy as much as it copies.

    Attributes
    ----------
    threads, cores
        That share the index.
    window_bits
        The windows are 2^*window_bits* tuples each.
    """

    assumed: ClassVar[tuple[str, ...]] = (
        "caches",
        "atomic operations",
        "hyper-threads",
        "memory of threads",
    )
    taken_by: ClassVar[str] = "index_surveys:take_memory_traffic"

    of: Literal["memory traffic"] = "memory traffic"
    threads: Annotated[int, Field(ge=1, le=1000)] = 16
    cores: Annotated[int, Field(ge=1)] = 8
    window_bits: WindowBits = 14


class _SpeedSurvey(Survey):
    """How many tuples something takes a second on this machine.

    ``tuples_s`` are those tuples, ``median``, ``least`` and ``most`` of the passes;
    ``tuple_ns.median`` is the time of one, and ``match_rate`` how many matches a tuple has, if any
    are looked for. ``tuples``, ``passes``, ``threads`` and ``clock`` say what was run: processor
    time of one thread, or wall time of several.
    """

    clocked: ClassVar[tuple[str, ...]] = ("tuples_s", "tuple_ns")


class WindowJoinSpeedSurvey(_SpeedSurvey):
    """How fast a window join is on this machine, its windows full.

    Its record has ``task_us.median``, too, the time of a task, of which each thread has one at a
    time; ``matches``, those of all tuples; and ``window``, the tuples of the larger one.

    Attributes
    ----------
    index, merge_ratio, insertion_depth, chain_length, merge, threads, task_rows, lookup_rows
        Which join, as parameters of `ibwj`; threads are real ones, and 0 is one without locks.
    window_bits, other_bits
        The windows hold 2^*window_bits* tuples; that of S 2^*other_bits*, where that is given.
    match_rate, self_join, share_percent, values
        What is joined, see `scenarios.calibration.window_workload.WindowWorkload`.
    batch_rows
        Arrivals of a call.
    passes
        How often the windows are replaced and timed.
    """

    clocked: ClassVar[tuple[str, ...]] = (*_SpeedSurvey.clocked, "task_us")
    taken_by: ClassVar[str] = "index_surveys:take_window_join_speed"

    of: Literal["window join speed"] = "window join speed"
    index: Annotated[IndexName, _OneOf("joins.window_join.window_join_spec:INDEXES")] = "pim_tree"
    merge_ratio: MergeRatio = 0.5
    insertion_depth: Annotated[int, Field(ge=0, le=8)] = 2
    chain_length: Annotated[int, Field(ge=2, le=64)] = 2
    merge: Literal["nonblocking", "blocking"] = "nonblocking"
    threads: Threads = 0
    task_rows: Annotated[int, Field(ge=1)] | None = None
    lookup_rows: Annotated[int, Field(ge=1, le=16)] = 16
    window_bits: WindowBits = 16
    other_bits: WindowBits | None = None
    match_rate: Annotated[float, Field(gt=0)] = 2.0
    self_join: bool = False
    share_percent: Annotated[int, Field(ge=1, le=99)] = 50
    values: Literal["uniform", "normal", "gamma(3, 3)", "gamma(1, 5)"] = "uniform"
    batch_rows: Annotated[int, Field(ge=1)] = 8192
    passes: Passes = 1

    @property
    def memory_bytes(self) -> int:
        """About how much memory the indexes of its windows take, and what checks the matches."""
        windows = self.workload.windows[: 1 if self.self_join else 2]
        entry_bytes = _ENTRY_BYTES.get(self.index, max(_ENTRY_BYTES.values()))
        return sum(windows) * (entry_bytes + _CHECKING_BYTES)

    @property
    def workload(self) -> WindowWorkload:
        """What is joined."""
        from scenarios.calibration.window_workload import WindowWorkload

        other = self.window_bits if self.other_bits is None else self.other_bits
        return WindowWorkload(
            windows=(1 << self.window_bits, 1 << other),
            **self.model_dump(include={"match_rate", "self_join", "share_percent", "values"}),
        )


_ENTRY_BYTES = {
    "pim_tree": 96,
    "im_tree": 96,
    "b_plus_tree": 64,
    "bw_tree": 136,
    "ib_chain": 72,
    "b_chain": 104,
    "nested_loop": 32,
    "sorted_runs": 40,
}
"""Bytes of memory that a tuple of a window takes, as processes grow by with windows of 2^20; an
index that was not measured so is taken to need most."""
_CHECKING_BYTES = 96
"""Bytes that it takes beside that while the last matches are checked: its columns, and sorted."""


class DriftSpeedSurvey(Survey):
    """How fast a self join over a PIM-Tree is while its values drift, on this machine.

    ``pace_tps.1`` ... ``pace_tps.20`` are the tuples that it takes a second in each window of
    tuples, the median of the passes: in the first four the mean of the normal values is fixed, in
    the next ten it moves, then it is fixed again. ``threads`` and ``clock`` say what was run:
    processor time of one thread, or wall time of several.

    Attributes
    ----------
    shift
        How far the mean moves, in standard deviations.
    window_bits
        The window holds 2^*window_bits* tuples.
    threads, merge_ratio
        Real threads that share the index; 0 is one without locks.
    batch_rows
        Arrivals of a call.
    passes
        How often all is joined.
    """

    clocked: ClassVar[tuple[str, ...]] = ("pace_tps",)
    assumed: ClassVar[tuple[str, ...]] = ("speed of a drift",)
    taken_by: ClassVar[str] = "index_surveys:take_drift_speed"

    of: Literal["drift speed"] = "drift speed"
    shift: Annotated[float, Field(ge=0)] = 0.0
    window_bits: Annotated[int, Field(ge=6, le=24)] = 16
    threads: Threads = 2
    merge_ratio: MergeRatio = 1.0
    batch_rows: Annotated[int, Field(ge=1)] = 8192
    passes: Passes = 1


class PlanningSpeedSurvey(Survey):
    """How long it takes to plan a join by semijoins on this machine.

    ``plan_ms`` is the processor time of a plan, ``median``, ``least`` and ``most`` of the queries,
    given their statistics; ``queries`` and ``clock`` say what was run.

    Attributes
    ----------
    search
        Which search.
    join_graph, streams, queries
        Random queries of Table 2: kind of the join graph, its streams, and how many queries.
    """

    clocked: ClassVar[tuple[str, ...]] = ("plan_ms",)
    taken_by: ClassVar[str] = "plan_surveys:take_planning_speed"

    of: Literal["planning speed"] = "planning speed"
    search: Literal["greedy", "exhaustive"] = "greedy"
    join_graph: JoinGraph = "fully connected"
    streams: int = Field(default=4, ge=2, le=8)
    queries: int = Field(default=9, ge=1)


class SubwindowSpeedSurvey(_SpeedSurvey):
    """How fast a subwindow of PanJoin, or a plain B+-tree in its place, is on this machine.

    Attributes
    ----------
    structure, tuples, partitions, buffer
        Which, N_Sub, P, and the room of a BI-Sort's insertion buffer.
    batch
        N_Bat: sorted tuples that are inserted together.
    selectivity, join
        S, the matches of a tuple that probes with a band or a value; None inserts.
    probes
        Tuples that probe, or as many as list that many matches.
    passes
        How often it is filled, or probed.
    """

    taken_by: ClassVar[str] = "index_surveys:take_subwindow_speed"

    of: Literal["subwindow speed"] = "subwindow speed"
    structure: Annotated[
        StructureName | Literal["b_plus_tree"],
        _OneOf("joins.indexes.panjoin.subwindow:STRUCTURES", "b_plus_tree"),
    ] = "bi_sort"
    tuples: Annotated[int, Field(ge=64, le=1 << 26)] = 1 << 20
    partitions: Annotated[int, Field(ge=1)] = 1 << 13
    buffer: Annotated[int, Field(ge=1)] | None = None
    batch: Annotated[int, Field(ge=1)] = 1 << 16
    selectivity: Annotated[int, Field(ge=1)] | None = None
    join: Literal["band", "equi"] = "band"
    probes: Annotated[int, Field(ge=1)] = 1 << 15
    passes: Passes = 3

    @model_validator(mode="after")
    def _fits(self) -> SubwindowSpeedSurvey:
        if self.partitions > self.tuples:
            raise ValueError(f"partitions = {self.partitions}: at most {self.tuples}, the tuples")
        return self

    @property
    def memory_bytes(self) -> int:
        """About how much memory the subwindow and its sorted copy take."""
        return 100 * self.tuples


class SegmentSpeedSurvey(_SpeedSurvey):
    """How fast a sealed segment of SPO-Join is probed on this machine.

    Attributes
    ----------
    structure, tuples
        Which immutable structure, and how many tuples are sealed in it: a slide.
    match_share
        Of all pairs, how many match.
    probes, passes
        Tuples that probe, and how often.
    """

    taken_by: ClassVar[str] = "index_surveys:take_segment_speed"

    of: Literal["segment speed"] = "segment speed"
    structure: Annotated[str, _OneOf("joins.indexes.structures:SEGMENTS")] = "po_join"
    tuples: Annotated[int, Field(ge=1, le=10**7)] = 100_000
    match_share: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    probes: Annotated[int, Field(ge=1)] = 500
    passes: Passes = 3

    @property
    def memory_bytes(self) -> int:
        """About how much memory the segment and its columns take; a prefix grid has most."""
        return 200 * self.tuples


AnySurvey = Annotated[
    PlanSurvey
    | IndexStepsSurvey
    | MemoryTrafficSurvey
    | InsertSpreadSurvey
    | WindowJoinSpeedSurvey
    | DriftSpeedSurvey
    | PlanningSpeedSurvey
    | SubwindowSpeedSurvey
    | SegmentSpeedSurvey,
    Field(discriminator="of"),
]


def take_survey(survey: AnySurvey, *, seed: int, profile: CostProfile) -> Surveyed:
    """Return the figures of *survey*.

    *profile* is what work costs in virtual time. Surveys that time this machine join the same keys
    for every *seed*.
    """
    take = pkgutil.resolve_name(f"scenarios.{survey.taken_by}")
    surveyed: Surveyed = take(survey, seed, profile)
    return surveyed
