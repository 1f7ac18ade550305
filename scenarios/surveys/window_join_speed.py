"""How many tuples a second a window join takes on this machine (PIM-Tree, Figures 8 to 13).

The kernels run over full windows, one batch after the other, and nothing else is timed: processor
time where one thread works, wall time where several share the index. A pass is as many arrivals as
replace both windows, so that whatever is merged, archived or rebuilt comes round in each.
"""

from __future__ import annotations

import time

import numpy as np

from joins.machine.memory import keep_freed_memory
from joins.window_join.registry import Making
from joins.window_join.shared_join import THREAD_TASK_ROWS
from joins.window_join.window_join import WindowJoin
from scenarios.surveys.survey import Surveyed, WindowJoinSpeedSurvey, timed_record
from scenarios.surveys.window_workload import WindowWorkload

_FILL_BATCH = 65_536
_LEAST_TUPLES = 1 << 18
"""Of a pass: fewer take too little time to measure."""
_NESTED_LOOP_PAIRS = 2e9
"""Most pairs that a nested loop compares in a pass, which is then shorter."""
_CHECKED = 8_192
"""The last tuples, whose matches are compared with numpy's."""
_COMPILING = 1 << 6


def take(survey: WindowJoinSpeedSurvey) -> Surveyed:
    """Fill the windows, replace them once, and time each pass; check the last tuples' matches."""
    keep_freed_memory()
    workload = survey.workload
    _Stream(survey, _small(workload)).advance(4 * _COMPILING, timed=False)  # the first ones compile
    stream, tuples = _Stream(survey, workload), _pass_tuples(survey)
    stream.fill()
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
    return Surveyed(
        record=record,
        checked=f"the last {_CHECKED:,} tuples' matches are those that numpy finds",
        passed=stream.is_right(),
    )


def _pass_tuples(survey: WindowJoinSpeedSurvey) -> int:
    workload = survey.workload
    tuples = max(_LEAST_TUPLES, workload.arrivals)
    if survey.index == "nested_loop":
        tuples = min(tuples, max(_CHECKED, int(_NESTED_LOOP_PAIRS / max(workload.windows))))
    return tuples


def _small(workload: WindowWorkload) -> WindowWorkload:
    return WindowWorkload(
        windows=(_COMPILING, _COMPILING), self_join=workload.self_join, values=workload.values
    )


class _Stream:
    """A join, and how far its streams have come.

    Attributes
    ----------
    matches
        Of the tuples that were timed.
    """

    def __init__(self, survey: WindowJoinSpeedSurvey, workload: WindowWorkload) -> None:
        self.matches = 0
        self._workload, self._batch_rows = workload, survey.batch_rows
        self._join = make_join(survey)
        self._clock = time.perf_counter if survey.threads else time.thread_time
        self._at = 0
        self._found = [np.empty(0, np.int64), np.empty(0, np.uint64)]

    def fill(self) -> None:
        """Fill the windows with tuples that see nothing: a nested loop would never end."""
        while self._at < self._workload.arrivals:
            end = min(self._at + _FILL_BATCH, self._workload.arrivals)
            rows = self._workload.rows(self._at, end)
            self._join.join(rows._replace(stop=rows.start))
            self._at = end

    def advance(self, tuples: int, *, timed: bool) -> float:
        """Join the next *tuples*, and return the seconds that it took."""
        seconds, end = 0.0, self._at + tuples
        while self._at < end:
            until = min(self._at + _FILL_BATCH, end)
            rows = self._workload.rows(self._at, until)
            for begin in range(0, until - self._at, self._batch_rows):
                batch = rows.part(begin, begin + self._batch_rows)
                started = self._clock()
                found = self._join.join(batch)
                seconds += self._clock() - started
                if timed:
                    self.matches += int(found.count.sum())
                    self._remember(found.count, found.fingerprint)
            self._at = until
        return seconds

    def _remember(self, *found: np.ndarray) -> None:
        """Store what the last tuples found."""
        self._found = [
            np.concatenate([before, new])[-_CHECKED:]
            for before, new in zip(self._found, found, strict=True)
        ]

    def is_right(self) -> bool:
        """Return whether the last tuples have the matches that they must have."""
        expected = self._workload.expected(self._at - len(self._found[0]), self._at)
        return all(map(np.array_equal, self._found, expected))


def make_join(survey: WindowJoinSpeedSurvey) -> WindowJoin:
    """Return the join, nothing in its windows; several threads are real ones."""
    making = Making(
        index=survey.index,
        merge_ratio=survey.merge_ratio,
        insertion_depth=survey.insertion_depth,
        chain_length=survey.chain_length,
        threads=survey.threads,
        task_rows=survey.task_rows,
        nonblocking=survey.merge == "nonblocking",
    )
    return making.make(self_join=survey.self_join, unit_ps=None)
