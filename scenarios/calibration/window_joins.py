"""What the window joins of `ibwj` take on this machine: measured, and kept in a cost profile."""

from __future__ import annotations

import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np

from joins.hashing import mix
from joins.window_join.drivers import Driver, IndexName, Making
from joins.window_join.machine_times import CALIBRATED_BITS, MachineTimes, fit_times
from joins.window_join.prediction import predict
from joins.window_join.rows import Rows, make_rows
from joins.work import NO_WORK, Work
from netsim.cost import WINDOW_JOINS, load_profile, profile_path

BATCH_ROWS = 8_192
_KEY_BITS = 30
_MATCH_RATE = 2
_TUPLES = 400_000
_PERIODS = {"pim_tree": 1.0, "im_tree": 1.0, "b_chain": 2.0, "ib_chain": 2.0, "bw_tree": 0.25}
"""Tuples, in windows, after which both sides have merged, archived or rebuilt once."""
_SCANNED = 1e9
"""Pairs that a nested loop is given to compare at the most."""


@dataclass(frozen=True, kw_only=True)
class Timed:
    """A join over full windows: *tuples*, their *work*, and processor time in *seconds*."""

    tuples: int
    work: Work
    seconds: float

    @property
    def tuple_ns(self) -> float:
        """Processor time of a tuple, ns."""
        return self.seconds * 1e9 / self.tuples


def time_join(join: Driver, rows: Rows, filling: int) -> Timed:
    """Join *rows*, of which the first *filling* fill the windows, are not timed, and see nothing.

    A nested loop would take days over them if they did.
    """
    rows = rows._replace(stop=np.where(np.arange(len(rows.side)) < filling, 0, rows.stop))
    work, seconds = NO_WORK, 0.0
    for part, timed in ((rows.part(0, filling), False), (rows.part(filling, None), True)):
        for begin in range(0, len(part.side), BATCH_ROWS):
            batch = part.part(begin, begin + BATCH_ROWS)
            started = time.thread_time()
            found = join.join(batch)
            if timed:
                seconds += time.thread_time() - started
                work += found.work
    return Timed(tuples=len(rows.side) - filling, work=work, seconds=seconds)


def tuples_to_time(index: IndexName, window: float) -> int:
    """Return how many tuples tell what one costs: until all that comes round has come round."""
    tuples = max(_TUPLES, int(_PERIODS.get(index, 0) * window))
    return min(tuples, max(1, int(_SCANNED / window))) if index == "nested_loop" else tuples


def band_join(keys: np.ndarray, band: int, window: int) -> Rows:
    """Return tuples of two streams in turn, with windows of *window* tuples.

    *keys* are both streams'; those that are at most *band* apart match.
    """
    row = np.arange(len(keys))
    side, position = row & 1, row >> 1
    stop = position + side  # tuples of the other stream that arrived before
    start = np.maximum(0, stop - window)
    return make_rows(
        side=side,
        position=position,
        key=keys,
        low=keys - band,
        high=keys + band,
        start=start,
        stop=stop,
    )


def calibrate_window_joins() -> dict[IndexName, MachineTimes]:
    """Return the constants of every index on this machine: the workload of PIM-Tree, section 5."""
    unit_ps = load_profile().unit_ps
    windows = [1 << bits for bits in CALIBRATED_BITS]
    times = {}
    for index in get_args(IndexName):
        making = Making(index=index)
        predicted_ns, took_ns = [], []
        for window in windows:
            tuples = tuples_to_time(index, window)
            keys = (mix(np.arange(2 * window + tuples)) >> np.uint64(64 - _KEY_BITS)).astype(int)
            rows = band_join(keys, _MATCH_RATE * (1 << _KEY_BITS) // (2 * window), window)
            join = making.make(self_join=False, unit_ps=unit_ps)
            took_ns.append(time_join(join, rows, 2 * window).tuple_ns)
            expected = predict(making, window=window, match_rate=_MATCH_RATE, unit_ps=unit_ps)
            predicted_ns.append(expected.tuple_ns)
        times[index] = fit_times(windows, predicted_ns, took_ns)
    return times


def append_times(times: dict[IndexName, MachineTimes], path: Path) -> None:
    """Write *times* into the profile *path*."""
    lines: list[str] = []
    for index, constants in times.items():
        values = (f"{key} = {value}" for key, value in vars(constants).items())
        lines += ["", f"[{WINDOW_JOINS}.{index}]", *values]
    with path.open("a", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def read_times(name_or_path: str | Path) -> dict[str, MachineTimes]:
    """Return the times that a profile holds, by index; none where none were measured.

    Raise :exc:`ValueError` as `netsim.cost.load_profile` does, and naming an entry that is wrong.
    """
    path = profile_path(name_or_path)
    measured = tomllib.loads(path.read_text()).get(WINDOW_JOINS, {})
    try:
        return {index: MachineTimes(**constants) for index, constants in measured.items()}
    except TypeError as error:
        raise ValueError(f"{path}: {WINDOW_JOINS}: {error}") from None
