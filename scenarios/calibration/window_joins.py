"""How long the window joins of `ibwj` take on this machine, measured for a cost profile."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from actors.whole_files import write_text
from joins.hashing import mix
from joins.window_join.cost_model import CALIBRATED_WINDOWS, MODELLED, MachineTimes, predict
from joins.window_join.registry import IndexName, Making
from joins.window_join.rows import Rows, make_rows
from joins.window_join.window_join import WindowJoin
from joins.work import NO_WORK, Work
from netsim.cost import WINDOW_JOINS, load_profile, profile_path

BATCH_ROWS = 8_192
_KEY_BITS = 30
_MATCH_RATE = 2
_TUPLES = 400_000
_PERIODS = {"pim_tree": 1.0, "im_tree": 1.0, "b_chain": 2.0, "ib_chain": 2.0, "bw_tree": 0.25}
"""Tuples, in windows, after which both sides have merged, archived or rebuilt once."""
_SCANNED = 1e9
"""Most pairs that a nested loop compares while it is timed."""


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


@dataclass(frozen=True, kw_only=True)
class Point:
    """What a tuple costs an index at one window, ns.

    Attributes
    ----------
    index, window
        Which, and its length in tuples.
    predicted_ns
        By the model.
    counted_ns
        By the work that its kernels counted: virtual time.
    took_ns
        Of processor time.
    """

    index: IndexName
    window: int
    predicted_ns: float
    counted_ns: float
    took_ns: float


def time_join(join: WindowJoin, rows: Rows, filling: int) -> Timed:
    """Join *rows* and time all but the first *filling*, which fill the windows.

    Those see nothing: a nested loop would take days over them if they did.
    """
    rows = rows._replace(stop=np.where(np.arange(len(rows.side)) < filling, 0, rows.stop))
    work, seconds = NO_WORK, 0.0
    for part, timed in ((rows.part(0, filling), False), (rows.part(filling, None), True)):
        for begin in range(0, len(part.side), BATCH_ROWS):
            batch = part.part(begin, begin + BATCH_ROWS)
            started = time.thread_time()
            result = join.join(batch)
            if timed:
                seconds += time.thread_time() - started
                work += result.work
    return Timed(tuples=len(rows.side) - filling, work=work, seconds=seconds)


def tuples_to_time(index: IndexName, window: float) -> int:
    """Return how many tuples to time: enough for every periodic cost to recur."""
    tuples = max(_TUPLES, int(_PERIODS.get(index, 0) * window))
    return min(tuples, max(1, int(_SCANNED / window))) if index == "nested_loop" else tuples


def uniform_keys(tuples: int, first: int = 0) -> np.ndarray:
    """Return keys of PIM-Tree's workload, from the *first* tuple on: uniform, 30 bits."""
    return (mix(np.arange(first, first + tuples)) >> np.uint64(64 - _KEY_BITS)).astype(np.int64)


def band_of(window: int) -> int:
    """Return how far apart two such keys may be for a tuple to have two matches in a *window*."""
    return _MATCH_RATE * (1 << _KEY_BITS) // (2 * window)


def band_join(keys: np.ndarray, band: int, window: int, first: int = 0) -> Rows:
    """Return tuples of two streams in turn, with windows of *window* tuples.

    *keys* are both streams', from their *first* tuple on; those at most *band* apart match.
    """
    row = np.arange(first, first + len(keys))
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


def time_indexes(windows: Sequence[int], *, passes: int = 1) -> dict[IndexName, list[Point]]:
    """Time every index that has an equation, over full *windows* of PIM-Tree's workload.

    In several *passes* each is timed again, minutes later, and the least time counts: whatever
    else the machine does meanwhile only adds to it.
    """
    timed = [
        [_time_index(index, window) for index in MODELLED for window in windows]
        for _ in range(passes)
    ]
    least: dict[IndexName, list[Point]] = {index: [] for index in MODELLED}
    for same in zip(*timed, strict=True):
        least[same[0].index].append(min(same, key=lambda point: point.took_ns))
    return least


def _time_index(index: IndexName, window: int) -> Point:
    profile, making = load_profile(), Making(index=index)
    tuples = tuples_to_time(index, window)
    rows = band_join(uniform_keys(2 * window + tuples), band_of(window), window)
    join = making.make(self_join=False, unit_ps=profile.unit_ps)
    timed = time_join(join, rows, 2 * window)
    model = predict(making, window=window, match_rate=_MATCH_RATE, unit_ps=profile.unit_ps)
    return Point(
        index=index,
        window=window,
        predicted_ns=model.tuple_ns,
        counted_ns=profile.work_ns(timed.work) / timed.tuples,
        took_ns=timed.tuple_ns,
    )


def calibrated(points: Sequence[Point]) -> MachineTimes:
    """Return the machine times that the *points* of one index imply, at calibrated windows only."""
    known = [point for point in points if point.window in CALIBRATED_WINDOWS]
    return MachineTimes(
        windows=tuple(point.window for point in known),
        ratios=tuple(round(point.took_ns / point.predicted_ns, 4) for point in known),
    )


def calibrate_window_joins() -> dict[IndexName, MachineTimes]:
    """Return what every index takes on this machine."""
    timed = time_indexes(CALIBRATED_WINDOWS)
    return {index: calibrated(points) for index, points in timed.items()}


def append_times(times: dict[IndexName, MachineTimes], path: Path) -> None:
    """Add *times* to the profile *path*."""
    lines: list[str] = []
    for index, constants in times.items():
        values = (f"{key} = {list(value)}" for key, value in vars(constants).items())
        lines += ["", f"[{WINDOW_JOINS}.{index}]", *values]
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    write_text(path, before + "\n".join(lines) + "\n")


def read_times(name_or_path: str | Path) -> dict[str, MachineTimes]:
    """Return the times that a profile holds, by index; none where none were measured.

    Raise :exc:`ValueError` as `netsim.cost.load_profile` does, and naming an entry that is wrong.
    """
    path = profile_path(name_or_path)
    measured = tomllib.loads(path.read_text()).get(WINDOW_JOINS, {})
    try:
        return {
            index: MachineTimes(**{key: tuple(values) for key, values in constants.items()})
            for index, constants in measured.items()
        }
    except (TypeError, ValueError) as error:
        advice = "joinsim calibrate measures it anew"
        raise ValueError(f"{path}: {WINDOW_JOINS}: {error}; {advice}") from None
