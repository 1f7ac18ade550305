"""How many tuples a second a window join takes on this machine (PIM-Tree, Figures 8 to 13).

The kernels run over full windows, one batch after the other, and nothing else is timed: processor
time where one thread works, wall time where several share the index. A pass is as many arrivals as
replace both windows, so that whatever is merged, archived or rebuilt comes round in each.

While values drift (Figure 13b), tuples are timed window by window. It is a self join in three
phases: the mean of the values is fixed, moves steadily over ten windows, and is fixed again. The
phases last 4, 10 and 6 windows; the paper's (section 5) 4, 10 and 4.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median

import numpy as np

from joins.hashing import mix
from joins.machine.memory import keep_freed_memory
from joins.window_join.registry import Making
from joins.window_join.rows import KernelRows
from joins.window_join.shared_join import THREAD_TASK_ROWS
from joins.window_join.window_join import WindowJoin
from scenarios.calibration.window_workload import (
    Matches,
    WindowWorkload,
    band_join,
    expected_matches,
    timed_batches,
)
from scenarios.surveys.survey import DriftSpeedSurvey, Surveyed, WindowJoinSpeedSurvey, timed_record
from scenarios.synthetic import drifting

_MADE_ROWS = 65_536
"""Arrivals that are made at once, in whole batches."""
_LEAST_TUPLES = 1 << 18
"""Of a pass: fewer take too little time to measure."""
_NESTED_LOOP_PAIRS = 2e9
"""Most pairs that a nested loop compares in a pass, which is then shorter."""
_CHECKED = 8_192
"""The last tuples, whose matches are compared with numpy's."""
_COMPILING = 1 << 6
BEFORE, DRIFTING, WINDOWS = 4, 10, 20
"""Windows of tuples before the drift, while it lasts, and in all."""
_MATCH_RATE = 2
_COMPILING_BITS = 6


def take_window_join_speed(survey: WindowJoinSpeedSurvey) -> Surveyed:
    """Fill the windows, replace them once, and time each pass; check the last tuples' matches."""
    keep_freed_memory()
    workload, tuples = survey.workload, _pass_tuples(survey)
    small = WindowWorkload(
        windows=(_COMPILING, _COMPILING), self_join=workload.self_join, values=workload.values
    )
    _stream(survey, small).advance(4 * _COMPILING, timed=False)  # the first ones compile
    stream = _stream(survey, workload)
    stream.fill(workload.arrivals)
    stream.advance(min(tuples, workload.arrivals), timed=False)  # memory is not new after that
    passes = [stream.advance(tuples, timed=True) for _ in range(survey.passes)]
    record = timed_record(tuples, passes, threads=survey.threads) | {
        "match_rate": stream.matches / (survey.passes * tuples),
        "matches": stream.matches,
        "window": max(workload.windows),
    }
    if survey.threads:
        at_once = survey.threads * (survey.task_rows or THREAD_TASK_ROWS)
        record["task_us"] = {"median": at_once * record["tuple_ns"]["median"] / 1e3}
    expected = workload.expected(stream.at - _CHECKED, stream.at)
    return Surveyed(
        record=record,
        checked=f"the last {_CHECKED:,} tuples' matches are those that numpy finds",
        passed=all(map(np.array_equal, stream.last_matches, expected)),
    )


def _pass_tuples(survey: WindowJoinSpeedSurvey) -> int:
    workload = survey.workload
    tuples = max(_LEAST_TUPLES, workload.arrivals)
    if survey.index == "nested_loop":
        tuples = min(tuples, max(_CHECKED, int(_NESTED_LOOP_PAIRS / max(workload.windows))))
    return tuples


def _stream(survey: WindowJoinSpeedSurvey, workload: WindowWorkload) -> Stream:
    return Stream(
        make_join(survey),
        workload.rows,
        batch_rows=survey.batch_rows,
        threads=survey.threads,
        remember=_CHECKED,
    )


class Stream:
    """A join, and how far its streams have come.

    Attributes
    ----------
    at
        Arrivals until now.
    matches
        Of the tuples that were timed.
    """

    def __init__(
        self,
        join: WindowJoin,
        rows: Callable[[int, int], KernelRows],
        *,
        batch_rows: int,
        threads: int,
        remember: int,
    ) -> None:
        """Begin with empty windows.

        *rows* returns the arrivals from one on and before another. Of the last *remember* of an
        `advance` the matches are stored. The clock is wall time where *threads* share the index.
        """
        self.at = self.matches = 0
        self._join, self._rows, self._batch_rows = join, rows, batch_rows
        self._made_rows = max(1, _MADE_ROWS // batch_rows) * batch_rows
        self._clock = time.perf_counter if threads else time.thread_time
        self._remember = remember
        # Every batch is full but the last one of an `advance`, which has at least as many tuples.
        self._found: deque[Matches] = deque(maxlen=remember // batch_rows + 2)

    def fill(self, tuples: int) -> None:
        """Fill the windows with *tuples* that see nothing: a nested loop would never end."""
        for rows in self._next(tuples):
            self._join.join(rows._replace(stop=rows.start))

    def advance(self, tuples: int, *, timed: bool) -> float:
        """Join the next *tuples*, and return the seconds that it took."""
        seconds = 0.0
        for rows in self._next(tuples):
            for found, took_s in timed_batches(self._join, rows, self._batch_rows, self._clock):
                seconds += took_s
                if timed:
                    self.matches += int(found.count.sum())
                    self._found.append((found.count, found.fingerprint))
        return seconds

    @property
    def last_matches(self) -> Matches:
        """The matches of the last tuples that were timed, so many as are stored."""
        count, fingerprint = map(np.concatenate, zip(*self._found, strict=True))
        return count[-self._remember :], fingerprint[-self._remember :]

    def _next(self, tuples: int) -> Iterator[KernelRows]:
        """Yield the next *tuples*, made some batches at a time."""
        end = self.at + tuples
        while self.at < end:
            begin, self.at = self.at, min(self.at + self._made_rows, end)
            yield self._rows(begin, self.at)


def make_join(survey: WindowJoinSpeedSurvey) -> WindowJoin:
    """Return the join, nothing in its windows; several threads are real ones."""
    making = Making(
        index=survey.index,
        merge_ratio=survey.merge_ratio,
        insertion_depth=survey.insertion_depth,
        chain_length=survey.chain_length,
        threads=survey.threads,
        task_rows=survey.task_rows,
        merge=survey.merge,
        lookup_rows=survey.lookup_rows,
    )
    return making.make(self_join=survey.self_join, unit_ps=None)


def take_drift_speed(survey: DriftSpeedSurvey) -> Surveyed:
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
