"""Statistics measured from tuples of the streams, for a query over a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import networkx as nx
import numpy as np

from actors.feed import StreamData
from actors.protocol import HEADER_BYTES
from actors.source import NS_PER_S
from joins.batch import Batch, Schema
from joins.queries.query import JoinQuery, Predicate
from joins.queries.windows import Window
from joins.semijoins.value_sample import TupleSample
from netsim.cost import CostProfile
from netsim.network import link_matrices
from topologies.semijoins.plans import join_graph
from topologies.semijoins.statistics import (
    JoinAttribute,
    JoinStatistics,
    JoinStream,
    MeasuredAttribute,
    OtherPredicate,
    Prices,
    Setting,
)
from topologies.topology import Job, TopologyError

_SAMPLE_ROWS = 262_144
"""Tuples read of each stream, from its start."""
_PAIR_ROWS = 1_024
"""Tuples of each stream that a predicate is tried on, all pairs of them."""


def measured_statistics(
    job: Job, measuring: Measuring, kept: Sequence[TupleSample] = ()
) -> JoinStatistics:
    """Return the statistics of *job*'s streams.

    *kept* is which tuples of each stream are not shed; by default all.

    Raise :exc:`TopologyError` for a join graph in parts, or a stream of which too little is left
    to measure.
    """
    samples = read_samples(job)
    statistics = measuring.statistics(samples, feeding_tps=job.feeding.rate_tps)
    if not kept:
        return statistics
    left = kept_samples(samples, kept)
    for name, sample in zip(job.query.streams, left, strict=True):
        if len(sample) < 2:
            raise TopologyError(f"stream {name}: {len(sample)} tuples kept are too few to measure")
    return measuring.thinned(statistics, samples, left)


def site_prices(profile: CostProfile) -> Prices:
    """Return what a site's work costs by a *profile*."""
    return Prices(
        probe_s=profile.comparison_ps / 1e12,
        update_s=profile.insert_ps / 1e12,
        hash_s=profile.comparison_ps / 1e12,
    )


@dataclass(frozen=True, kw_only=True)
class Measuring:
    """What statistics have beside what tuples show.

    Attributes
    ----------
    query, schemas
        The join, and the streams' fields.
    setting
        Where and when sites act.
    """

    query: JoinQuery
    schemas: tuple[Schema, ...]
    setting: Setting

    @classmethod
    def of_job(
        cls, job: Job, network: nx.Graph, *, interval_ns: int, delay_ns: int, punctuated: bool
    ) -> Measuring:
        """Return it for *job*, each stream at the site of its name in *network*.

        *interval_ns* and *delay_ns* are τ and δ.
        """
        latency_s, bandwidth_bps = link_matrices(network, job.query.streams)
        return cls(
            query=job.query,
            schemas=tuple(file.schema for file in job.files),
            setting=Setting(
                latency_s=latency_s,
                bandwidth_bps=bandwidth_bps,
                interval_s=interval_ns / NS_PER_S,
                delay_s=delay_ns / NS_PER_S,
                punctuated=punctuated,
                header_bytes=HEADER_BYTES,
                prices=site_prices(job.profile),
            ),
        )

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
            attributes=_attributes(query, samples),
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
    return [_read_sample(file) for file in job.files]


def _read_sample(file: StreamData) -> Batch:
    taken, rows = [], 0
    for batch in file.batches():
        taken.append(batch)
        rows += len(batch)
        if rows >= _SAMPLE_ROWS:
            break
    if rows < 2:
        raise TopologyError(f"stream {file.schema.stream}: {rows} tuples are too few to measure")
    return Batch.concat(taken)


def kept_samples(samples: Sequence[Batch], kept: Sequence[TupleSample]) -> list[Batch]:
    """Return what is kept of each stream's sample."""
    return [sample.take(one.of(sample)) for sample, one in zip(samples, kept, strict=True)]


def _stream(schema: Schema, sample: Batch, window: Window) -> JoinStream:
    span_s = max(int(sample.ts[-1] - sample.ts[0]), 1) / NS_PER_S
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


def _attributes(query: JoinQuery, samples: Sequence[Batch]) -> tuple[JoinAttribute, ...]:
    """Return the join attributes that equalities make."""
    attributes = []
    for fields in tied_fields(query):
        columns = {stream: samples[stream].fields[name] for stream, name in fields.items()}
        attributes.append(MeasuredAttribute.of_columns(columns, len(query.streams)))
    return tuple(attributes)


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
