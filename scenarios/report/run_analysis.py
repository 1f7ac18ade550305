"""A run's trace and results as arrays over virtual time, whose size does not grow with the run.

Both are read a batch of rows at a time, so files larger than memory are fine. Times are virtual.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from actors.feed import Disorder, Recorded, StreamData, only_times_of_others, open_feed
from actors.protocol import NS_PER_S
from actors.result_files import summary_path
from netsim.trace import READ_ROWS, TIMES, name_codes
from scenarios.result_readers import LatencyHistogram, Summaries

BINS_MAX = 60
"""Time bins over a run: as many as can be distinguished across the width of a page."""
_BINS_MIN = 12
STAGES = ("waits to be sent", "crosses the network", "waits in the inbox", "is served")
"""A message's life, in order; stage i ends at column ``TIMES[i + 1]`` of the trace."""

_COLUMNS = ["sender", "receiver", "port", "nbytes", "last", *TIMES]
_MESSAGE_COLUMNS = {
    "sender": "sender",
    "receiver": "receiver",
    "port": "port",
    "rows": "tuples",
    "nbytes": "bytes",
    "sent_ns": "sent_s",
    "arrived_ns": "arrived_s",
    "started_ns": "started_s",
    "done_ns": "done_s",
}
"""What is read of each message to be drawn, and what it is called there."""


