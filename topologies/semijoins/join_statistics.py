"""What a plan is costed with: streams, join attributes, links (stream semijoin paper, Table 4).

They are measured from tuples of the streams, for a query over a network (`Measuring`), or drawn:
`topologies.semijoins.random_queries`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import networkx as nx
import numpy as np

from actors.protocol import NS_PER_S
from joins.batch import Batch, Schema
from joins.queries.query import JoinQuery, Predicate
from joins.queries.windows import Window
from joins.semijoins.value_sample import TupleSample
from netsim.cost import CostProfile
from topologies.semijoins.plans import join_graph
from topologies.topology import Job, TopologyError


@dataclass(frozen=True, kw_only=True)
class JoinStream:
    """One stream."""

    name: str
    """As the query spells it."""
    rate_tps: float
    """r_i, tuples a second."""
    window_rows: float
    """w_i, tuples in its window."""
    full_bytes: float
    """F_Si, size of a tuple."""

    def __post_init__(self) -> None:
        if min(self.rate_tps, self.window_rows, self.full_bytes) <= 0:
            raise TopologyError(
                f"stream {self.name}: {self.rate_tps:g} tuples/s, a window of "
                f"{self.window_rows:g} tuples of {self.full_bytes:g} bytes: all must be above 0"
            )


class OutputValues(NamedTuple):
    """Values of a join attribute in outputs: those that all streams of an output have."""

    has: np.ndarray
    """Whether an output has the attribute, bool, (outputs)."""
    selectivity: np.ndarray
    """The chance that a tuple of each of its streams all have the same value, (outputs)."""
    distinct: np.ndarray
    """The number of its distinct values, (outputs); 1 without the attribute."""
    frequency: np.ndarray
    """The share of its tuples that have a value, (outputs, values)."""

    def shared(self, other: OutputValues) -> np.ndarray:
        """Return whether both of two outputs have the attribute, (outputs, others)."""
        has_both: np.ndarray = self.has[:, None] & other.has
        return has_both

    def shares(self, other: OutputValues) -> tuple[np.ndarray, np.ndarray]:
        """Return f_12 and f_21 between outputs and *other* ones, (outputs, others).

        They are the share of an output's tuples whose value the other has, and of the other's whose
        value the output has; 1 where either has no such attribute.
        """
        shared = self.shared(other)
        there = self.frequency @ (other.frequency > 0).T
        back = (self.frequency > 0) @ other.frequency.T
        return np.where(shared, there, 1.0), np.where(shared, back, 1.0)


@dataclass(frozen=True, kw_only=True)
class JoinAttribute:
    """Fields that equalities make one attribute: their values, however skewed, of any streams."""

    distinct: np.ndarray
    """d_i = 1/f_i, the number of distinct values in each stream; 0 where it has no such field."""
    frequency: np.ndarray
    """Of each value in each stream, (streams, values), for values of two streams or more; a row
    adds up to the share of tuples with such values."""
    partial_bytes: float = 8.0
    """P, size of a value."""

    @classmethod
    def of_columns(
        cls, columns: Mapping[int, np.ndarray], streams: int, partial_bytes: float = 8.0
    ) -> JoinAttribute:
        """Return the attribute with the values in *columns*, by stream, of so many streams."""
        counts = {
            stream: np.unique(column, return_counts=True) for stream, column in columns.items()
        }
        everywhere = np.concatenate([values for values, _ in counts.values()])
        values, holders = np.unique(everywhere, return_counts=True)
        common = values[holders > 1]
        frequency = np.zeros((streams, len(common)))
        distinct = np.zeros(streams)
        for stream, (own, count) in counts.items():
            distinct[stream] = len(own)
            shared = np.isin(own, common)
            frequency[stream, np.searchsorted(common, own[shared])] = count[shared] / count.sum()
        return cls(distinct=distinct, frequency=frequency, partial_bytes=partial_bytes)

    @classmethod
    def nested(cls, distinct: Sequence[int], partial_bytes: float = 8.0) -> JoinAttribute:
        """Return the paper's assumption: so many uniform values, one stream's among another's."""
        columns = {stream: np.arange(count) for stream, count in enumerate(distinct) if count}
        return cls.of_columns(columns, len(distinct), partial_bytes)

    @property
    def has(self) -> np.ndarray:
        """Which streams have the attribute, bool."""
        return self.distinct > 0

    def of_outputs(self, done: np.ndarray) -> OutputValues:
        """Return the values of outputs of the sets of streams *done*, bool, (outputs, streams)."""
        member = done & self.has
        several = member.sum(axis=1) > 1
        products = np.ones((len(done), self.frequency.shape[1]))
        for stream, frequency in enumerate(self.frequency):
            products[member[:, stream]] *= frequency
        selectivity = np.where(several, products.sum(axis=1), 1.0)
        own = np.where(member, self.distinct, 0).sum(axis=1)
        return OutputValues(
            has=member.any(axis=1),
            selectivity=selectivity,
            distinct=np.maximum(np.where(several, (products > 0).sum(axis=1), own), 1.0),
            frequency=products / np.maximum(selectivity, 1e-300)[:, None],
        )


