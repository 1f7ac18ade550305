"""Everything that can be said of a finished run in numbers, by dotted names.

Beside the stable keys of `run_json.summary` a record has, per operator and per part of the system:

``kernel_seconds``
    processor time spent in its PEs (``total``: in all but source and sink); empty on Ray
``kernel_tps``
    tuples per second of processor time it could take: all of them over the seconds of its busiest
    PE; empty on Ray
``state_bytes``
    arrays that its PEs held at the end of the run (``total`` likewise)
``busy_seconds``
    virtual time for which its PEs were at work (on the arrivals that the run measures, see
    `scenarios.config.RunConfig`; so ``capacity_tps`` too)
``capacity_tps``
    tuples per virtual second it could take: all of them over the time its busiest PE was at work;
    ``total`` is what the system could take if results did not have to meet in one sink
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
``pace_tps``
    tuples per virtual second over each twentieth of the arrivals, ``1`` ... ``20``: not per part
``answer_ms``
    latency of its answers, from a tuple's birth to the sink: ``p50`` ... ``max``

and ``correctness``, the share of tuples whose pairs are exactly the expected ones, ``merge_ms``,
how long merges took, and ``window_lag``, by how many tuples the counts are behind that tell PO-Join
PEs what has expired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from actors.source import NS_PER_S
from scenarios.config import build_network
from scenarios.planning.planner import measured_cost
from scenarios.run import Report
from scenarios.run_json import summary

Parts = Mapping[str, Sequence[str]]
"""Name to the operators, or the single PEs, that a part of the system consists of."""

ENDS = ("source", "sink")
"""Roles that feed a system and take its results: no part of it."""

_PERCENTILES = {"p50": 50, "p75": 75, "p95": 95, "p99": 99, "max": 100}
_COLUMNS = [
    "sender", "receiver", "rows", "first", "last", "sent_ns", "arrived_ns", "started_ns", "done_ns"
]  # fmt: skip


def record(report: Report, parts: Parts | None = None) -> dict[str, Any]:
    """Return the run's record, with figures of *parts* beside those of single operators."""
    config, tuples = report.plan.config, report.outcome.tuples
    graph = report.plan.graph(pairs=config.pairs)
    roles: dict[str, str] = dict(graph.nodes(data="role"))
    operators = [role for role in dict.fromkeys(roles.values()) if role not in ENDS]
    named = {
        part: [actor for actor, role in roles.items() if role in members or actor in members]
        for part, members in ({role: (role,) for role in operators} | dict(parts or {})).items()
    }
    every = named | {"total": [actor for actor, role in roles.items() if role in operators]}
    trace = pq.read_table(report.directory / "trace.parquet", columns=_COLUMNS)
    about, counted = trace, tuples
    if config.measured:
        first, stop = config.measured
        about = trace.filter((pc.field("last") >= first) & (pc.field("first") < stop))
        counted = stop - first
    busy_s, rows = _busy_seconds(about, roles), _received(about, roles)
    merges_ms = merge_times_ms(trace, roles)
    network = build_network(config.network, graph.placement.values())
    execution = measured_cost(report.directory / "trace.parquet", graph, network, operators)
    return summary(report) | {
        "kernel_seconds": _sums(report.kernel_seconds, every) if report.kernel_seconds else {},
        "kernel_tps": {
            part: _ratio(tuples, max((report.kernel_seconds[pe] for pe in pes), default=0))
            for part, pes in (every if report.kernel_seconds else {}).items()
        },
        "state_bytes": _sums(report.state_bytes, every) if report.state_bytes else {},
        "busy_seconds": _sums(busy_s, every),
        "capacity_tps": {
            part: _ratio(counted, max((busy_s[pe] for pe in pes), default=0))
            for part, pes in every.items()
        },
        "transmission": _transmission(trace, _busy_seconds(trace, roles), named),
        "balance": {part: _balance([busy_s[pe] for pe in pes]) for part, pes in named.items()},
        "row_balance": {part: _balance([rows[pe] for pe in pes]) for part, pes in named.items()},
        "copies": {
            part: _ratio(received, tuples)
            for part, received in _sums(_received(trace, roles), named).items()
        },
        "execution": {"seconds": execution.seconds, "bytes": execution.nbytes},
        "pace_tps": pace_tps(trace, roles, tuples),
        "answer_ms": _answers(trace, roles, named, config.feeding.rate_tps),
        "merge_ms": _percentiles(merges_ms, np.ones(len(merges_ms), np.int64)),
        "window_lag": window_lag(trace, roles),
        "correctness": 1 - report.verdict.differing_tuples / tuples if tuples else None,
    }


