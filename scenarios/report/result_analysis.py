"""What a run's results say over virtual time, read a range of tuples at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from actors.feed import Feed, StreamFile
from actors.source import NS_PER_S
from scenarios.report.time_bins import TimeBins
from scenarios.results import Histogram, RangeReader, read_summary, summary_path

_READ_ROWS = 65_536


@dataclass(frozen=True, kw_only=True)
class ResultFigures:
    """A run's results by the time bin in which a tuple was answered: its last report left.

    Results do not say when they left, but how long after the birth of their tuple. Births are known
    to within a bin, and so are these times.

    Attributes
    ----------
    latencies
        Per bin, nanoseconds from the birth of each tuple answered to the last report of it.
    answered, matches
        Per bin, tuples answered and matches found for them.
    """

    latencies: tuple[Histogram, ...]
    answered: np.ndarray
    matches: np.ndarray

    def latency_ms(self, percents: Sequence[float]) -> np.ndarray:
        """Return percentiles in milliseconds, percents by bins; NaN for a bin without answers."""
        found = [[bin_.percentile(percent) for bin_ in self.latencies] for percent in percents]
        return np.array(found, np.float64) / 1e6


def analyse_results(directory: Path, bins: TimeBins, born: Sequence[np.ndarray]) -> ResultFigures:
    """Read the results in *directory*.

    *born* has per stream how many of its tuples had come into being by each edge of *bins*. A
    stream without a file of results counts as one without reports.
    """
    figures = ResultFigures(
        latencies=tuple(Histogram() for _ in range(bins.count)),
        answered=np.zeros(bins.count, np.int64),
        matches=np.zeros(bins.count, np.int64),
    )
    for stream, numbers in enumerate(born):
        path = summary_path(directory, stream)
        if not path.is_file():
            continue
        reader = RangeReader(path, ["probe_id", "count", "fingerprint", "latency_ns"])
        total = int(numbers[-1])
        for first in range(0, total, _READ_ROWS):
            tuples = read_summary(reader, first, min(total, first + _READ_ROWS))
            reported = np.flatnonzero(tuples.latency_ns >= 0)
            latency_ns = tuples.latency_ns[reported]
            # The half keeps a tuple clear of the edges, where bins without births would be a step.
            born_ns = np.interp(first + reported + 0.5, numbers, bins.edges_ns)
            bin_ = bins.of(born_ns.astype(np.int64) + latency_ns)
            np.add.at(figures.answered, bin_, 1)
            np.add.at(figures.matches, bin_, tuples.count[reported])
            for place in np.unique(bin_):
                figures.latencies[place].add(latency_ns[bin_ == place])
    return figures


def born_at_rate(bins: TimeBins, rate_tps: int, tuples: int) -> np.ndarray:
    """Return how many of *tuples*, fed at a steady rate, had come into being by each edge."""
    # Python's integers, because nanoseconds times a rate do not fit 64 bits.
    due = [-(-int(edge_ns) * rate_tps // NS_PER_S) for edge_ns in bins.edges_ns]
    return np.array([min(tuples, number) for number in due], np.int64)


def split_by_stream(files: Sequence[StreamFile], arrived: np.ndarray) -> list[np.ndarray]:
    """Return for numbers of tuples, in the order of arrival, how many are of each stream.

    *arrived* does not decrease. Several streams are read again: only their event times tell in
    which order their tuples arrived.
    """
    if len(files) == 1:
        return [arrived]
    split = np.zeros((len(files), len(arrived)), np.int64)
    feed = Feed(tuple(files))
    taken = 0
    for place, number in enumerate(arrived):
        while taken < number:
            arrivals = feed.take(min(_READ_ROWS, int(number) - taken))
            if arrivals is None:
                break
            taken += arrivals.rows
        split[:, place] = feed.position
    return list(split)
