"""How far behind the stream the counts are that PO-Join PEs tell the window by, from a run's trace.

A PE that goes by a count of tuples (SPO-Join, section 4.2) drops what has expired when the count
says so. The paper's Figure 19 gives how many tuples lie between the counts of the first PE and of
the others: so many expired tuples can be found.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

_PES, _TUPLES, _TELLERS = "po_join", "router", ("permutation", "cache")


def window_lag(trace: pa.Table, roles: Mapping[str, str]) -> float | None:
    """Return by how many tuples the count of a PE is behind on average, when tuples come to it.

    The first PE is left out, as in the paper; so is the time before a first count has come. None
    for a system whose PEs are told no counts.
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