def look_up(values: Mapping[str, Any], name: str) -> float | None:
    """Return a number of a record by its dotted *name*; None where the run has no such number.

    Raise :exc:`KeyError` naming the part that there is not, and what there is.
    """
    found: Any = values
    for part in name.split("."):
        if not isinstance(found, Mapping) or part not in found:
            there = ", ".join(found) if isinstance(found, Mapping) else "no more"
            raise KeyError(f"measure {name}: there is no {part!r}; there is {there}")
        found = found[part]
    if isinstance(found, (Mapping, str)):
        raise KeyError(f"measure {name}: is no number; there is {', '.join(found)}")
    return None if found is None else float(found)


def _sums(values: Mapping[str, float], parts: Parts) -> dict[str, float]:
    return {part: sum(values.get(pe, 0) for pe in pes) for part, pes in parts.items()}


def _ratio(value: float, to: float) -> float | None:
    return value / to if to else None


def _balance(loads: Sequence[float]) -> float | None:
    return _ratio(sum(loads) / max(1, len(loads)), max(loads, default=0))


def _busy_seconds(trace: pa.Table, actors: Iterable[str]) -> dict[str, float]:
    receiver = _names(trace["receiver"])
    spent_ns = (trace["done_ns"].to_numpy() - trace["started_ns"].to_numpy()).astype(np.int64)
    return {actor: float(spent_ns[receiver == actor].sum()) / NS_PER_S for actor in actors}


def _received(trace: pa.Table, actors: Iterable[str]) -> dict[str, int]:
    receiver, rows = _names(trace["receiver"]), trace["rows"].to_numpy()
    return {actor: int(rows[receiver == actor].sum()) for actor in actors}


def _transmission(
    trace: pa.Table, busy_s: Mapping[str, float], parts: Parts
) -> dict[str, float | None]:
    sender, receiver = _names(trace["sender"]), _names(trace["receiver"])
    under_way_ns = (trace["arrived_ns"].to_numpy() - trace["sent_ns"].to_numpy()).astype(np.int64)
    shares = {}
    for part, pes in parts.items():
        sent = np.isin(sender, pes) & (sender != receiver)
        sending_s = float(under_way_ns[sent].sum()) / NS_PER_S
        shares[part] = _ratio(sending_s, sending_s + sum(busy_s[pe] for pe in pes))
    return shares


def _answers(
    trace: pa.Table, roles: Mapping[str, str], parts: Parts, rate_tps: int | None
) -> dict[str, dict[str, float | None]]:
    """Return per part the percentiles of its answers' latency, each message by its middle tuple."""
    sender, receiver = _names(trace["sender"]), _names(trace["receiver"])
    from_source = np.isin(sender, [name for name, role in roles.items() if role == "source"])
    first, last = trace["first"].to_numpy(), trace["last"].to_numpy()
    sinks = [name for name, role in roles.items() if role == "sink"]
    to_sink = np.isin(receiver, sinks) & (last >= 0)
    fed = from_source & (sender != receiver)
    born_ns = _births(trace, fed, from_source & ~fed, rate_tps)
    middle = (first[to_sink] + last[to_sink]) // 2
    latency_ms = (trace["arrived_ns"].to_numpy()[to_sink] - born_ns(middle)) / 1e6
    weight = trace["rows"].to_numpy()[to_sink]
    answering = {part: np.isin(sender[to_sink], pes) for part, pes in parts.items()}
    return {part: _percentiles(latency_ms[mine], weight[mine]) for part, mine in answering.items()}