@dataclass(frozen=True, kw_only=True)
class TimeBins:
    """Equal spans of virtual time from 0 on: *count* of them, each *width_ns* long."""

    width_ns: int
    count: int

    @classmethod
    def over(cls, virtual_ns: int, messages: int) -> TimeBins:
        """Return bins that cover 0 to *virtual_ns*, fewer of them the fewer *messages* there were.

        There is at least one, of at least 1 ns.
        """
        at_most = min(BINS_MAX, max(_BINS_MIN, isqrt(messages)))
        width_ns = max(1, -(-virtual_ns // at_most))
        return cls(width_ns=width_ns, count=max(1, -(-virtual_ns // width_ns)))

    @property
    def edges_ns(self) -> np.ndarray:
        """Where bins begin and, last, where the last one ends: *count* + 1 times."""
        return np.arange(self.count + 1) * self.width_ns

    def of(self, at_ns: np.ndarray) -> np.ndarray:
        """Return the bin of each time; the end of the last bin belongs to it."""
        bins: np.ndarray = np.minimum(at_ns // self.width_ns, self.count - 1)
        return bins


@dataclass(frozen=True, kw_only=True)
class TraceFigures:
    """A trace in numbers; rows of arrays are actors in the order of *actors*."""

    actors: tuple[str, ...]
    bins: TimeBins
    """What the arrays are over."""
    messages: np.ndarray
    """Messages from another actor that were served."""
    stage_ns: np.ndarray
    """Time those messages spent in each of `STAGES`, summed: actors by 4."""
    busy_ns: np.ndarray
    """Service time of messages and timers, summed."""
    queued_ns: np.ndarray
    """Per actor and bin, time that messages and timers spent in the inbox, summed; divided by the
    bin's width it is the mean depth of the queue."""
    channel_bytes: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Sender, receiver and port to the bytes that went there."""
    entered: np.ndarray
    """Tuples that had left the sources by each of the bins' edges: *count* + 1 numbers."""

    @property
    def queue_depth(self) -> np.ndarray:
        """Mean number of messages in each inbox over each bin: actors by bins."""
        return self.queued_ns / self.bins.width_ns


def analyse_trace(
    trace: Path, actors: Sequence[str], sources: Collection[str], bins: TimeBins
) -> TraceFigures:
    """Read the trace of a run that *bins* cover, of a system of *actors* fed by *sources*."""
    figures = TraceFigures(
        actors=tuple(actors),
        bins=bins,
        messages=np.zeros(len(actors), np.int64),
        stage_ns=np.zeros((len(actors), len(STAGES)), np.int64),
        busy_ns=np.zeros(len(actors), np.int64),
        queued_ns=np.zeros((len(actors), bins.count), np.int64),
        entered=np.zeros(bins.count + 1, np.int64),
    )
    index = {name: i for i, name in enumerate(actors)}
    is_source = np.array([name in sources for name in actors], bool)
    with pq.ParquetFile(trace) as file:
        for rows in file.iter_batches(READ_ROWS, columns=_COLUMNS):
            _add_rows(figures, rows, index, is_source)
    np.maximum.accumulate(figures.entered, out=figures.entered)
    return figures


def _add_rows(
    figures: TraceFigures, rows: pa.RecordBatch, index: dict[str, int], is_source: np.ndarray
) -> None:
    sender, receiver = (name_codes(rows[column], index) for column in ("sender", "receiver"))
    times = np.stack([rows[column].to_numpy() for column in TIMES], axis=1)
    _, _, arrived_ns, started_ns, done_ns = times.T
    np.add.at(figures.busy_ns, receiver, done_ns - started_ns)
    _add_intervals(figures.queued_ns, figures.bins, receiver, arrived_ns, started_ns)

    # A timer is no message: from its setting to its firing nothing waits.
    crossed = sender != receiver
    np.add.at(figures.messages, receiver[crossed], 1)
    np.add.at(figures.stage_ns, receiver[crossed], np.diff(times[crossed], axis=1))
    _add_traffic(figures.channel_bytes, rows.filter(pa.array(crossed)))

    fed = crossed & is_source[sender]
    edge = figures.bins.of(times[fed, 0]) + 1
    np.maximum.at(figures.entered, edge, rows["last"].to_numpy()[fed] + 1)


def _add_intervals(
    total_ns: np.ndarray,
    bins: TimeBins,
    row: np.ndarray,
    start_ns: np.ndarray,
    stop_ns: np.ndarray,
) -> None:
    """Add to each bin of ``total_ns[row]`` how much of [start, stop) is in it."""
    width_ns = bins.width_ns
    first, last = bins.of(start_ns), bins.of(stop_ns)
    # Whole bins from the first to before the last, less the part before the start, plus the part of
    # the last: also right when first and last are one bin.
    steps = np.zeros((total_ns.shape[0], bins.count + 1), np.int64)
    np.add.at(steps, (row, first), width_ns)
    np.add.at(steps, (row, last), -width_ns)
    total_ns += np.cumsum(steps, axis=1)[:, : bins.count]
    np.add.at(total_ns, (row, first), first * width_ns - start_ns)
    np.add.at(total_ns, (row, last), stop_ns - last * width_ns)


def _add_traffic(channel_bytes: Counter[tuple[str, str, str]], rows: pa.RecordBatch) -> None:
    table, channel = pa.table(rows), ["sender", "receiver", "port"]
    summed = table.group_by(channel, use_threads=False).aggregate([("nbytes", "sum")])
    for one in summed.to_pylist():
        channel_bytes[one["sender"], one["receiver"], one["port"]] += one["nbytes_sum"]


def places_of(names: pa.ChunkedArray, actors: Sequence[str]) -> np.ndarray:
    """Return for each name its place among *actors*; -1 for others."""
    known = pa.array(actors, pa.string())
    found = pc.index_in(names.cast(pa.string()), value_set=known).fill_null(-1)
    places: np.ndarray = found.to_numpy().astype(np.int64)
    return places


def busy_ns(trace: pa.Table) -> Counter[str]:
    """Return each actor to the virtual time for which it served messages, nanoseconds."""
    return sum_by_name(trace["receiver"], pc.subtract(trace["done_ns"], trace["started_ns"]))


def sum_by_name(names: pa.ChunkedArray, values: pa.ChunkedArray) -> Counter[str]:
    """Return each of *names*, of actors in rows of a trace, to the sum of its rows' *values*."""
    table = pa.table({"name": names.cast(pa.string()), "value": values})
    summed = table.group_by("name", use_threads=False).aggregate([("value", "sum")])
    columns = (summed[column].to_pylist() for column in ("name", "value_sum"))
    return Counter(dict(zip(*columns, strict=True)))


def first_messages(trace: Path, most: int) -> dict[str, list[Any]]:
    """Return the first *most* messages between actors, in the order of their service, by column.

    Times are in seconds.
    """
    with pq.ParquetFile(trace) as file:
        found = file.schema_arrow.empty_table().select(list(_MESSAGE_COLUMNS))
        for rows in file.iter_batches(READ_ROWS, columns=found.column_names):
            sender, receiver = (rows[end].cast(pa.string()) for end in ("sender", "receiver"))
            crossed = pa.table(rows).filter(pc.not_equal(sender, receiver))
            found = pa.concat_tables([found, crossed])
            if len(found) >= most:
                break
    return {
        _MESSAGE_COLUMNS[column]: [ns / 1e9 for ns in values] if column in TIMES else values
        for column, values in found.slice(0, most).to_pydict().items()
    }


@dataclass(frozen=True, kw_only=True)
class ResultFigures:
    """A run's results by the time bin in which a tuple was answered: its last report left.

    Results do not say when they left, but how long after the birth of their tuple. Births are known
    to within a bin, and so are these times.
    """

    latencies: tuple[LatencyHistogram, ...]
    """Per bin, nanoseconds from the birth of each tuple answered to the last report of it."""
    answered: np.ndarray
    matches: np.ndarray
    """Per bin, tuples answered and matches found for them."""
    born: np.ndarray
    """Per bin, tuples that came into being there and were answered sooner or later."""

    def latency_ms(self, percents: Sequence[float]) -> np.ndarray:
        """Return percentiles in milliseconds, percents by bins; NaN for a bin without answers."""
        rows = [[bin_.percentile(percent) for bin_ in self.latencies] for percent in percents]
        return np.array(rows, np.float64) / 1e6


def analyse_results(
    directory: Path, bins: TimeBins, born: np.ndarray, arrivals: Sequence[np.ndarray]
) -> ResultFigures:
    """Read the results in *directory*.

    *born* has how many tuples had come into being by each edge of *bins*, and *arrivals* per stream
    the arrival number of each of its tuples. A stream without a file of results counts as one
    without reports.
    """
    figures = ResultFigures(
        latencies=tuple(LatencyHistogram() for _ in range(bins.count)),
        answered=np.zeros(bins.count, np.int64),
        matches=np.zeros(bins.count, np.int64),
        born=np.zeros(bins.count, np.int64),
    )
    for stream, numbers in enumerate(arrivals):
        path = summary_path(directory, stream)
        if not path.exists():
            continue
        total = len(numbers)
        summaries = Summaries(path, total)
        for first in range(0, total, READ_ROWS):
            tuples = summaries.take(min(total, first + READ_ROWS))
            reported = np.flatnonzero(tuples.latest >= 0)
            latency_ns = tuples.latest[reported]
            # The half keeps a tuple clear of the edges, where bins without births would be a step.
            born_ns = np.interp(numbers[first + reported] + 0.5, born, bins.edges_ns)
            born_ns = born_ns.astype(np.int64)
            np.add.at(figures.born, bins.of(born_ns), 1)
            bin_ = bins.of(born_ns + latency_ns)
            np.add.at(figures.answered, bin_, 1)
            np.add.at(figures.matches, bin_, tuples.pairs[reported])
            for place in np.unique(bin_):
                figures.latencies[place].add(latency_ns[bin_ == place])
    return figures


def born_at_rate(bins: TimeBins, rate_tps: int, tuples: int) -> np.ndarray:
    """Return how many of *tuples*, fed at a steady rate, had come into being by each edge."""
    # Python's integers, because nanoseconds times a rate do not fit 64 bits.
    due = [-(-int(edge_ns) * rate_tps // NS_PER_S) for edge_ns in bins.edges_ns]
    return np.array([min(tuples, number) for number in due], np.int64)


def arrival_numbers(
    files: Sequence[StreamData], disorder: Disorder | Recorded | None
) -> list[np.ndarray]:
    """Return per stream the arrival number, int64, of each of its tuples.

    Several streams, or one out of order, are read again, because only their event times and delays
    show how they arrived.
    """
    numbers = [np.arange(file.tuples) for file in files]
    if len(files) == 1 and not disorder:
        return numbers
    feed = open_feed(only_times_of_others(files), disorder)
    while (arrivals := feed.take(READ_ROWS)) is not None:
        for of_stream, part, seq in zip(numbers, arrivals.parts, arrivals.seq, strict=True):
            of_stream[part.id] = seq
    return numbers
