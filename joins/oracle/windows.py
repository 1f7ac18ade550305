"""Windows found anew from their definition, for the oracles."""

from __future__ import annotations

import numpy as np

from joins.batch import Batch
from joins.queries.windows import Window


def window_rows(
    window: Window, stored: Batch, stored_seq: np.ndarray, probes: Batch, seq: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of *stored* that each probe sees: first, and the one after the last."""
    base = int(stored.id[0]) if len(stored) else 0
    last = np.searchsorted(stored_seq, seq)
    if window.kind == "count":
        preceding = base + last
        oldest = (preceding // window.slide) * window.slide - (window.length - window.slide)
        first = np.maximum(oldest, base) - base
    elif window.semantics == "precise":
        first = np.searchsorted(stored.ts, probes.ts - window.length, "left")
        last = np.minimum(last, np.searchsorted(stored.ts, probes.ts, "left"))
    else:
        oldest = (probes.ts // window.slide) * window.slide - (window.length - window.slide)
        first = np.searchsorted(stored.ts, oldest, "left")
    return np.minimum(first, last).astype(np.int64), last.astype(np.int64)


def unseen_rows(window: Window, stored: Batch, latest: int | None) -> int:
    """Return how many rows of *stored* no tuple that arrives after event time *latest* sees."""
    if latest is None or not len(stored):
        return 0
    at = latest if window.kind == "time" else int(stored.id[-1]) + 1
    if window.semantics == "precise":
        oldest = at - window.length
    else:
        oldest = at // window.slide * window.slide - (window.length - window.slide)
    return int((stored.ts if window.kind == "time" else stored.id).searchsorted(oldest))
