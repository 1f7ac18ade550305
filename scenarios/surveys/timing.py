"""How a survey reports what it timed: tuples a second, from several passes over the same work."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any


def timed_record(tuples: int, seconds: Sequence[float], *, threads: int = 0) -> dict[str, Any]:
    """Return the figures of passes over *tuples* that took *seconds* each.

    *threads* are real ones, whose wall time it is; none are one thread's processor time.
    """
    rates = [tuples / max(one, 1e-9) for one in seconds]
    return {
        "tuples_s": {"median": median(rates), "least": min(rates), "most": max(rates)},
        "tuple_ns": {"median": 1e9 / median(rates)},
        "tuples": tuples,
        "passes": len(rates),
        "threads": max(1, threads),
        "clock": "wall time" if threads else "processor time",
    }