def _births(
    trace: pa.Table, fed: np.ndarray, timers: np.ndarray, rate_tps: int | None
) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function from arrival numbers to virtual times of birth, ns.

    *fed* are the messages of the source, *timers* the moments at which it makes them.
    """
    if rate_tps is not None:
        return lambda seq: seq * (NS_PER_S / rate_tps)
    # Tuples come into being when the timer fires, and leave when that has been served.
    done_ns = trace["done_ns"].to_numpy()[timers]
    fired_ns = trace["arrived_ns"].to_numpy()[timers][np.argsort(done_ns, kind="stable")]
    sent_ns = trace["sent_ns"].to_numpy()[fed]
    born_ns = fired_ns[np.searchsorted(np.sort(done_ns), sent_ns)] if len(sent_ns) else sent_ns
    last = trace["last"].to_numpy()[fed]
    order = np.argsort(last, kind="stable")
    last, born_ns = last[order], born_ns[order]
    return lambda seq: born_ns[np.minimum(np.searchsorted(last, seq), len(last) - 1)]


def _percentiles(values: np.ndarray, weights: np.ndarray) -> dict[str, float | None]:
    if not len(values):
        return dict.fromkeys(_PERCENTILES)
    order = np.argsort(values)
    passed = np.cumsum(np.maximum(weights[order], 1))
    places = {
        name: int(np.searchsorted(passed, passed[-1] * percent / 100))
        for name, percent in _PERCENTILES.items()
    }
    return {name: float(values[order][place]) for name, place in places.items()}


def _names(column: pa.ChunkedArray) -> np.ndarray:
    return np.array(column.to_pylist(), dtype=object)


# How long merges took, from the mutable component into the immutable one.
#
# A merge begins when a predicate PE starts on the message that fills its epoch, and ends when the
# PE that takes the epoch is done with the last array of it: the structure is built then, and the
# tuples that waited for it are evaluated. Every predicate PE that seals and every permutation PE
# sends one message a merge, so the k-th of each belong to the k-th merge.

_MUTABLE, _BETWEEN, _IMMUTABLE = "predicate", "permutation", "po_join"


def merge_times_ms(trace: pa.Table, roles: Mapping[str, str]) -> np.ndarray:
    """Return the virtual milliseconds of every merge; empty for a system without merges."""
    columns = {name: trace[name].to_pylist() for name in ("sender", "receiver")}
    sent_ns, started_ns, done_ns = (
        trace[name].to_pylist() for name in ("sent_ns", "started_ns", "done_ns")
    )
    rows = list(zip(columns["sender"], columns["receiver"], strict=True))
    started_at = {
        (receiver, done_ns[row]): started_ns[row] for row, (_, receiver) in enumerate(rows)
    }
    begun: dict[int, int] = {}
    ended: dict[int, int] = {}
    count: dict[str, int] = {}
    for row in np.argsort(np.array(sent_ns, np.int64), kind="stable").tolist():
        sender, receiver = rows[row]
        if roles.get(receiver) != _IMMUTABLE or roles[sender] not in (_MUTABLE, _BETWEEN):
            continue
        merge = count[sender] = count.get(sender, -1) + 1
        ended[merge] = max(done_ns[row], ended.get(merge, 0))
        if roles[sender] == _MUTABLE:
            start_ns = started_at[sender, sent_ns[row]]
            begun[merge] = min(start_ns, begun.get(merge, start_ns))
    return np.array([ended[merge] - begun[merge] for merge in sorted(begun)]) / 1e6


PARTS = 20
"""Of the arrivals, of equal length."""


def pace_tps(trace: pa.Table, roles: Mapping[str, str], tuples: int) -> dict[str, float | None]:
    """Return the tuples per virtual second over each part of the arrivals, by number from 1.

    A part ends when all that anything but the source received about it, and about what came
    before, is done; the arrivals of one message are taken to be done one after the other, evenly.
    None where a part took no time.
    """
    receiver = np.array(trace["receiver"].to_pylist(), dtype=object)
    last, done_ns = trace["last"].to_numpy(), trace["done_ns"].to_numpy()
    source = [name for name, role in roles.items() if role == "source"]
    about = np.flatnonzero((last >= 0) & ~np.isin(receiver, source))
    order = about[np.argsort(last[about], kind="stable")][::-1]
    arrivals, place = np.unique(last[order] + 1, return_index=True)
    all_done_ns = np.maximum.accumulate(done_ns[order][::-1])[::-1][place]
    ends = np.interp(
        np.linspace(0, tuples, PARTS + 1), np.append(0, arrivals), np.append(0, all_done_ns)
    )
    return {
        str(part + 1): tuples / PARTS / took_ns * NS_PER_S if took_ns else None
        for part, took_ns in enumerate(np.diff(ends).tolist())
    }


# How far the counts by which PO-Join PEs move their window lag behind the stream.
#
# A PE that goes by a count of tuples (SPO-Join, section 4.2) drops what has expired when the count
# says so. The paper's Figure 19 gives how many tuples lie between the counts of the first PE and of
# the others: so many expired tuples can be found.

_PES, _TUPLES, _TELLERS = "po_join", "router", ("permutation", "cache")


def window_lag(trace: pa.Table, roles: Mapping[str, str]) -> float | None:
    """Return by how many tuples the count of a PE is behind on average, when tuples come to it.

    The first PE is left out, as in the paper; so is the time before a first count has come. None
    for a system whose PEs receive no counts.
    """
    sender, receiver = (np.array(trace[name].to_pylist()) for name in ("sender", "receiver"))
    last, arrived_ns = (trace[name].to_numpy() for name in ("last", "arrived_ns"))
    sent_by = np.array([roles[name] for name in sender])
    pes = [name for name, role in roles.items() if role == _PES]
    lags: list[np.ndarray] = []
    for pe in pes[1:]:
        rows = np.flatnonzero((receiver == pe) & (last >= 0))
        rows = rows[np.argsort(arrived_ns[rows], kind="stable")]
        tells = np.isin(sent_by[rows], _TELLERS)
        known = np.maximum.accumulate(np.where(tells, last[rows], -1))
        counted = (sent_by[rows] == _TUPLES) & (known >= 0)
        # A count may come from a PE that is ahead of this one in the stream: behind by nothing.
        lags.append(np.maximum(last[rows][counted] - known[counted], 0))
    every = np.concatenate([np.empty(0, np.int64), *lags])
    return float(every.mean()) if len(every) else None
