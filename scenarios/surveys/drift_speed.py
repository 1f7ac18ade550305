"""How many tuples a second threads take while values drift, window by window (PIM-Tree, 13b).

A self join in three phases: the mean of the values is fixed, moves steadily over ten windows, and
is fixed again. The phases last 4, 10 and 6 windows; the paper's (section 5) 4, 10 and 4.
"""

from __future__ import annotations

from functools import partial
from statistics import median

import numpy as np

from joins.hashing import mix
from joins.machine.memory import keep_freed_memory
from joins.window_join.registry import Making
from joins.window_join.rows import KernelRows
from scenarios.calibration.window_workload import Matches, band_join, expected_matches
from scenarios.surveys.survey import DriftSpeedSurvey, Surveyed
from scenarios.surveys.window_join_speed import Stream
from scenarios.synthetic import drifting

BEFORE, DRIFTING, WINDOWS = 4, 10, 20
"""Windows of tuples before the drift, while it lasts, and in all."""
_MATCH_RATE = 2
_COMPILING_BITS = 6


def take(survey: DriftSpeedSurvey) -> Surveyed:
    """Join all phases in each pass; check the matches of the last window."""
    keep_freed_memory()
    _pass(survey.model_copy(update={"window_bits": _COMPILING_BITS}))  # the first one compiles
    passes = [_pass(survey) for _ in range(survey.passes)]
    window = 1 << survey.window_bits
    taken = [median(seconds) for seconds in zip(*(seconds for seconds, _ in passes), strict=True)]
    rows = _rows(survey, (WINDOWS - 2) * window, WINDOWS * window)
    right = expected_matches(rows, window, self_join=True)
    return Surveyed(
        record={
            "pace_tps": {str(number): window / seconds for number, seconds in enumerate(taken, 1)},
            "threads": survey.threads,
            "clock": "wall time" if survey.threads else "processor time",
        },
        checked="the last window's tuples have as many matches as numpy finds",
        passed=all(all(map(np.array_equal, found, right)) for _, found in passes),
    )


def _pass(survey: DriftSpeedSurvey) -> tuple[list[float], Matches]:
    """Return the seconds that each window of tuples took, and the matches of the last ones."""
    window = 1 << survey.window_bits
    making = Making(merge_ratio=survey.merge_ratio, threads=survey.threads)
    stream = Stream(
        making.make(self_join=True, unit_ps=None),
        partial(_rows, survey),
        batch_rows=survey.batch_rows,
        threads=survey.threads,
        remember=window,
    )
    taken = [stream.advance(window, timed=True) for _ in range(WINDOWS)]
    return taken, stream.last_matches


def _rows(survey: DriftSpeedSurvey, begin: int, end: int) -> KernelRows:
    """Return arrivals *begin* to *end* - 1."""
    window = 1 << survey.window_bits
    keys = drifting_keys(np.arange(begin, end), window, survey.shift)
    band = _MATCH_RATE * np.sqrt(np.pi) / window  # of normal values that stand still
    return band_join(keys, band, window, begin, self_join=True)


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
