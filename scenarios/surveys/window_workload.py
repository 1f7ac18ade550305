"""The PIM-Tree paper's workload (section 5) for any window, made a part at a time.

Tuples of two streams, or of one that is joined with itself, whose keys are drawn from their arrival
numbers: so a part of them can be made without those before it, and windows of 2^25 tuples need no
more memory than the index. The matches that they must have are computed from sorted columns by
numpy, which shares no code with the indexes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gamma, pi, sqrt
from typing import Literal

import numpy as np

from joins.hashing import mix
from joins.window_join.rows import Rows
from scenarios.calibration.window_joins import KEY_BITS, band_join, uniform_keys
from scenarios.synthetic import DISTRIBUTIONS, parse

Matches = tuple[np.ndarray, np.ndarray]
"""How many matches each tuple has, and the fingerprint of their ids."""

Values = Literal["uniform", "normal", "gamma(3, 3)", "gamma(1, 5)"]
_NORMAL = (500.0, 125.0)
_WHOLE = 100


@dataclass(frozen=True, kw_only=True)
class WindowWorkload:
    """A band join over count windows.

    Attributes
    ----------
    windows
        Tuples in the window of R and in that of S; of a self join, the first counts.
    match_rate
        Matches of a tuple, on average, in the larger window.
    self_join
        Whether R is joined with itself; there is no S then.
    share_percent
        How many of a hundred arrivals are of R.
    values
        How keys are distributed: the paper's (section 5.2, Figure 12b).
    """

    windows: tuple[int, int]
    match_rate: float = 2.0
    self_join: bool = False
    share_percent: int = 50
    values: Values = "uniform"

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
        if self.values == "uniform":
            return uniform_keys(end - begin, begin)
        bits = mix(np.arange(begin, end))
        if self.values == "normal":
            return DISTRIBUTIONS["normal"](bits, *_NORMAL)
        name, arguments = parse(self.values)
        return DISTRIBUTIONS[name](bits, *map(float, arguments))

    def rows(self, begin: int, end: int) -> Rows:
        """Return arrivals *begin* to *end* - 1."""
        return band_join(
            self.keys(begin, end),
            int(self.band) if self.values == "uniform" else self.band,
            self.windows,
            begin,
            share_percent=self.share_percent,
            self_join=self.self_join,
        )

    def expected(self, begin: int, end: int) -> Matches:
        """Return the matches of arrivals *begin* to *end* - 1."""
        return expected_matches(
            self.rows(max(0, begin - self.arrivals - _WHOLE), end),
            end - begin,
            self_join=self.self_join,
        )


def expected_matches(rows: Rows, last: int | None = None, *, self_join: bool = False) -> Matches:
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
