"""Surveys: figures of a paper that need no query, no network and no run; here their keys.

What takes a survey is imported when it is taken: it loads the indexes, which other runs need not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

if TYPE_CHECKING:
    from netsim.cost import CostProfile


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
    """What to measure without a run; the field ``of`` names the kind."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _several(value: Any) -> Any:
    """Take a single value as a choice of one."""
    return value if isinstance(value, (list, tuple)) or value is None else (value,)


Choice = Annotated[tuple[float, ...] | None, BeforeValidator(_several)]


class PlanSurvey(Survey):
    """How much greedy plans of random queries cost beside the best.

    ``greedy_s`` and ``exhaustive_s`` are the means of the plans' estimated execution times per
    second of arrivals; ``ratio`` has mean, median, deviation and max of the first over the second.

    Attributes
    ----------
    join_graph, streams
        Kind of the join graph, and how many streams it has.
    queries
        How many, each drawn anew.
    fields, selectivity, rate_tps, window_s
        What every stream draws from, several values or one; None takes Table 2's (see
        `topologies.semijoins.random_queries.QueryValues`).
    """

    of: Literal["plans"] = "plans"
    join_graph: Literal["chain", "star", "cycle", "fully connected"] = "chain"
    streams: int = Field(default=4, ge=2, le=8)
    queries: int = Field(default=100, ge=1)
    fields: Choice = None
    selectivity: Choice = None
    rate_tps: Choice = None
    window_s: Choice = None

    def take(self, *, seed: int, profile: CostProfile) -> Surveyed:
        """Return the figures; *profile* is what work costs in virtual time."""
        from scenarios.surveys.plan_survey import take

        return take(self, seed)


class IndexStepsSurvey(Survey):
    """What the steps of a join take while one full window is replaced, two matches a tuple.

    ``counted_ns`` and ``processor_ns`` are times a tuple, virtual ones of the work that was counted
    and this processor's: of ``insert``, ``delete``, ``search`` (the way to where a range begins),
    ``scan`` (what its matches add), ``merge`` and ``total``. ``merges`` likewise has ``counted_ms``
    and ``processor_ms`` of one merge, ``counted_ns`` and ``processor_ns`` of one entry of the tree
    that is merged, and what share of all time merging takes, ``counted_percent`` and
    ``processor_percent``; all 0 where nothing is merged.

    Attributes
    ----------
    index, window_bits
        Of what, and its window: 2^*window_bits* tuples.
    """

    of: Literal["index steps"] = "index steps"
    index: Literal["b_plus_tree", "im_tree", "pim_tree"] = "pim_tree"
    window_bits: Annotated[int, Field(ge=6, le=26)] = 16

    def take(self, *, seed: int, profile: CostProfile) -> Surveyed:
        """Return the figures; *profile* is what work costs in virtual time."""
        from scenarios.surveys.index_surveys import take_index_steps

        return take_index_steps(self, seed, profile)


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

    of: Literal["insert spread"] = "insert spread"
    shift: Annotated[float, Field(ge=0)] = 0.0
    window_bits: Annotated[int, Field(ge=6, le=26)] = 14

    def take(self, *, seed: int, profile: CostProfile) -> Surveyed:
        """Return the figures; *profile* is what work costs in virtual time."""
        from scenarios.surveys.index_surveys import take_insert_spread

        return take_insert_spread(self, seed, profile)


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

    of: Literal["memory traffic"] = "memory traffic"
    threads: Annotated[int, Field(ge=1, le=1000)] = 16
    cores: Annotated[int, Field(ge=1)] = 8
    window_bits: Annotated[int, Field(ge=6, le=26)] = 14

    def take(self, *, seed: int, profile: CostProfile) -> Surveyed:
        """Return the figures; *profile* is what work costs in virtual time."""
        from scenarios.surveys.index_surveys import take_memory_traffic

        return take_memory_traffic(self, seed, profile)


AnySurvey = Annotated[
    PlanSurvey | IndexStepsSurvey | MemoryTrafficSurvey | InsertSpreadSurvey,
    Field(discriminator="of"),
]
