"""Everything that can be said of a finished run in numbers, by dotted names.

Beside the stable keys of `scenarios.report.run_summary.summary` a record has, per operator and per
part of the system:

``kernel_seconds``
    time spent in its PEs (``total``: in all but source and sink) on the arrivals that the run
    measures (see `scenarios.config.RunConfig`): processor time of a study that draws it, else real
    time; of a live run processor time, of all arrivals; empty on Ray in virtual time
``kernel_tps``
    tuples per second of that time it could take: all of them over the seconds of its busiest PE
``state_bytes``
    arrays that its PEs had at the end of the run (``total`` likewise)
``busy_seconds``
    virtual time for which its PEs were at work (on the arrivals measured; so ``capacity_tps`` too)
``capacity_tps``
    tuples per virtual second it could take: all of them over the time its busiest PE was at work.
    Derived, where ``throughput_tps`` is what a run did: nothing waits, and sinks take no time
``balance``, ``row_balance``
    mean over greatest of the times that its PEs were at work, and of the tuples that they received
    (on the same arrivals); 1 is perfectly balanced
``copies``
    tuples that its PEs received, per tuple of the streams: how many PEs each goes to
``transmission``
    share of the virtual time between the start of its PEs' services and the arrival of what they
    send that this is under way, ports and links taken together
``execution``
    what the system's processing and the messages between its PEs come to, added up as if nothing
    overlapped: ``seconds`` and ``bytes`` between sites (of the system alone, not per part)
``pace_tps``, ``pace_max_tps``
    tuples per virtual second over each twentieth of the arrivals, ``1`` ... ``20``, and over the
    fastest of those that are measured whole: not per part
``result_ms``
    latency of the results that it sent to a sink (of the arrivals measured), each pair counted,
    from the birth of the tuple that found it: ``mean``, ``p1``, ``p5``, ``p10`` ... ``p99``,
    ``max``; ``total`` is of all results

Of a run that measures some of its arrivals alone, ``throughput_tps`` is theirs: so many over the
time from when all before them was done until they were. So warm-up does not count. A message that
is about no arrivals (a timer, a punctuation) counts with the one that its receiver served before.

There are also ``correctness``, the share of tuples whose pairs are exactly the expected ones,
``merge_ms``, how long merges took, and ``window_lag``, by how many tuples the counts lag from which
PO-Join PEs learn what has expired.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from actors.protocol import NS_PER_S
from actors.result_files import summary_path
from netsim.network import link_between
from scenarios.report.run_analysis import arrival_numbers, busy_ns, places_of, sum_by_name
from scenarios.report.run_summary import summary
from scenarios.run import FinishedRun
from scenarios.run_directory import TRACE
from topologies.actor_graph import ActorGraph

Parts = Mapping[str, Sequence[str]]
"""Name to the operators, or the single PEs, that a part of the system consists of."""

END_ROLES = ("source", "sink")
"""Roles that feed a system and take its results: no part of it."""

_PERCENTILES = {f"p{p}": p for p in (1, 5, *range(10, 91, 10), 25, 75, 95, 99)} | {"max": 100}
_EVER = np.array([0, np.iinfo(np.int64).max])  # from the first time on, to the last
_RESULT_COLUMNS = ["probe_id", "sender", "count", "latency_ns"]
_COLUMNS = [
    "sender", "receiver", "rows", "first", "last", "sent_ns", "arrived_ns", "started_ns", "done_ns"
]  # fmt: skip
_COST_COLUMNS = ["sender", "receiver", "nbytes", "sent_ns", "started_ns", "done_ns"]


def record(finished: FinishedRun, parts: Parts | None = None) -> dict[str, Any]:
    """Return the run's record, with figures of *parts* beside those of single operators."""
    config, tuples = finished.plan.config, finished.outcome.tuples
    graph = finished.plan.graph()
    roles = graph.roles
    operators = [role for role in graph.operators if role not in END_ROLES]
    named = {
        part: [actor for actor, role in roles.items() if role in members or actor in members]
        for part, members in ({role: (role,) for role in operators} | dict(parts or {})).items()
    }
    every = named | {"total": [actor for actor, role in roles.items() if role in operators]}
    trace = pq.read_table(finished.directory / TRACE, columns=_COLUMNS)
    about, counted = trace, tuples
    if config.measured:
        first, stop = config.measured
        about = trace.filter(pa.array(messages_about(trace, first, stop)))
        counted = max(0, min(stop, tuples) - first)
    timed = tuples if config.clock == "live" else counted
    busy_s, rows = _busy_seconds(about, roles), sum_by_name(about["receiver"], about["rows"])
    received = sum_by_name(trace["receiver"], trace["rows"])
    merges_ms = merge_times_ms(trace, roles)
    (execution,) = measured_costs(
        finished.directory / TRACE, graph, finished.plan.network, operators
    )
    pace = Pace(trace, roles)
    over_parts = pace.over_parts(tuples)
    whole, kernel_s = summary(finished), finished.kernel_seconds
    if config.measured:
        whole["throughput_tps"] = pace.tps(*config.measured)
    return whole | {
        "kernel_seconds": _sums(kernel_s, every) if kernel_s else {},
        "kernel_tps": _capacity(timed, kernel_s, every) if kernel_s else {},
        "state_bytes": _sums(finished.state_bytes, every) if finished.state_bytes else {},
        "busy_seconds": _sums(busy_s, every),
        "capacity_tps": _capacity(counted, busy_s, every),
        "transmission": _transmission(trace, _busy_seconds(trace, roles), named),
        "balance": {part: _balance([busy_s[pe] for pe in pes]) for part, pes in named.items()},
        "row_balance": {part: _balance([rows[pe] for pe in pes]) for part, pes in named.items()},
        "copies": {part: _ratio(n, tuples) for part, n in _sums(received, named).items()},
        "execution": {"seconds": execution.seconds, "bytes": execution.nbytes},
        "pace_tps": over_parts,
        "pace_max_tps": fastest(over_parts, tuples, *(config.measured or (0, tuples))),
        "result_ms": _result_latencies(finished, list(graph), named | {"total": list(graph)}),
        "merge_ms": _percentiles(merges_ms, np.ones(len(merges_ms), np.int64)),
        "window_lag": window_lag(trace, roles),
        "correctness": 1 - finished.verdict.differing_tuples / tuples if tuples else None,
    }


