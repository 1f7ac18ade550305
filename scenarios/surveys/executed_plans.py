"""Plans of joins by semijoins, executed in memory: what they cost, and what they found.

The streams are made to have the statistics that the plan was chosen by. The cost is the stream
semijoin paper's (section 5.1): all processing and all transmissions of a run added up, as if
nothing overlapped; a transmission takes its link's latency, and its bytes over the bandwidth. On
the way themselves messages take next to no time. Over links of 1 Mb/s, the paper's, most random
queries ship more in a second than a link carries, so that queues would grow and no δ would do; what
is shipped, and so the cost, is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory

import networkx as nx
import numpy as np
import pyarrow as pa

from actors.feed import StreamTable
from actors.results import Output
from actors.source import NS_PER_S, Feeding
from joins.batch import Schema
from joins.matches import Matches
from joins.queries.parser import parse_query
from netsim.cost import CostProfile
from netsim.network import Latency, Link, full_mesh
from scenarios.graph_run import run_inline
from scenarios.planning.planner import MeasuredPlan, measured_costs
from scenarios.run_directory import TRACE
from topologies.semijoin import Semijoin, SemijoinParameters
from topologies.semijoins.join_statistics import JoinStatistics
from topologies.semijoins.plans import JoinPlan
from topologies.topology import Job

_AT_ONCE = Link(latency=Latency(mean_ns=1_000), bandwidth_bps=10**15)
_FIELD = "x"


@dataclass(frozen=True, kw_only=True)
class Executed:
    """What came of a plan.

    Attributes
    ----------
    costs
        Of every second that was measured.
    found
        Results by newest tuple: its stream, position, their count and their fingerprint; columns,
        all uint64, a row per tuple that has any.
    """

    costs: tuple[MeasuredPlan, ...]
    found: np.ndarray

    @property
    def seconds(self) -> float:
        """Mean execution time of a second of arrivals."""
        return float(np.mean([cost.seconds for cost in self.costs]))


@dataclass(frozen=True, kw_only=True)
class Executor:
    """Executes plans on streams that were made once.

    Attributes
    ----------
    job
        The query, and its streams.
    parameters
        τ, δ and the size of tuples.
    network
        What transmissions take their time over.
    before_s, seconds
        Seconds until windows are full, and those that are measured one by one after them.
    """

    job: Job
    parameters: SemijoinParameters
    network: nx.Graph
    before_s: int
    seconds: int

    @classmethod
    def of_statistics(
        cls,
        statistics: JoinStatistics,
        *,
        seconds: int,
        profile: CostProfile,
        rng: np.random.Generator,
    ) -> Executor:
        """Return it for streams of these statistics, whose only attribute has uniform values.

        Tuples come at a steady rate from a random moment on, for as long as windows take to fill
        and every value to have been asked for, and then *seconds* more.
        """
        longest_s = max(stream.window_rows / stream.rate_tps for stream in statistics.streams)
        before_s = ceil(longest_s + 2 * statistics.delay_s + statistics.interval_s)
        (attribute,) = statistics.attributes
        files = []
        for stream, values in zip(statistics.streams, attribute.distinct, strict=True):
            rows = int(stream.rate_tps * (before_s + seconds))
            ts = (np.arange(rows) + rng.random()) / stream.rate_tps * NS_PER_S
            columns = {"ts": ts.astype(np.int64), _FIELD: rng.integers(0, round(values), rows)}
            files.append(
                StreamTable(
                    schema=Schema(stream=stream.name, fields={_FIELD: "int64"}),
                    table=pa.table(columns),
                )
            )
        return cls(
            job=Job(
                query=parse_query(_text(statistics)),
                files=tuple(files),
                feeding=Feeding(),
                profile=profile,
            ),
            parameters=SemijoinParameters(
                execution="delayed",
                tau=round(statistics.interval_s * NS_PER_S),
                delta=round(statistics.delay_s * NS_PER_S),
                tuple_bytes={s.name: round(s.full_bytes) for s in statistics.streams},
            ),
            network=_network(statistics),
            before_s=before_s,
            seconds=seconds,
        )

    def execute(self, plan: JoinPlan) -> Executed:
        """Return what *plan* costs and finds."""
        parameters = replace(self.parameters, plan=plan.one_line)
        graph = Semijoin().build(self.job, parameters)
        found: list[Matches] = []

        def collect(outputs: list[Output]) -> None:
            found.extend(output.matches for output in outputs)

        with TemporaryDirectory() as folder:
            path = Path(folder) / TRACE
            run_inline(graph, _AT_ONCE, self.job.profile, trace=path, collect=collect)
            edges_ns = (self.before_s + np.arange(self.seconds + 1)) * NS_PER_S
            costs = measured_costs(path, graph, self.network, {"site"}, edges_ns)
        return Executed(costs=tuple(costs), found=_by_tuple(found))


def _text(statistics: JoinStatistics) -> str:
    """Return the query: every two streams that share an edge of the join graph are compared."""
    names = statistics.names
    predicates = " AND ".join(
        f"{names[a]}.{_FIELD} = {names[b]}.{_FIELD}" for a, b in sorted(statistics.graph.edges)
    )
    windows = ", ".join(
        f"{stream.name} AS (SLIDE INTERVAL '1 ns' ON "
        f"'{round(stream.window_rows / stream.rate_tps * 1000)} ms' PRECISE)"
        for stream in statistics.streams
    )
    return f"SELECT * FROM {', '.join(names)} WHERE {predicates} WINDOW {windows}"


def _network(statistics: JoinStatistics) -> nx.Graph:
    """Return the sites' network, whose links are all equal."""
    latency_s = float(statistics.latency_s.max())
    bandwidth_bps = int(statistics.bandwidth_bps.min())
    link = Link(latency=Latency(mean_ns=round(latency_s * NS_PER_S)), bandwidth_bps=bandwidth_bps)
    return full_mesh(statistics.names, link)


def _by_tuple(found: Sequence[Matches]) -> np.ndarray:
    """Return results by newest tuple, as `Executed` has them; parts of one tuple's add up."""
    if not found:
        return np.empty((4, 0), np.uint64)
    stream = np.concatenate([np.full(len(part), part.stream) for part in found])
    probe, count = (np.concatenate([getattr(p, at) for p in found]) for at in ("probe_id", "count"))
    fingerprint = np.concatenate([part.fingerprint for part in found])
    order = np.lexsort((probe, stream))
    stream, probe = stream[order], probe[order]
    begins = np.flatnonzero((np.diff(stream, prepend=-1) != 0) | (np.diff(probe, prepend=-1) != 0))
    columns = (
        stream[begins],
        probe[begins],
        np.add.reduceat(count[order], begins),
        np.add.reduceat(fingerprint[order], begins),
    )
    return np.stack([column.astype(np.uint64) for column in columns])
