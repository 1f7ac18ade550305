"""How many tuples a second threads take while values drift, window by window (PIM-Tree, 13b).

A self join in three phases: the mean of the values is fixed, moves steadily over ten windows, and
is fixed again. The phases last 4, 10 and 6 windows; the paper's (section 5) 4, 10 and 4.
"""

from __future__ import annotations

import time
from statistics import median

import numpy as np

from joins.hashing import mix
from joins.machine.memory import keep_freed_memory
from joins.window_join.registry import Making
from joins.window_join.rows import Rows, make_rows
from joins.window_join.window_join import WindowJoin
from scenarios.surveys.survey import DriftSpeedSurvey, Surveyed
from scenarios.surveys.window_workload import expected_matches
from scenarios.synthetic import drifting

BEFORE, DRIFTING, WINDOWS = 4, 10, 20
"""Windows of tuples before the drift, while it lasts, and in all."""
_MATCH_RATE = 2
_COMPILING = 1 << 6


def take(survey: DriftSpeedSurvey) -> Surveyed:
    """Join all phases in each pass; check the matches of the last window."""
    keep_freed_memory()
    small = survey.model_copy(update={"window_bits": _COMPILING.bit_length() - 1})
    _pass(small)  # the first one compiles
    passes = [_pass(survey) for _ in range(survey.passes)]
    window = 1 << survey.window_bits
    taken = [median(seconds) for seconds in zip(*(seconds for seconds, _ in passes), strict=True)]
    right, _ = expected_matches(_rows(survey, WINDOWS - 2, WINDOWS), window, self_join=True)
    return Surveyed(
        record={
            "pace_tps": {str(number): window / seconds for number, seconds in enumerate(taken, 1)},
            "threads": survey.threads,
            "clock": "wall time" if survey.threads else "processor time",
        },
        checked="the last window's tuples have as many matches as numpy finds",
        passed=all(np.array_equal(found, right) for _, found in passes),
    )


def _pass(survey: DriftSpeedSurvey) -> tuple[list[float], np.ndarray]:
    """Return the seconds that each window of tuples took, and the matches of the last ones."""
    join = Making(merge_ratio=survey.merge_ratio, threads=survey.threads).make(
        self_join=True, unit_ps=None
    )
    taken, found = [], np.empty(0, np.int64)
    for number in range(WINDOWS):
        seconds, found = _join(join, _rows(survey, number, number + 1), survey)
        taken.append(seconds)
    return taken, found


def _join(join: WindowJoin, rows: Rows, survey: DriftSpeedSurvey) -> tuple[float, np.ndarray]:
    clock = time.perf_counter if survey.threads else time.thread_time
    seconds, counts = 0.0, []
    for begin in range(0, len(rows.side), survey.batch_rows):
        batch = rows.part(begin, begin + survey.batch_rows)
        started = clock()
        found = join.join(batch)
        seconds += clock() - started
        counts.append(found.count)
    return seconds, np.concatenate(counts)


def _rows(survey: DriftSpeedSurvey, first: int, last: int) -> Rows:
    """Return the arrivals of windows *first* to *last* - 1."""
    window = 1 << survey.window_bits
    row = np.arange(first * window, last * window)
    keys = drifting_keys(row, window, survey.shift)
    band = _MATCH_RATE * np.sqrt(np.pi) / window  # of normal values that stand still
    return make_rows(
        side=np.zeros(len(row), np.int64),
        position=row,
        key=keys,
        low=keys - band,
        high=keys + band,
        start=np.maximum(0, row - window),
        stop=row,
    )


def drifting_keys(row: np.ndarray, window: int, shift: float, seed: int = 0) -> np.ndarray:
    """Return normal keys of tuples *row*, whose mean moves by *shift* over `DRIFTING` windows."""
    return drifting(
        row,
        mix((seed << 48) ^ row),
        mean=0,
        deviation=1,
        shift=shift,
        first=BEFORE * window,
        tuples=DRIFTING * window,
    )
