"""Statistics of what an approximate join keeps of its streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import networkx as nx

from joins.batch import Batch
from joins.semijoins.kept_values import KeptTuples
from topologies.semijoins.costs.measuring import Measuring, measured_statistics, samples_of
from topologies.semijoins.costs.statistics import JoinStatistics
from topologies.topology import Job, TopologyError


def kept_statistics(
    job: Job, network: nx.Graph, kept: Sequence[KeptTuples], **timing: Any
) -> JoinStatistics:
    """Return the statistics of what is kept of *job*'s streams, each at the site of its name.

    *timing* is as for `measured_statistics`. Raise :exc:`TopologyError` for a stream of which too
    little is left to measure.
    """
    samples = samples_of(job)
    left = left_of(samples, kept)
    for name, sample in zip(job.query.streams, left, strict=True):
        if len(sample) < 2:
            raise TopologyError(f"stream {name}: {len(sample)} tuples kept are too few to measure")
    sites = job.query.streams
    whole = measured_statistics(job, network, sites, **timing)
    return thinned(Measuring.of_job(job, network, sites, **timing), whole, samples, left)


def left_of(samples: Sequence[Batch], kept: Sequence[KeptTuples]) -> list[Batch]:
    """Return what is kept of each stream's sample."""
    return [sample.take(one.of(sample)) for sample, one in zip(samples, kept, strict=True)]


def thinned(
    measuring: Measuring, whole: JoinStatistics, samples: Sequence[Batch], left: Sequence[Batch]
) -> JoinStatistics:
    """Return the statistics of streams of whose *samples* only some tuples are *left*.

    *whole* are those of all of them.
    """
    shares = [len(some) / len(sample) for some, sample in zip(left, samples, strict=True)]
    streams = tuple(
        replace(stream, rate_tps=stream.rate_tps * share, window_rows=stream.window_rows * share)
        for stream, share in zip(whole.streams, shares, strict=True)
    )
    return replace(measuring.statistics(left), streams=streams)
