"""The highest rate that a system sustains: at which its queues do not grow.

Karimov et al. (Benchmarking Distributed Stream Data Processing Systems, ICDE 2018) define
sustainable throughput as the highest load of events that a system can handle without prolonged
back-pressure, that is without a continuously increasing event-time latency.

The criterion here: an arrival is behind by the time from when it came into being until all that
anything received about it, and about what came before, was done (`scenarios.measures.Pace`); that
is what waits in all queues, the source's included. A rate is sustained if, from the third quarter
of a run's arrivals to the fourth, the mean of that time grows by at most `GROWTH` of the time that
passed from one quarter to the next. A system of capacity c that is fed at a rate r above it falls
behind by r / c - 1 of the time, so rates up to 1 % above the capacity pass. The first half fills
windows and caches and is not judged; means over quarters keep what comes and goes, as a merge, from
counting as growth.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np
import pyarrow.parquet as pq

from actors.protocol import NS_PER_S
from scenarios.measures import Pace
from scenarios.run import FinishedRun
from scenarios.run_directory import TRACE

GROWTH = 0.01
"""Nanoseconds by which a run may fall behind in each nanosecond, and still keep up."""
PRECISION = 0.02
"""A search ends when the lowest rate that is not sustained is above the highest that is by this
share at the most."""

_SAMPLES = 256
"""Arrivals of a quarter that are looked at."""
_HEADROOM = 2.0
"""A first rate too high, over what a run did without a rate."""
_RATE_MAX = 2**40


def growth(pace: Pace, tuples: int, rate_tps: int) -> float:
    """Return by how many nanoseconds a run fell behind in each nanosecond of its second half."""
    third, fourth = (
        np.linspace(first * tuples, (first + 0.25) * tuples, _SAMPLES) for first in (0.5, 0.75)
    )
    behind = [pace.done_ns(part) - part * (NS_PER_S / rate_tps) for part in (third, fourth)]
    passed_ns = tuples / 4 * NS_PER_S / rate_tps
    return float(behind[1].mean() - behind[0].mean()) / passed_ns


def is_sustained(finished: FinishedRun) -> bool:
    """Return whether a finished run, which had a rate, kept up with it."""
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
        if sustains(below):
            low = below
        else:
            high = below
    while high > max(low + 1, low * (1 + PRECISION)):
        middle = min(high - 1, max(low + 1, round(sqrt(low * high))))
        if sustains(middle):
            low = middle
        else:
            high = middle
    return low