def look_up(values: Mapping[str, Any], name: str) -> float | None:
    """Return a number of a record by its dotted *name*; None where the run has no such number.

    Raise :exc:`KeyError` naming the part that is not there, and what is; or where it is not a
    number.
    """
    found: Any = values
    for part in name.split("."):
        if not isinstance(found, Mapping):
            raise KeyError(f"measure {name}: there is nothing below a single value, as {part!r}")
        if part not in found:
            raise KeyError(f"measure {name}: there is no {part!r}; choose from {', '.join(found)}")
        found = found[part]
    if isinstance(found, Mapping):
        raise KeyError(f"measure {name}: it is a group; name one of its {', '.join(found)}")
    if isinstance(found, (str, list)):
        raise KeyError(f"measure {name}: it is not a number")
    return None if found is None else float(found)


def _sums(values: Mapping[str, float], parts: Parts) -> dict[str, float]:
    return {part: sum(values.get(pe, 0) for pe in pes) for part, pes in parts.items()}


def _capacity(tuples: int, busy_s: Mapping[str, float], parts: Parts) -> dict[str, float | None]:
    """Return the tuples a second that the busiest PE of each part would take."""
    return {
        part: _ratio(tuples, max((busy_s[pe] for pe in pes), default=0))
        for part, pes in parts.items()
    }


def _ratio(value: float, to: float) -> float | None:
    return value / to if to else None


def _balance(loads: Sequence[float]) -> float | None:
    return _ratio(sum(loads) / max(1, len(loads)), max(loads, default=0))