@dataclass(frozen=True, kw_only=True)
class OtherPredicate:
    """A predicate that is no equality."""

    distinct: dict[int, float]
    """Its two streams, and the number of distinct values of the field of each."""
    selectivity: float
    """ρ, the share of all pairs of tuples that satisfies it."""
    partial_bytes: float = 8.0
    """P, size of a value."""


@dataclass(frozen=True, kw_only=True)
class Prices:
    """What a site's work costs, in seconds: c_p, c_u and c_h."""

    probe_s: float = 1.5e-9
    update_s: float = 1.2e-7
    hash_s: float = 1.5e-9
    """Comparing a tuple with another, inserting or removing one, hashing one."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Where and when sites act, whatever comes; matrices go by the streams' positions."""

    latency_s: np.ndarray
    bandwidth_bps: np.ndarray
    """Matrices over sites, of the link from one to another: seconds, and bits a second."""
    interval_s: float
    """τ, the execution interval."""
    delay_s: float = 0.0
    """δ, by which removals are delayed unless execution is punctuated."""
    punctuated: bool = False
    """Whether a site announces in every interval that it has nothing to ship."""
    header_bytes: float = 32.0
    """What frames a message; the constant c of S(c)."""
    prices: Prices = Prices()
    """What work costs."""


@dataclass(frozen=True, kw_only=True)
class JoinStatistics(Setting):
    """All a plan is costed with.

    Attributes
    ----------
    streams
        In the order of the query.
    attributes, others
        Equalities as attributes, and the other predicates.
    graph
        The join graph.
    """

    streams: tuple[JoinStream, ...]
    attributes: tuple[JoinAttribute, ...]
    graph: nx.Graph
    others: tuple[OtherPredicate, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The streams' names."""
        return tuple(stream.name for stream in self.streams)


_SAMPLE_ROWS = 262_144
"""Tuples read of each stream, from its start."""
_PAIR_ROWS = 1_024
"""Tuples of each stream that a predicate is tried on, all pairs of them."""


def site_prices(profile: CostProfile) -> Prices:
    """Return what a site's work costs by a *profile*."""
    return Prices(
        probe_s=profile.comparison_ps / 1e12,
        update_s=profile.insert_ps / 1e12,
        hash_s=profile.comparison_ps / 1e12,
    )


@dataclass(frozen=True, kw_only=True)
class Measuring:
    """What statistics have beside what tuples show."""

    query: JoinQuery
    schemas: tuple[Schema, ...]
    """The join, and the streams' fields."""
    setting: Setting
    """Where and when sites act."""

    def statistics(
        self, samples: Sequence[Batch], *, feeding_tps: int | None = None
    ) -> JoinStatistics:
        """Return the statistics that consecutive tuples of each stream show, two or more.

        Rates are those of event time, or of streams fed at a rate for all of them, *feeding_tps*;
        windows have as many tuples either way. Raise :exc:`TopologyError` for a join graph in
        parts.
        """
        query = self.query
        streams = [
            _stream(schema, sample, window)
            for schema, sample, window in zip(self.schemas, samples, query.windows, strict=True)
        ]
        speed = feeding_tps / sum(stream.rate_tps for stream in streams) if feeding_tps else 1.0
        return JoinStatistics(
            streams=tuple(replace(s, rate_tps=s.rate_tps * speed) for s in streams),
            attributes=tuple(
                JoinAttribute.of_columns(
                    {stream: samples[stream].fields[name] for stream, name in fields.items()},
                    len(query.streams),
                )
                for fields in tied_fields(query)
            ),
            others=tuple(
                _other(query, self.schemas, predicate, samples)
                for predicate in query.predicates
                if not predicate.operator.is_equality
            ),
            graph=join_graph(query),
            **vars(self.setting),
        )

    def thinned(
        self, whole: JoinStatistics, samples: Sequence[Batch], left: Sequence[Batch]
    ) -> JoinStatistics:
        """Return the statistics of streams of whose *samples* only some tuples are *left*.

        *whole* are those of all of them.
        """
        shares = [len(some) / len(sample) for some, sample in zip(left, samples, strict=True)]
        streams = tuple(
            replace(
                stream, rate_tps=stream.rate_tps * share, window_rows=stream.window_rows * share
            )
            for stream, share in zip(whole.streams, shares, strict=True)
        )
        return replace(self.statistics(left), streams=streams)


def read_samples(job: Job) -> list[Batch]:
    """Return the first tuples of each stream.

    Raise :exc:`TopologyError` for a stream too short to measure.
    """
    samples = []
    for file in job.files:
        taken, rows = [], 0
        for batch in file.batches():
            taken.append(batch)
            rows += len(batch)
            if rows >= _SAMPLE_ROWS:
                break
        check_measurable(file.schema.stream, rows, "has")
        samples.append(Batch.concat(taken))
    return samples


def check_measurable(stream: str, tuples: int, has: str) -> None:
    """Raise :exc:`TopologyError` for a *stream* that *has*, or keeps, too few *tuples*."""
    if tuples < 2:
        raise TopologyError(
            f"stream {stream}: measuring it takes at least 2 tuples; it {has} {tuples}"
        )


def kept_samples(samples: Sequence[Batch], kept: Sequence[TupleSample]) -> list[Batch]:
    """Return what is kept of each stream's sample."""
    return [sample.take(one.of(sample)) for sample, one in zip(samples, kept, strict=True)]


def _stream(schema: Schema, sample: Batch, window: Window) -> JoinStream:
    span_s = max(int(sample.ts[-1]) - int(sample.ts[0]), 1) / NS_PER_S
    rate_tps = (len(sample) - 1) / span_s
    # A window that slides by W_s is on average half a slide shorter than its length.
    mean = window.length - (window.slide / 2 if window.semantics == "sliding" else 0)
    rows = mean if window.kind == "count" else mean / NS_PER_S * rate_tps
    return JoinStream(
        name=schema.stream,
        rate_tps=rate_tps,
        window_rows=rows,
        full_bytes=float(Batch.empty(schema).row_bytes),
    )


def tied_fields(query: JoinQuery) -> list[dict[int, str]]:
    """Return for each join attribute that equalities make its streams, and their fields.

    Of two fields of one stream, which its tuples must have equal, one suffices.
    """
    tied = nx.Graph()
    for predicate in query.predicates:
        if predicate.operator.is_equality:
            left, right = predicate.left, predicate.right
            tied.add_edge((left.stream, left.name), (right.stream, right.name))
    return [dict(sorted(fields)) for fields in nx.connected_components(tied)]


def _other(
    query: JoinQuery,
    schemas: Sequence[Schema],
    predicate: Predicate,
    samples: Sequence[Batch],
) -> OtherPredicate:
    a, b = predicate.left.stream, predicate.right.stream
    place = [p for p in query.predicates if {p.left.stream, p.right.stream} == {a, b}]
    condition = query.conditions_between(a, b, schemas)[place.index(predicate)]
    probe = samples[a].fields[condition.probe_field]
    stored = samples[b].fields[condition.stored_field]
    matching = condition.holds(_spread(probe)[:, None], _spread(stored)[None, :])
    return OtherPredicate(
        distinct={a: float(len(np.unique(probe))), b: float(len(np.unique(stored)))},
        selectivity=float(matching.mean()),
    )


def _spread(values: np.ndarray) -> np.ndarray:
    """Return `_PAIR_ROWS` of *values* at equal distances."""
    return values[np.linspace(0, len(values) - 1, min(_PAIR_ROWS, len(values))).astype(np.int64)]
