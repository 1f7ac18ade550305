"""How long the window joins of `ibwj` take on this machine, and PIM-Tree's workload for them.

The workload (PIM-Tree, section 5) is of tuples of two streams, or of one that is joined with
itself, whose keys are drawn from their arrival numbers: so a part of them can be made without those
before it, and windows of 2^25 tuples need no more memory than the index. The matches that they must
have are computed from sorted columns by numpy, which shares no code with the indexes.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import gamma, pi, sqrt
from statistics import median
from typing import Any, Literal

import numpy as np

from actors.hosting.inline import Clock
from joins.codes import encode
from joins.hashing import mix
from joins.indexes.b_plus.b_plus_tree import BPlusTree
from joins.indexes.index import make_ranges
from joins.indexes.pim_tree.pim_tree import INSERTION_DEPTH, PimTree
from joins.matches import ProbeResult
from joins.window_join.rows import KernelRows, make_rows
from joins.window_join.window_join import WindowJoin
from joins.work import NO_WORK, Work
from scenarios.synthetic import DISTRIBUTIONS, parse

MatchSums = tuple[np.ndarray, np.ndarray]
"""How many matches each tuple has, and the fingerprint of their ids."""

BATCH_ROWS = 8_192
KEY_BITS = 30
Values = Literal["uniform", "normal", "gamma(3, 3)", "gamma(1, 5)"]
_NORMAL = (500.0, 125.0)
_WHOLE = 100
_TUPLES = 400_000
_PERIODS = {"pim_tree": 1.0, "im_tree": 1.0, "b_chain": 2.0, "ib_chain": 2.0, "bw_tree": 0.25}
"""Tuples, in windows, after which both sides have merged, archived or rebuilt once."""
_STEPS_ROWS = 4_096
_WINDOWS_BEFORE, _WINDOWS_TIMED = 3, 5
"""Windows of tuples that are inserted before steps are timed, as memory is new until the third has
been merged; and those after them. A step takes the median of these: a window may take some
milliseconds, in which a machine that others use too may be busy."""
_MERGE_RATIO = 0.5
"""That of the paper's single thread, as in the other studies."""
_DEPTHS = {"im_tree": 0, "pim_tree": INSERTION_DEPTH}
"""Insertion depth of each forest; an IM-Tree is a PIM-Tree of depth 0."""
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


def time_join(join: WindowJoin, rows: KernelRows, filling: int) -> Timed:
    """Join *rows* and time all but the first *filling*, which fill the windows.

    Those see nothing: a nested loop would take days over them if they did.
    """
    rows = rows._replace(stop=np.where(np.arange(len(rows.side)) < filling, 0, rows.stop))
    work, seconds = NO_WORK, 0.0
    for part, timed in ((rows.part(0, filling), False), (rows.part(filling, None), True)):
        for result, took_s in timed_batches(join, part, BATCH_ROWS, time.thread_time):
            if timed:
                seconds += took_s
                work += result.work
    return Timed(tuples=len(rows.side) - filling, work=work, seconds=seconds)


def timed_batches(
    join: WindowJoin, rows: KernelRows, batch_rows: int, clock: Clock
) -> Iterator[tuple[ProbeResult, float]]:
    """Join *rows* in batches; yield what each finds, and the seconds of *clock* that it took."""
    for begin in range(0, len(rows.side), batch_rows):
        batch = rows.part(begin, begin + batch_rows)
        started = clock()
        found = join.join(batch)
        yield found, clock() - started


def tuples_to_time(index: str, window: float) -> int:
    """Return how many tuples to time: enough for every periodic cost to recur."""
    tuples = max(_TUPLES, int(_PERIODS.get(index, 0) * window))
    return min(tuples, max(1, int(_SCANNED / window))) if index == "nested_loop" else tuples


