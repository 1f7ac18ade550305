"""What a run's trace says, as arrays whose size depends on the system, not on the run.

Traces are read a batch of rows at a time, so one larger than memory is fine. Times are virtual.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from scenarios.report.time_bins import TimeBins

STAGES = ("waits to be sent", "crosses the network", "waits in the inbox", "is served")
"""A message's life, in order; stage i ends at column ``_STAGE_ENDS[i + 1]`` of the trace."""

_STAGE_ENDS = ("sent_ns", "left_ns", "arrived_ns", "started_ns", "done_ns")
_COLUMNS = ["sender", "receiver", "port", "nbytes", "last", *_STAGE_ENDS]
_READ_ROWS = 65_536

Channel = tuple[str, str, str]
"""Sender, receiver and port."""


@dataclass(kw_only=True)
class Traffic:
    """What one channel carried."""

    messages: int = 0
    nbytes: int = 0


@dataclass(frozen=True, kw_only=True)
class TraceFigures:
    """A trace in numbers; rows of arrays are actors in the order of *actors*.

    Attributes
    ----------
    actors, bins
        What the arrays are over.
    messages
        Messages from another actor that were served.
    stage_ns
        Time those messages spent in each of `STAGES`, summed: actors by 4.
    busy_ns
        Service time of messages and timers, summed.
    queued_ns
        Per actor and bin, time that messages and timers spent in the inbox, summed; divided by the
        bin's width it is the mean depth of the queue.
    channels
        What went from actor to actor.
    entered
        Tuples that had left the sources by each of the bins' edges: *count* + 1 numbers.
    """

    actors: tuple[str, ...]
    bins: TimeBins
    messages: np.ndarray
    stage_ns: np.ndarray
    busy_ns: np.ndarray
    queued_ns: np.ndarray
    channels: dict[Channel, Traffic] = field(default_factory=dict)
    entered: np.ndarray

    @property
    def queue_depth(self) -> np.ndarray:
        """Mean number of messages in each inbox over each bin: actors by bins."""
        return self.queued_ns / self.bins.width_ns

    def utilisation(self, virtual_ns: int) -> np.ndarray:
        """Return the share of the run, 0 to 1, for which each actor was busy."""
        return self.busy_ns / max(1, virtual_ns)


def analyse_trace(
    trace: Path, actors: Sequence[str], sources: Collection[str], bins: TimeBins
) -> TraceFigures:
    """Read the trace of a run that *bins* cover, of a system of *actors* fed by *sources*."""
    shape = (len(actors), bins.count)
    figures = TraceFigures(
        actors=tuple(actors),
        bins=bins,
        messages=np.zeros(len(actors), np.int64),
        stage_ns=np.zeros((len(actors), len(STAGES)), np.int64),
        busy_ns=np.zeros(len(actors), np.int64),
        queued_ns=np.zeros(shape, np.int64),
        entered=np.zeros(bins.count + 1, np.int64),
    )
    index = {name: i for i, name in enumerate(actors)}
    is_source = np.array([name in sources for name in actors], bool)
    with pq.ParquetFile(trace) as file:
        for rows in file.iter_batches(_READ_ROWS, columns=_COLUMNS):
            _add(figures, rows, index, is_source)
    np.maximum.accumulate(figures.entered, out=figures.entered)
    return figures


def _add(
    figures: TraceFigures, rows: pa.RecordBatch, index: dict[str, int], is_source: np.ndarray
) -> None:
    sender, receiver = (_codes(rows[column], index) for column in ("sender", "receiver"))
    times = np.stack([rows[column].to_numpy() for column in _STAGE_ENDS], axis=1)
    _, _, arrived_ns, started_ns, done_ns = times.T
    np.add.at(figures.busy_ns, receiver, done_ns - started_ns)
    _add_intervals(figures.queued_ns, figures.bins, receiver, arrived_ns, started_ns)

    # A timer is no message: what lies between its setting and its firing is nobody's waiting.
    crossed = sender != receiver
    np.add.at(figures.messages, receiver[crossed], 1)
    np.add.at(figures.stage_ns, receiver[crossed], np.diff(times[crossed], axis=1))
    _add_traffic(figures.channels, rows.filter(pa.array(crossed)))

    fed = crossed & is_source[sender]
    edge = figures.bins.of(times[fed, 0]) + 1
    np.maximum.at(figures.entered, edge, rows["last"].to_numpy()[fed] + 1)


def _codes(names: pa.DictionaryArray, index: dict[str, int]) -> np.ndarray:
    """Return each name's place in *index*; a dictionary may differ from batch to batch."""
    places = np.array([index.get(name, -1) for name in names.dictionary.to_pylist()], np.int64)
    return places[names.indices.to_numpy()] if len(names) else np.zeros(0, np.int64)


def _add_intervals(
    total_ns: np.ndarray,
    bins: TimeBins,
    row: np.ndarray,
    start_ns: np.ndarray,
    stop_ns: np.ndarray,
) -> None:
    """Add to each bin of ``total_ns[row]`` how much of [start, stop) lies in it."""
    width_ns = bins.width_ns
    first, last = bins.of(start_ns), bins.of(stop_ns)
    # Whole bins from the first to before the last, less what lies before the start, plus what lies
    # in the last: also right when first and last are one bin.
    steps = np.zeros((total_ns.shape[0], bins.count + 1), np.int64)
    np.add.at(steps, (row, first), width_ns)
    np.add.at(steps, (row, last), -width_ns)
    total_ns += np.cumsum(steps, axis=1)[:, : bins.count]
    np.add.at(total_ns, (row, first), first * width_ns - start_ns)
    np.add.at(total_ns, (row, last), stop_ns - last * width_ns)


def _add_traffic(channels: dict[Channel, Traffic], rows: pa.RecordBatch) -> None:
    if not len(rows):
        return
    table = pa.table([rows[c] for c in ("sender", "receiver", "port", "nbytes")], list("srpn"))
    found = table.group_by(list("srp")).aggregate([("n", "count"), ("n", "sum")])
    for sender, receiver, port, count, nbytes in zip(
        *(found[column].to_pylist() for column in ("s", "r", "p", "n_count", "n_sum")), strict=True
    ):
        traffic = channels.setdefault((sender, receiver, port), Traffic())
        traffic.messages += count
        traffic.nbytes += nbytes
