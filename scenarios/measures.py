"""Everything that can be said of a finished run in numbers, by dotted names.

Beside the stable keys of `run_json.summary` a record has, per operator and per part of the system:

``kernel_seconds``
    real time spent in its PEs (``total``: in all but source and sink); empty on Ray
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

from collections.abc import Callable, Mapping, Sequence
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
from topologies.actor_graph import ActorGraph

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
    graph = report.plan.graph(pairs=report.plan.config.pairs)
    roles: dict[str, str] = dict(graph.nodes(data="role"))
    operators = [role for role in dict.fromkeys(roles.values()) if role not in ENDS]
    named = {role: (role,) for role in operators} | dict(parts or {})
    trace = pq.read_table(report.directory / "trace.parquet", columns=_COLUMNS)
    busy_s = _busy_seconds(trace, roles)
    measured = report.plan.config.measured
    about = trace if measured is None else _about(trace, *measured)
    busy_measured_s = _busy_seconds(about, roles)
    tuples = report.outcome.tuples
    merges_ms = merge_times_ms(trace, roles)
    every = {"total": tuple(operators)}
    return summary(report) | {
        "kernel_seconds": _summed(report.kernel_seconds, roles, named | every),
        "state_bytes": _summed(report.state_bytes, roles, named | every),
        "busy_seconds": _summed(busy_measured_s, roles, named | every),
        "capacity_tps": _capacity(
            measured[1] - measured[0] if measured else tuples, busy_measured_s, roles, named | every
        ),
        "transmission": _transmission(trace, busy_s, roles, named),
        "balance": _balance(busy_measured_s, roles, named),
        "row_balance": _balance(_received(about, roles), roles, named),
        "copies": _copies(trace, tuples, roles, named),
        "execution": _execution(report, graph, operators),
        "pace_tps": pace_tps(trace, roles, tuples),
        "answer_ms": _answers(trace, roles, named, report.plan.config.feeding.rate_tps),
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


def _summed(
    values: Mapping[str, float], roles: Mapping[str, str], parts: Parts
) -> dict[str, float]:
    if not values:
        return {}
    return {
        part: sum(values.get(actor, 0) for actor in _members(operators, roles))
        for part, operators in parts.items()
    }


def _members(operators: Sequence[str], roles: Mapping[str, str]) -> list[str]:
    """Return the actors of a part."""
    return [actor for actor, role in roles.items() if role in operators or actor in operators]


def _about(trace: pa.Table, first: int, stop: int) -> pa.Table:
    """Return the messages about arrivals *first* to *stop* (exclusive)."""
    return trace.filter((pc.field("last") >= first) & (pc.field("first") < stop))


def _busy_seconds(trace: pa.Table, roles: Mapping[str, str]) -> dict[str, float]:
    receiver = _names(trace["receiver"])
    spent_ns = (trace["done_ns"].to_numpy() - trace["started_ns"].to_numpy()).astype(np.int64)
    return {actor: float(spent_ns[receiver == actor].sum()) / NS_PER_S for actor in roles}


def _received(trace: pa.Table, roles: Mapping[str, str]) -> dict[str, int]:
    receiver, rows = _names(trace["receiver"]), trace["rows"].to_numpy()
    return {actor: int(rows[receiver == actor].sum()) for actor in roles}


def _balance(
    loads: Mapping[str, float], roles: Mapping[str, str], parts: Parts
) -> dict[str, float | None]:
    balance: dict[str, float | None] = {}
    for part, operators in parts.items():
        shares = [loads[actor] for actor in _members(operators, roles)]
        greatest = max(shares, default=0)
        balance[part] = sum(shares) / len(shares) / greatest if greatest else None
    return balance


def _copies(
    trace: pa.Table, tuples: int, roles: Mapping[str, str], parts: Parts
) -> dict[str, float | None]:
    received = _summed(_received(trace, roles), roles, parts)
    return {part: n / tuples if tuples else None for part, n in received.items()}


def _capacity(
    tuples: int, busy_s: Mapping[str, float], roles: Mapping[str, str], parts: Parts
) -> dict[str, float | None]:
    capacity: dict[str, float | None] = {}
    for part, operators in parts.items():
        busiest_s = max((busy_s[actor] for actor in _members(operators, roles)), default=0.0)
        capacity[part] = tuples / busiest_s if busiest_s else None
    return capacity


def _transmission(
    trace: pa.Table, busy_s: Mapping[str, float], roles: Mapping[str, str], parts: Parts
) -> dict[str, float | None]:
    sender, receiver = _names(trace["sender"]), _names(trace["receiver"])
    under_way_ns = (trace["arrived_ns"].to_numpy() - trace["sent_ns"].to_numpy()).astype(np.int64)
    shares: dict[str, float | None] = {}
    for part, operators in parts.items():
        actors = _members(operators, roles)
        sent = np.isin(sender, actors) & (sender != receiver)
        sending_s = float(under_way_ns[sent].sum()) / NS_PER_S
        whole_s = sending_s + sum(busy_s[actor] for actor in actors)
        shares[part] = sending_s / whole_s if whole_s else None
    return shares


def _execution(report: Report, graph: ActorGraph, operators: Sequence[str]) -> dict[str, float]:
    network = build_network(report.plan.config.network, graph.placement.values())
    cost = measured_cost(report.directory / "trace.parquet", graph, network, operators)
    return {"seconds": cost.seconds, "bytes": cost.nbytes}


def _answers(
    trace: pa.Table, roles: Mapping[str, str], parts: Parts, rate_tps: int | None
) -> dict[str, dict[str, float | None]]:
    """Return per part the percentiles of its answers' latency, each message by its middle tuple."""
    sender, receiver = _names(trace["sender"]), _names(trace["receiver"])
    role_of = np.vectorize(lambda name: roles.get(name, ""), otypes=[object])
    from_role = role_of(sender) if len(sender) else sender
    to_sink = (role_of(receiver) if len(receiver) else receiver) == "sink"
    first, last = trace["first"].to_numpy(), trace["last"].to_numpy()
    to_sink &= last >= 0
    fed = (from_role == "source") & (sender != receiver)
    born_ns = _births(trace, fed, (from_role == "source") & ~fed, rate_tps)
    middle = (first[to_sink] + last[to_sink]) // 2
    latency_ms = (trace["arrived_ns"].to_numpy()[to_sink] - born_ns(middle)) / 1e6
    weight = trace["rows"].to_numpy()[to_sink]
    found: dict[str, dict[str, float | None]] = {}
    for part, operators in parts.items():
        mine = np.isin(from_role[to_sink].astype(str), list(operators))
        found[part] = _percentiles(latency_ms[mine], weight[mine])
    return found


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
