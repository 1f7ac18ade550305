"""How many tuples a second a sealed segment answers on this machine (SPO-Join, Figures 7 to 9).

A segment is one slide's tuples in an immutable structure, what one PO-Join PE has of a window.
Tuples of Q3's kind probe it, a hundred at a time as a PE gets them, with two inequalities that hold
together for a chosen share of all pairs. Counts are compared with numpy's.
"""

from __future__ import annotations

import time

import numpy as np

from joins.hashing import mix
from joins.indexes.index import Ranges
from joins.indexes.structures import SEGMENTS
from scenarios.surveys.survey import SegmentSpeedSurvey, Surveyed, timed_record
from scenarios.synthetic import DISTRIBUTIONS, opposed

_BATCH = 100
_MEAN, _DEVIATION = 10.0, 3.0
_DISTANCE_SEED, _FARE_SEED = 1, 2


def take(survey: SegmentSpeedSurvey) -> Surveyed:
    """Seal the segment, and probe it in each pass."""
    distance, fare = _columns(survey.tuples + survey.probes, survey.match_share)
    stored = [distance[: survey.tuples], fare[: survey.tuples]]
    probing = distance[survey.tuples :], fare[survey.tuples :]
    segment = SEGMENTS[survey.structure].from_columns(stored)
    batches = [
        _ranges(probing[0][begin : begin + _BATCH], probing[1][begin : begin + _BATCH])
        for begin in range(0, survey.probes, _BATCH)
    ]
    seconds, counts = [], []
    for _ in range(survey.passes + 1):
        started = time.thread_time()
        found = [segment.probe(ranges) for ranges in batches]
        seconds.append(time.thread_time() - started)
        counts.append(np.concatenate([one.count for one in found]))
    right = np.array(
        [
            np.count_nonzero((stored[0] < one) & (stored[1] > other))
            for one, other in zip(*probing, strict=True)
        ]
    )
    record = timed_record(survey.probes, seconds[1:])  # the first pass compiled
    record["match_rate"] = float(right.mean())
    return Surveyed(
        record=record,
        checked="every tuple has the matches that a scan finds",
        passed=all(np.array_equal(count, right) for count in counts),
    )


def _columns(tuples: int, match_share: float) -> tuple[np.ndarray, np.ndarray]:
    """Return distance and fare, such that a share of all pairs matches."""
    i = np.arange(tuples)
    distance, bits = (mix((seed << 48) ^ i) for seed in (_DISTANCE_SEED, _FARE_SEED))
    distance = DISTRIBUTIONS["normal"](distance, _MEAN, _DEVIATION)
    return distance, opposed((distance - _MEAN) / _DEVIATION, bits, match_share)


def _ranges(distance: np.ndarray, fare: np.ndarray) -> Ranges:
    """Return the ranges of stored tuples with a smaller distance and a higher fare."""
    endless = np.full(len(distance), np.inf)
    return Ranges(
        [-endless, np.nextafter(fare, np.inf)], [np.nextafter(distance, -np.inf), endless]
    )
