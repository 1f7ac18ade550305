"""Statistics measured from tuples of the streams, for a query over a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import networkx as nx
import numpy as np

from actors.protocol import HEADER_BYTES
from actors.source import StreamFile
from joins.batch import Batch, Schema
from joins.queries.query import JoinQuery, Predicate
from joins.queries.windows import Window
from netsim.network import link_between
from topologies.semijoins.costs.attributes import JoinAttribute, measured_attribute
from topologies.semijoins.costs.statistics import (
    JoinStatistics,
    OtherPredicate,
    Prices,
    StreamStatistics,
)
from topologies.semijoins.plan import join_graph
from topologies.topology import Job, TopologyError

_SAMPLE_ROWS = 262_144
"""Tuples read of each stream, from its start."""
_PAIR_ROWS = 1_024
"""Tuples of each stream that a predicate is tried on, all pairs of them."""
_NS_PER_S = 1_000_000_000


def measured_statistics(
    job: Job,
    network: nx.Graph,
    sites: Sequence[str],
    *,
    interval_s: float,
    delay_s: float,
    punctuated: bool,
) -> JoinStatistics:
    """Return the statistics of *job*'s streams over *network*.

    Parameters
    ----------
    sites
        Of each stream, in the order of the query.
    interval_s, delay_s, punctuated
        τ, δ, and whether execution is punctuated.

    Raise :exc:`TopologyError` for a join graph in parts, or a stream too short to measure.
    """
    measuring = Measuring.of_job(
        job,
        network,
        sites,
        interval_s=interval_s,
        delay_s=delay_s,
        punctuated=punctuated,
    )
    found = measuring.statistics(samples_of(job))
    return replace(found, streams=in_virtual_time(job.feeding.rate_tps, found.streams))


@dataclass(frozen=True, kw_only=True)
class Measuring:
    """What statistics hold beside what tuples tell.

    Attributes
    ----------
    query, schemas
        The join, and the streams' fields.
    latency_s, bandwidth_bps, interval_s, delay_s, punctuated, prices
        As in `JoinStatistics`.
    """

    query: JoinQuery
    schemas: tuple[Schema, ...]
    latency_s: np.ndarray
    bandwidth_bps: np.ndarray
    interval_s: float
    delay_s: float
    punctuated: bool
    prices: Prices

    @classmethod
    def of_job(
        cls,
        job: Job,
        network: nx.Graph,
        sites: Sequence[str],
        *,
        interval_s: float,
        delay_s: float,
        punctuated: bool,
    ) -> Measuring:
        """Return it for *job*; the other parameters are those of `measured_statistics`."""
        latency_s, bandwidth_bps = _links(network, sites)
        return cls(
            query=job.query,
            schemas=tuple(file.schema for file in job.files),
            latency_s=latency_s,
            bandwidth_bps=bandwidth_bps,
            interval_s=interval_s,
            delay_s=delay_s,
            punctuated=punctuated,
            prices=Prices(
                probe_s=job.profile.comparison_ps / 1e12,
                update_s=job.profile.insert_ps / 1e12,
                hash_s=job.profile.comparison_ps / 1e12,
            ),
        )

    def statistics(self, samples: Sequence[Batch]) -> JoinStatistics:
        """Return the statistics that consecutive tuples of each stream show, two or more.

        Rates are those of event time. Raise :exc:`TopologyError` for a join graph in parts.
        """
        query = self.query
        return JoinStatistics(
            streams=tuple(
                _stream(schema, sample, window)
                for schema, sample, window in zip(self.schemas, samples, query.windows, strict=True)
            ),
            attributes=_attributes(query, samples),
            others=tuple(
                _other(query, self.schemas, predicate, samples)
                for predicate in query.predicates
                if not predicate.operator.is_equality
            ),
            graph=join_graph(query),
            latency_s=self.latency_s,
            bandwidth_bps=self.bandwidth_bps,
            interval_s=self.interval_s,
            delay_s=self.delay_s,
            punctuated=self.punctuated,
            header_bytes=HEADER_BYTES,
            prices=self.prices,
        )


def samples_of(job: Job) -> list[Batch]:
    """Return the first tuples of each stream.

    Raise :exc:`TopologyError` for a stream too short to measure.
    """
    return [_sample(file) for file in job.files]


def _sample(file: StreamFile) -> Batch:
    taken, rows = [], 0
    for batch in file.batches():
        taken.append(batch)
        rows += len(batch)
        if rows >= _SAMPLE_ROWS:
            break
    if rows < 2:
        raise TopologyError(f"stream {file.schema.stream}: {rows} tuples are too few to measure")
    return Batch.concat(taken)


def _stream(schema: Schema, sample: Batch, window: Window) -> StreamStatistics:
    span_s = max(int(sample.ts[-1] - sample.ts[0]), 1) / _NS_PER_S
    rate_tps = (len(sample) - 1) / span_s
    # A window that slides by W_s is on average half a slide shorter than its length.
    mean = window.length - (window.slide / 2 if window.semantics == "sliding" else 0)
    rows = mean if window.kind == "count" else mean / _NS_PER_S * rate_tps
    return StreamStatistics(
        name=schema.stream,
        rate_tps=rate_tps,
        window_rows=rows,
        full_bytes=float(Batch.empty(schema).row_bytes),
    )


def in_virtual_time(
    rate_tps: int | None, streams: Sequence[StreamStatistics]
) -> tuple[StreamStatistics, ...]:
    """Return *streams* fed at a rate for all of them; windows hold as many tuples as before."""
    speed = rate_tps / sum(stream.rate_tps for stream in streams) if rate_tps else 1.0
    return tuple(replace(stream, rate_tps=stream.rate_tps * speed) for stream in streams)


def _attributes(query: JoinQuery, samples: Sequence[Batch]) -> tuple[JoinAttribute, ...]:
    """Return the join attributes that equalities make."""
    found = []
    for fields in tied_fields(query):
        columns = {stream: samples[stream].fields[name] for stream, name in fields.items()}
        found.append(measured_attribute(columns, len(query.streams)))
    return tuple(found)


def tied_fields(query: JoinQuery) -> list[dict[int, str]]:
    """Return for each join attribute that equalities make its streams, and their fields.

    Of two fields of one stream, which its tuples must have equal, one tells the values.
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
    probe = _spread(samples[a].fields[condition.probe_field])
    stored = _spread(samples[b].fields[condition.stored_field])
    return OtherPredicate(
        distinct={
            a: _distinct(samples[a], condition.probe_field),
            b: _distinct(samples[b], condition.stored_field),
        },
        selectivity=float(condition.holds(probe[:, None], stored[None, :]).mean()),
    )


def _distinct(sample: Batch, name: str) -> float:
    return float(len(np.unique(sample.fields[name])))


def _spread(values: np.ndarray) -> np.ndarray:
    """Return `_PAIR_ROWS` of *values* at equal distances."""
    return values[np.linspace(0, len(values) - 1, min(_PAIR_ROWS, len(values))).astype(np.int64)]


def _links(network: nx.Graph, sites: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    latency_s = np.zeros((len(sites), len(sites)))
    bandwidth_bps = np.full((len(sites), len(sites)), np.inf)
    for a, b in combinations(range(len(sites)), 2):
        link = link_between(network, sites[a], sites[b])
        if link is not None:
            latency_s[a, b] = latency_s[b, a] = link.latency.mean_ns / _NS_PER_S
            bandwidth_bps[a, b] = bandwidth_bps[b, a] = link.bandwidth_bps
    return latency_s, bandwidth_bps
