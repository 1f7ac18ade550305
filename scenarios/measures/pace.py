"""How fast a run was at first, in between and at last, from its trace."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from actors.source import NS_PER_S

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
    told = np.flatnonzero((last >= 0) & ~np.isin(receiver, source))
    order = told[np.argsort(last[told], kind="stable")][::-1]
    arrivals, place = np.unique(last[order] + 1, return_index=True)
    all_done_ns = np.maximum.accumulate(done_ns[order][::-1])[::-1][place]
    ends = np.interp(
        np.linspace(0, tuples, PARTS + 1), np.append(0, arrivals), np.append(0, all_done_ns)
    )
    return {
        str(part + 1): tuples / PARTS / took_ns * NS_PER_S if took_ns else None
        for part, took_ns in enumerate(np.diff(ends).tolist())
    }