@dataclass(frozen=True, kw_only=True)
class WindowWorkload:
    """A band join over count windows."""

    windows: tuple[int, int]
    """Tuples in the window of R and in that of S; of a self join, the first counts."""
    match_rate: float = 2.0
    """Matches of a tuple, on average, in the larger window."""
    self_join: bool = False
    """Whether R is joined with itself; there is no S then."""
    share_percent: int = 50
    """How many of a hundred arrivals are of R."""
    values: Values = "uniform"
    """How keys are distributed: the paper's (section 5.2, Figure 12b)."""

    @property
    def arrivals(self) -> int:
        """How many arrivals fill both windows, and replace every tuple in them."""
        if self.self_join:
            return self.windows[0]
        shares = (self.share_percent, _WHOLE - self.share_percent)
        return max(
            -(-_WHOLE * window // share) for window, share in zip(self.windows, shares, strict=True)
        )

    @property
    def band(self) -> float:
        """The largest distance of two keys that match."""
        return self.match_rate / (2 * max(self.windows) * _mean_density(self.values))

    def keys(self, begin: int, end: int) -> np.ndarray:
        """Return the keys of arrivals *begin* to *end* - 1: whole numbers if uniform, or float."""
        bits = mix(np.arange(begin, end))
        if self.values == "uniform":
            return (bits >> np.uint64(64 - KEY_BITS)).astype(np.int64)
        if self.values == "normal":
            return DISTRIBUTIONS["normal"](bits, *_NORMAL)
        name, arguments = parse(self.values)
        return DISTRIBUTIONS[name](bits, *map(float, arguments))

    def rows(self, begin: int, end: int) -> KernelRows:
        """Return arrivals *begin* to *end* - 1."""
        return band_join(
            self.keys(begin, end),
            int(self.band) if self.values == "uniform" else self.band,
            self.windows,
            begin,
            share_percent=self.share_percent,
            self_join=self.self_join,
        )

    def expected(self, begin: int, end: int) -> MatchSums:
        """Return the matches of arrivals *begin* to *end* - 1."""
        return expected_matches(
            self.rows(max(0, begin - self.arrivals - _WHOLE), end),
            end - begin,
            self_join=self.self_join,
        )


@dataclass
class _Measured:
    """Counted work and processor time of each step while one window of tuples was replaced.

    *merged* are the entries of the tree at each merge.
    """

    work: dict[str, Work] = field(default_factory=lambda: defaultdict(lambda: NO_WORK))
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    merged: list[int] = field(default_factory=list)


class WindowSteps:
    """Slides a window over an index, a batch at a time, and measures each step of a join.

    The steps are ``insert``, ``search``, ``search and scan``, and ``delete`` or ``merge``.
    """

    def __init__(self, index: str, window: int) -> None:
        self._window = window
        self._windows: list[_Measured] = []
        self._index: Any = (
            BPlusTree()
            if index == "b_plus_tree"
            else PimTree(merge_ratio=_MERGE_RATIO, insertion_depth=_DEPTHS[index])
        )

    @property
    def work(self) -> dict[str, Work]:
        """What each step counted while a window was replaced."""
        return self._timed[0].work

    @property
    def seconds(self) -> dict[str, float]:
        """Processor time of each step while a window was replaced."""
        return {step: median(one.seconds[step] for one in self._timed) for step in self.work}

    @property
    def merged(self) -> list[int]:
        """The entries of the tree at each merge while a window was replaced."""
        return self._timed[0].merged

    @property
    def _timed(self) -> list[_Measured]:
        return self._windows[-_WINDOWS_TIMED:]

    def run(self) -> bool:
        """Replace the window repeatedly, and return whether its last matches are right."""
        window, index = self._window, self._index
        workload = WindowWorkload(windows=(window, window))
        keys = workload.keys(0, (_WINDOWS_BEFORE + _WINDOWS_TIMED) * window)
        band = int(workload.band)
        self._insert(keys[:window], np.arange(window))
        if not isinstance(index, BPlusTree):
            index.maintain(0)
        batch = min(_STEPS_ROWS, int(_MERGE_RATIO * window))  # merges are due between them
        for begin in range(window, len(keys), batch):
            if begin % window == 0:
                self._windows.append(_Measured())
            positions, new = np.arange(begin, begin + batch), keys[begin : begin + batch]
            self._measure("insert", self._insert, new, positions)
            self._slide(keys, positions - window)
            nothing = np.zeros(batch, np.int64)
            self._measure("search", self._probe, new, new, nothing)
            result = self._measure("search and scan", self._probe, new - band, new + band)
        stored = np.sort(keys[-window:])
        right = np.searchsorted(stored, new + band, "right") - np.searchsorted(stored, new - band)
        return np.array_equal(result.count, right)

    def _insert(self, keys: np.ndarray, positions: np.ndarray) -> Work:
        if isinstance(self._index, BPlusTree):
            return self._index.insert(keys, positions)
        work: Work = self._index.insert([keys], positions)
        return work

    def _probe(
        self, low: np.ndarray, high: np.ndarray, window: np.ndarray | None = None
    ) -> ProbeResult:
        """Probe with windows that begin and end at *window*, so that nothing is in them, or all."""
        ranges = make_ranges([low], [high], start=window, stop=window)
        result: ProbeResult = self._index.probe(ranges)
        return result

    def _slide(self, keys: np.ndarray, expired: np.ndarray) -> None:
        """Delete the tuples at positions *expired*: at once, or with the next merge."""
        index = self._index
        if isinstance(index, BPlusTree):
            self._measure("delete", index.delete, keys[expired], expired)
            return
        index.expire(int(expired[-1]) + 1)
        if index.active_entries(0) >= index.merge_limit(self._window):
            self._windows[-1].merged.append(index.entries(0))
            self._measure("merge", index.maintain, 0)

    def _measure(self, step: str, function: Callable[..., Work | ProbeResult], *args: Any) -> Any:
        measured, started = self._windows[-1], time.thread_time()
        result = function(*args)
        measured.seconds[step] += time.thread_time() - started
        measured.work[step] += result.work if isinstance(result, ProbeResult) else result
        return result


def band_join(
    keys: np.ndarray,
    band: float,
    window: int | tuple[int, int],
    first: int = 0,
    *,
    share_percent: int = 50,
    self_join: bool = False,
) -> KernelRows:
    """Return tuples of two streams with windows of *window* tuples, or of so many each.

    *keys* are both streams', from their *first* tuple on; those at most *band* apart match. Of a
    hundred tuples *share_percent* are of the first stream, by default every other. In a *self_join*
    all are, and its window counts.
    """
    row = np.arange(first, first + len(keys))
    windows = np.broadcast_to(window, 2)
    if self_join:
        side, position, stop = np.zeros_like(row), row, row
    else:
        others = row * (100 - share_percent) // 100  # tuples of the second stream before each
        side = (row + 1) * (100 - share_percent) // 100 - others
        position = np.where(side == 1, others, row - others)
        stop = row - position
    seen = windows[0] if self_join else windows[1 - side]
    return make_rows(
        side=side,
        position=position,
        key=encode(keys),
        low=encode(keys - band),
        high=encode(keys + band),
        start=np.maximum(0, stop - seen),
        stop=stop,
    )


def expected_matches(
    rows: KernelRows, last: int | None = None, *, self_join: bool = False
) -> MatchSums:
    """Return the matches of the *last* rows, or of all, in those before: from sorted columns."""
    n = len(rows.side)
    first = 0 if last is None else n - last
    count, fingerprint = np.zeros(n, np.int64), np.zeros(n, np.uint64)
    for probing in (0,) if self_join else (0, 1):
        stored = np.flatnonzero(rows.side == (0 if self_join else 1 - probing))
        stored = stored[np.argsort(rows.key[stored], kind="stable")]
        ordered, position = rows.key[stored], rows.position[stored]
        probes = np.flatnonzero(rows.side == probing)
        for part in np.array_split(probes[probes >= first], 16):
            begin = np.searchsorted(ordered, rows.low[part], "left")
            found = np.searchsorted(ordered, rows.high[part], "right") - begin
            row = np.repeat(part, found)
            place = np.arange(found.sum()) + np.repeat(begin - (np.cumsum(found) - found), found)
            match = position[place]
            seen = (match >= rows.start[row]) & (match < rows.stop[row])
            np.add.at(count, row[seen], 1)
            np.add.at(fingerprint, row[seen], mix(match[seen]))
    return count[first:], fingerprint[first:]


def _mean_density(values: Values) -> float:
    """Return the density of the keys where a key is: the integral of its square."""
    if values == "uniform":
        return 1 / (1 << KEY_BITS)
    if values == "normal":
        return 1 / (2 * _NORMAL[1] * sqrt(pi))
    shape, scale = map(float, parse(values)[1])
    return gamma(2 * shape - 1) / (scale * gamma(shape) ** 2 * 2 ** (2 * shape - 1))