def _busy_seconds(trace: pa.Table, actors: Iterable[str]) -> dict[str, float]:
    spent_ns = busy_ns(trace)
    return {actor: spent_ns[actor] / NS_PER_S for actor in actors}


def messages_about(trace: pa.Table, first: int, stop: int) -> np.ndarray:
    """Return which messages count with the arrivals from *first* on and before *stop*, as a mask.

    They are those that `MeasuredMessages` counts of each receiver; in Python alone that would take
    longer than all other figures.
    """
    receiver = places_of(trace["receiver"], trace["receiver"].unique().to_pylist())
    order = np.argsort(receiver, kind="stable")
    firsts, lasts = (trace[name].to_numpy()[order] for name in ("first", "last"))
    # Of each message the latest one of its receiver that is about any arrivals, if there is one.
    latest = np.maximum.accumulate(np.where(lasts >= 0, np.arange(len(order)), -1))
    known = latest >= np.searchsorted(receiver[order], receiver[order])
    counts = np.empty(len(order), np.bool_)
    counts[order] = known & ((lasts >= first) & (firsts < stop))[latest]
    return counts


def _transmission(
    trace: pa.Table, busy_s: Mapping[str, float], parts: Parts
) -> dict[str, float | None]:
    actors = dict.fromkeys(pe for pes in parts.values() for pe in pes)
    place = {pe: at for at, pe in enumerate(actors)}
    sender, receiver = (places_of(trace[name], list(place)) for name in ("sender", "receiver"))
    under_way_ns = (trace["arrived_ns"].to_numpy() - trace["sent_ns"].to_numpy()).astype(np.int64)
    shares = {}
    for part, pes in parts.items():
        sent = np.isin(sender, [place[pe] for pe in pes]) & (sender != receiver)
        sending_s = float(under_way_ns[sent].sum()) / NS_PER_S
        shares[part] = _ratio(sending_s, sending_s + sum(busy_s[pe] for pe in pes))
    return shares


def _result_latencies(
    finished: FinishedRun, actors: Sequence[str], parts: Parts
) -> dict[str, dict[str, float | None]]:
    """Return per part the mean and percentiles of its results' latency, each result counted.

    *actors* are in the order of rank.
    """
    plan = finished.plan
    found = [
        pq.read_table(summary_path(finished.directory, stream), columns=_RESULT_COLUMNS)
        for stream in range(len(plan.files))
    ]
    if plan.config.measured:
        first, stop = plan.config.measured
        for stream, number in enumerate(arrival_numbers(plan.files, plan.feeding.disorder)):
            chosen = np.flatnonzero((number >= first) & (number < stop))
            mine = np.isin(found[stream]["probe_id"].to_numpy(), chosen)
            found[stream] = found[stream].filter(pa.array(mine))
    results = pa.concat_tables(found)
    sender, count, latency_ns = (results[name].to_numpy() for name in _RESULT_COLUMNS[1:])
    rank = {name: place for place, name in enumerate(actors)}
    latencies = {}
    for part, members in parts.items():
        mine = np.isin(sender, [rank[name] for name in members])
        latencies[part] = _percentiles(latency_ns[mine] / 1e6, count[mine])
    return latencies


def _percentiles(values: np.ndarray, weights: np.ndarray) -> dict[str, float | None]:
    """Return mean and percentiles of *values*, each as often as its weight says; None of none."""
    if not weights.any():
        return dict.fromkeys(("mean", *_PERCENTILES))
    percents = list(_PERCENTILES.values())
    found = np.percentile(values, percents, weights=weights, method="inverted_cdf").tolist()
    mean = float(np.average(values, weights=weights))
    return {"mean": mean, **dict(zip(_PERCENTILES, found, strict=True))}


@dataclass(frozen=True, kw_only=True)
class ExecutionCost:
    """What went between sites, bytes, and the total execution time, seconds.

    The execution time is that of all processing and all transmissions, added up as if nothing
    overlapped (section 5.1 of the stream semijoin paper); a transmission takes its link's latency,
    and its size over the bandwidth.
    """

    nbytes: float
    seconds: float


