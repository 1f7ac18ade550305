"""How long merges took, from a run's trace: from the mutable component into the immutable one.

A merge begins when a predicate PE starts on the message that fills its epoch, and ends when the
PE that takes the epoch is done with the last array of it: the structure is built then, and the
tuples that waited for it are evaluated. Every predicate PE that seals and every permutation PE
sends one message a merge, so the k-th of each belong to the k-th merge.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

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
