"""Two measures that only systems with PO-Join PEs have.

How long merges took, from the mutable component into the immutable one. A merge begins when a
predicate PE starts on the message that fills its epoch, and ends when the PE that takes the epoch
is done with the last array of it: the structure is built then, and the tuples that waited for it
are evaluated. Every predicate PE that seals and every permutation PE sends one message a merge, so
the k-th of each belong to the k-th merge.

How far the counts lag by which PO-Join PEs move their window. A PE that goes by a count of tuples
(SPO-Join, section 4.2) drops what has expired when the count says so. The paper's Figure 19 gives
how many tuples lie between the counts of the first PE and of the others: so many expired tuples can
be found.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from scenarios.report.run_analysis import places_of

_MUTABLE, _BETWEEN, _IMMUTABLE = "predicate", "permutation", "po_join"
_TUPLES, _REPORTING = "router", ("permutation", "cache")


def merge_times_ms(trace: pa.Table, roles: Mapping[str, str]) -> np.ndarray:
    """Return the virtual milliseconds of every merge; empty for a system without merges."""
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
    """Return by how many tuples the count of a PE is behind on average, when tuples come to it.

    The first PE is left out, as in the paper; so is the time before a first count has come. None
    for a system whose PEs receive no counts.
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