def measured_costs(
    trace_path: Path,
    graph: ActorGraph,
    network: nx.Graph,
    roles: Collection[str],
    edges_ns: np.ndarray = _EVER,
) -> list[ExecutionCost]:
    """Return what the actors of *roles* did, and sent to each other over *network*, by time.

    *edges_ns* are virtual times, int64, ascending: between each two of them goes what is due to
    messages that were sent from the first on and before the second.
    """
    actors = [name for name, role in graph.roles.items() if role in roles]
    trace = pq.read_table(trace_path, columns=_COST_COLUMNS)
    span = np.searchsorted(edges_ns, trace["sent_ns"].to_numpy(), "right") - 1
    sender, receiver = (places_of(trace[name], actors) for name in ("sender", "receiver"))
    sites = list(dict.fromkeys(graph.placement[name] for name in actors))
    place = {name: at for at, name in enumerate(sites)}
    site = np.array([place[graph.placement[name]] for name in actors], np.int64)
    within = (span >= 0) & (span < len(edges_ns) - 1)
    crosses = within & (sender >= 0) & (receiver >= 0) & (site[sender] != site[receiver])
    # Of the pairs of sites that occur: of thousands of sites, few of all pairs do.
    ends, pair = np.unique(
        site[sender[crosses]] * len(sites) + site[receiver[crosses]], return_inverse=True
    )
    links = [
        link_between(network, sites[end // len(sites)], sites[end % len(sites)])
        for end in ends.tolist()
    ]
    latency_s = np.array([link.latency.mean_ns / 1e9 for link in links if link])
    byte_s = 8 / np.array([link.bandwidth_bps for link in links if link], np.float64)
    sent = trace["nbytes"].to_numpy()[crosses]
    served = within & (receiver >= 0)
    served_ns = (trace["done_ns"].to_numpy() - trace["started_ns"].to_numpy())[served]
    costs = []
    for number in range(len(edges_ns) - 1):
        mine = span[crosses] == number
        transmissions_s = latency_s[pair[mine]].sum() + (sent[mine] * byte_s[pair[mine]]).sum()
        processing_s = float(served_ns[span[served] == number].sum()) / NS_PER_S
        costs.append(
            ExecutionCost(
                nbytes=float(sent[mine].sum()), seconds=float(transmissions_s) + processing_s
            )
        )
    return costs


PACE_PARTS = 20
"""Of the arrivals, of equal length."""


class Pace:
    """When a run was done with its arrivals, one after the other.

    An arrival is done when all that anything but the source received about it, and about what came
    before, is done; the arrivals of one message are taken to be done one after the other, evenly.
    """

    def __init__(self, trace: pa.Table, roles: Mapping[str, str]) -> None:
        last, done_ns = trace["last"].to_numpy(), trace["done_ns"].to_numpy()
        source = [name for name, role in roles.items() if role == "source"]
        about = np.flatnonzero((last >= 0) & (places_of(trace["receiver"], source) < 0))
        order = about[np.argsort(last[about], kind="stable")][::-1]
        arrivals, place = np.unique(last[order] + 1, return_index=True)
        self._done_ns = np.append(0, np.maximum.accumulate(done_ns[order][::-1])[::-1][place])
        self._arrivals = np.append(0, arrivals)

    def done_ns(self, arrivals: np.ndarray | Sequence[int]) -> np.ndarray:
        """Return when so many arrivals, counted from the first on, were done."""
        done_ns: np.ndarray = np.interp(arrivals, self._arrivals, self._done_ns)
        return done_ns

    def tps(self, first: int, stop: int) -> float | None:
        """Return the tuples per virtual second over arrivals *first* to *stop* (exclusive).

        None where they took no time.
        """
        stop = min(stop, int(self._arrivals[-1]))
        begun_ns, ended_ns = self.done_ns([first, stop]).tolist()
        return (stop - first) / (ended_ns - begun_ns) * NS_PER_S if ended_ns > begun_ns else None

    def over_parts(self, tuples: int) -> dict[str, float | None]:
        """Return the tuples per virtual second over each part of *tuples*, by number from 1.

        None where a part took no time.
        """
        ends = self.done_ns(np.linspace(0, tuples, PACE_PARTS + 1))
        return {
            str(part + 1): tuples / PACE_PARTS / took_ns * NS_PER_S if took_ns else None
            for part, took_ns in enumerate(np.diff(ends).tolist())
        }


def fastest(
    over_parts: Mapping[str, float | None], tuples: int, first: int, stop: int
) -> float | None:
    """Return the most that `Pace.over_parts` has of a part within arrivals *first* to *stop*.

    None where there is none.
    """
    length = tuples / PACE_PARTS
    within = range(ceil(first / length), min(PACE_PARTS, int(stop / length))) if tuples else ()
    return max((tps for part in within if (tps := over_parts[str(part + 1)])), default=None)


GROWTH = 0.01
"""Nanoseconds by which a run may fall behind in each nanosecond, and still keep up: so rates up to
1 % above the capacity pass, since a system of capacity c, fed at r, falls behind by r / c - 1."""
PRECISION = 0.02
"""A search ends when the lowest rate that is not sustained is above the highest that is by this
share at the most."""

_SAMPLES = 256
"""Arrivals of a quarter that are looked at."""
_HEADROOM = 2.0
"""A first rate too high, over what a run did without a rate."""
_RATE_MAX = 2**40


def growth(pace: Pace, tuples: int, rate_tps: int) -> float:
    """Return by how many nanoseconds a run fell behind in each nanosecond of its second half.

    An arrival is behind by the time from when it came into being until it was done (see `Pace`),
    which is what waits in all queues, the source's included. The mean of that in the third quarter
    of the arrivals is compared with that in the fourth. The first half fills windows and caches and
    is not judged; means over quarters keep what comes and goes, as a merge, from counting.
    """
    third, fourth = (
        np.linspace(first * tuples, (first + 0.25) * tuples, _SAMPLES) for first in (0.5, 0.75)
    )
    behind = [pace.done_ns(part) - part * (NS_PER_S / rate_tps) for part in (third, fourth)]
    passed_ns = tuples / 4 * NS_PER_S / rate_tps
    return float(behind[1].mean() - behind[0].mean()) / passed_ns


def is_sustained(finished: FinishedRun) -> bool:
    """Return whether a finished run, which had a rate, kept up with it: its queues did not grow.

    Karimov et al. (Benchmarking Distributed Stream Data Processing Systems, ICDE 2018) define
    sustainable throughput as the highest load of events that a system can handle without prolonged
    back-pressure, that is without a continuously increasing event-time latency.
    """
    rate = finished.plan.config.feeding.rate_tps
    assert rate is not None
    return growth(_pace(finished), finished.outcome.tuples, rate) <= GROWTH


def saturated_tps(finished: FinishedRun) -> float:
    """Return the tuples a second that a run without a rate did in its second half."""
    tuples = finished.outcome.tuples
    return _pace(finished).tps(tuples // 2, tuples) or 1.0


def _pace(finished: FinishedRun) -> Pace:
    columns = ["receiver", "last", "done_ns"]
    trace = pq.read_table(finished.directory / TRACE, columns=columns)
    return Pace(trace, finished.plan.graph().roles)


def highest_sustained(sustains: Callable[[int], bool], guess_tps: float) -> int:
    """Return the highest rate that *sustains* is true of, to `PRECISION`; 0 if it is of none.

    *guess_tps* is where the search begins: it looks for a rate on either side, and then halves
    the ratio between the two.
    """
    low, high = 0, max(2, round(guess_tps * _HEADROOM))
    while high < _RATE_MAX and sustains(high):
        low, high = high, round(high * _HEADROOM)
    while not low:
        below = int(high / _HEADROOM)
        if below < 1:
            return 0
        low, high = (below, high) if sustains(below) else (low, below)
    while high > max(low + 1, low * (1 + PRECISION)):
        middle = min(high - 1, max(low + 1, round(sqrt(low * high))))
        low, high = (middle, high) if sustains(middle) else (low, middle)
    return low


_MUTABLE, _BETWEEN, _IMMUTABLE = "predicate", "permutation", "po_join"
_TUPLES, _REPORTING = "router", ("permutation", "cache")


def merge_times_ms(trace: pa.Table, roles: Mapping[str, str]) -> np.ndarray:
    """Return the virtual milliseconds of every merge into the immutable component.

    A merge begins when a predicate PE starts on the message that fills its epoch, and ends when the
    PE that takes the epoch is done with the last array of it: the structure is built then, and the
    tuples that waited for it are evaluated. Every predicate PE that seals and every permutation PE
    sends one message a merge, so the k-th of each belong to the k-th merge. There are none in a
    system without merges.
    """
    senders = [name for name, role in roles.items() if role in (_MUTABLE, _BETWEEN)]
    builders = [name for name, role in roles.items() if role == _IMMUTABLE]
    sender, served = (places_of(trace[name], senders) for name in ("sender", "receiver"))
    sent_ns, started_ns, done_ns = (
        trace[name].to_numpy() for name in ("sent_ns", "started_ns", "done_ns")
    )
    own = np.flatnonzero(served >= 0)
    services = zip(*(column[own].tolist() for column in (served, done_ns, started_ns)), strict=True)
    started_at = {(actor, at_ns): start_ns for actor, at_ns, start_ns in services}
    rows = np.flatnonzero((sender >= 0) & (places_of(trace["receiver"], builders) >= 0))
    rows = rows[np.argsort(sent_ns[rows], kind="stable")]
    begun: dict[int, int] = {}
    ended: dict[int, int] = {}
    count: dict[int, int] = {}
    merging = zip(*(column[rows].tolist() for column in (sender, sent_ns, done_ns)), strict=True)
    for actor, at_ns, end_ns in merging:
        merge = count[actor] = count.get(actor, -1) + 1
        ended[merge] = max(end_ns, ended.get(merge, 0))
        if roles[senders[actor]] == _MUTABLE:
            start_ns = started_at[actor, at_ns]
            begun[merge] = min(start_ns, begun.get(merge, start_ns))
    return np.array([ended[merge] - begun[merge] for merge in sorted(begun)]) / 1e6


def window_lag(trace: pa.Table, roles: Mapping[str, str]) -> float | None:
    """Return by how many tuples the count of a PO-Join PE is behind on average, as tuples come.

    A PE that goes by a count of tuples (SPO-Join, section 4.2) drops what has expired when the
    count says so: so many expired tuples can be found. The first PE is left out, as in the paper's
    Figure 19; so is the time before a first count has come. None for a system whose PEs receive no
    counts.
    """
    actors = list(roles)
    sender, receiver = (places_of(trace[name], actors) for name in ("sender", "receiver"))
    last, arrived_ns = (trace[name].to_numpy() for name in ("last", "arrived_ns"))
    reporting, routers, pes = (
        [place for place, role in enumerate(roles.values()) if role in these]
        for these in (_REPORTING, (_TUPLES,), (_IMMUTABLE,))
    )
    lags: list[np.ndarray] = []
    for pe in pes[1:]:
        rows = np.flatnonzero((receiver == pe) & (last >= 0))
        rows = rows[np.argsort(arrived_ns[rows], kind="stable")]
        reports = np.isin(sender[rows], reporting)
        known = np.maximum.accumulate(np.where(reports, last[rows], -1))
        counted = np.isin(sender[rows], routers) & (known >= 0)
        # A count may come from a PE that is ahead of this one in the stream: behind by nothing.
        lags.append(np.maximum(last[rows][counted] - known[counted], 0))
    every = np.concatenate([np.empty(0, np.int64), *lags])
    return float(every.mean()) if len(every) else None
