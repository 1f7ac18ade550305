"""How many tuples a second a structure takes alone on this machine: a subwindow, a sealed segment.

A subwindow of PanJoin (its Figures 10 to 13): insertion fills an empty one by sorted batches.
Probing asks a full one for the values in a range: a BI-Sort answers with records, the other
structures list their matches. The numbers of matches are compared with numpy's.

A segment of SPO-Join (Figures 7 to 9) is one slide's tuples in an immutable structure, what one
PO-Join PE has of a window. Tuples of Q3's kind probe it, a hundred at a time as a PE gets them,
with two inequalities that hold together for a chosen share of all pairs. Counts are compared with
numpy's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from joins.hashing import mix
from joins.indexes.b_plus.b_plus_tree import BPlusTree
from joins.indexes.index import EncodedRanges, Ranges, encode_ranges
from joins.indexes.panjoin.bi_sort import BiSort
from joins.indexes.panjoin.subwindow import Subwindow, SubwindowShape, probe_subwindows
from joins.indexes.structures import SEGMENTS
from scenarios.surveys.survey import (
    SegmentSpeedSurvey,
    SubwindowSpeedSurvey,
    Surveyed,
    timed_record,
)
from scenarios.synthetic import DISTRIBUTIONS, opposed

_INT = ("int64",)
_KEY_RANGE = 1 << 30
_SIGMA = 1.25
_LEAST_PROBES = 256
_KEYS_SEED, _PROBES_SEED = 13, 31
_BATCH = 100
_MEAN, _DEVIATION = 10.0, 3.0
_DISTANCE_SEED, _FARE_SEED = 1, 2


def take_subwindow_speed(survey: SubwindowSpeedSurvey) -> Surveyed:
    """Fill the subwindow in each pass, or fill it once and probe it in each."""
    if survey.selectivity is None:
        fills = [_time_fill(survey) for _ in range(survey.passes + 1)]
        # The first pass compiles.
        return Surveyed(
            record=timed_record(survey.tuples, [seconds for _, seconds in fills[1:]]),
            checked=f"{survey.tuples:,} tuples are stored",
            passed=all(stored == survey.tuples for stored, _ in fills),
        )
    probing = _Probing(survey, survey.selectivity)
    passes = [probing.probe() for _ in range(survey.passes + 1)]
    record = timed_record(probing.count, [seconds for _, seconds in passes[1:]])
    record["match_rate"] = probing.right / probing.count
    return Surveyed(
        record=record,
        checked="as many matches as numpy finds in the sorted values",
        passed=all(found == probing.right for found, _ in passes),
    )


def _keys(survey: SubwindowSpeedSurvey) -> np.ndarray:
    distinct = _KEY_RANGE
    if survey.join == "equi" and survey.selectivity is not None:
        distinct = max(1, survey.tuples // survey.selectivity)
    return np.random.default_rng(_KEYS_SEED).integers(0, distinct, survey.tuples)


def _time_fill(survey: SubwindowSpeedSurvey) -> tuple[int, float]:
    """Return how many tuples are stored, and the seconds that took; keep nothing of it."""
    full, seconds = _fill(survey)
    return len(full), seconds


def _fill(survey: SubwindowSpeedSurvey) -> tuple[Subwindow | BPlusTree, float]:
    """Return a full subwindow, or tree, and the seconds that insertion took."""
    keys, seconds = _keys(survey), 0.0
    full = _make(survey)
    for first in range(0, survey.tuples, survey.batch):
        batch = keys[first : first + survey.batch]
        order = np.argsort(batch)
        values, positions = batch[order], order + first
        started = time.thread_time()
        if isinstance(full, BPlusTree):
            full.insert(values, positions)
        else:
            full.insert([values], positions)
        seconds += time.thread_time() - started
    return full, seconds


def _make(survey: SubwindowSpeedSurvey) -> Subwindow | BPlusTree:
    if survey.structure == "b_plus_tree":
        return BPlusTree()
    shape = SubwindowShape(
        dtypes=_INT,
        capacity=survey.tuples,
        partitions=survey.partitions,
        sigma=_SIGMA,
        buffer=survey.buffer,
    )
    return Subwindow(shape, survey.structure, first=0)


@lru_cache(maxsize=1)
def _filled(survey: SubwindowSpeedSurvey) -> Subwindow | BPlusTree:
    full = _fill(survey)[0]
    if isinstance(full, Subwindow):
        full.seal()
    return full


class _Probing:
    """A full subwindow, the ranges that are looked for, and how many matches they have.

    Attributes
    ----------
    count, right
        Tuples that probe, and their matches by numpy.
    """

    def __init__(self, survey: SubwindowSpeedSurvey, selectivity: int) -> None:
        self._full = _filled(survey.model_copy(update={"batch": survey.tuples, "passes": 1}))
        ordered = np.sort(_keys(survey))
        lists = survey.structure != "bi_sort"
        self.count = max(_LEAST_PROBES, survey.probes // (selectivity if lists else 1))
        rng = np.random.default_rng(_PROBES_SEED)
        values = np.sort(rng.integers(0, ordered[-1] + 1, self.count))
        # A band of so many values of 2^30; a single one of as few as make each so frequent.
        reach = selectivity * _KEY_RANGE // (2 * survey.tuples) if survey.join == "band" else 0
        self._low, self._high = values - reach, values + reach
        begin = np.searchsorted(ordered, self._low, "left")
        self.right = int((np.searchsorted(ordered, self._high, "right") - begin).sum())
        self._probes: EncodedRanges = encode_ranges(
            Ranges([self._low], [self._high], [False]), _INT
        )

    def probe(self) -> tuple[int, float]:
        """Return how many matches are found, and the seconds that took."""
        answer = self._answer()
        started = time.thread_time()
        found = answer()
        return found, time.thread_time() - started

    def _answer(self) -> Callable[[], int]:
        full, probes = self._full, self._probes
        if isinstance(full, BPlusTree):
            return lambda: int(full.probe(self._low, self._high, enumerate=True).count.sum())
        if isinstance(full.structure, BiSort):
            return lambda: full.bi_sort.find_records(probes)[0].lengths
        return lambda: int(probe_subwindows([full], probes, enumerate=True).count.sum())


def take_segment_speed(survey: SegmentSpeedSurvey) -> Surveyed:
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
