"""What a run leaves on disk: the files and their columns, writing them, reading them back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from actors.results import Collected, Late, Output
from actors.whole_files import WholeTable

SUMMARY_SCHEMA = pa.schema(
    [
        ("probe_id", pa.int64()),
        ("count", pa.int64()),
        ("fingerprint", pa.uint64()),
        ("latency_ns", pa.int64()),
        ("sender", pa.int32()),
    ]
)
"""Of each probing tuple, in any number of rows: what was found, how long after its birth, and the
rank of the actor that sent it to a sink."""

LATE_SCHEMA = pa.schema(
    [("stream", pa.int8()), ("id", pa.int64()), ("ts", pa.int64()), ("watermark", pa.int64())]
)
"""Tuples that were dropped as late, and the watermark that they came behind."""

COLLECTORS_SCHEMA = pa.schema(
    [
        ("replica", pa.int64()),
        ("most_tuples", pa.int64()),
        ("tuples", pa.int64()),
        ("waited_ns", pa.int64()),
        ("longest_ns", pa.int64()),
        ("backward", pa.int64()),
    ]
)
"""What collectors of interval joins did, a row per replica."""

_ID = "_id"


def id_columns(streams: Sequence[str], stream: int) -> list[str]:
    """Return the columns of a result's ids in ``results.parquet``: its newest tuple's, the others'.

    A pair of a self join or of two streams has ``probe_id`` and ``match_id``. In a join of more
    streams each has a column of its own, wherever the newest tuple, of stream *stream*, is from.
    """
    if len(streams) <= 2:
        return ["probe_id", "match_id"]
    columns = [name + _ID for name in streams]
    return [columns.pop(stream), *columns]


def pairs_schema(streams: Sequence[str]) -> pa.Schema:
    """Return the columns of ``results.parquet``."""
    ids = id_columns(streams, 0)
    return pa.schema([("probe_stream", pa.int8()), *((name, pa.int64()) for name in ids)])


def summary_path(directory: Path, stream: int) -> Path:
    """Return the file of per-probe counts of a probing stream."""
    return directory / f"probes-{stream}.parquet"


def late_path(directory: Path) -> Path:
    """Return the file of tuples that were dropped as late."""
    return directory / "late.parquet"


def collectors_path(directory: Path) -> Path:
    """Return the file of what collectors did, a row per replica."""
    return directory / "collectors.parquet"


def pairs_path(directory: Path) -> Path:
    """Return the file of pairs."""
    return directory / "results.parquet"


_GROUP_ROWS = 16_384


class _Columns:
    """Gathers columns in buffers of `_GROUP_ROWS` rows, and writes a row group when they are full.

    The buffers are made once: many short-lived arrays of changing size would leave holes in the
    heap, and the process would grow with the number of results. There are two sets of them: one is
    filled while a thread compresses and writes the other.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._writing: Future[None] | None = None
        self._schema = schema
        # Ids hardly repeat within a group: a dictionary of them would only cost.
        self._file = WholeTable(path, schema, compression="zstd", use_dictionary=False)
        self._buffers, self._spare = (
            [np.empty(_GROUP_ROWS, f.type.to_pandas_dtype()) for f in schema] for _ in range(2)
        )
        self._rows = 0

    def add(self, *columns: np.ndarray) -> None:
        taken, rows = 0, len(columns[0])
        while taken < rows:
            step = min(rows - taken, _GROUP_ROWS - self._rows)
            for buffer, column in zip(self._buffers, columns, strict=True):
                buffer[self._rows : self._rows + step] = column[taken : taken + step]
            taken += step
            self._rows += step
            if self._rows == _GROUP_ROWS:
                self._flush()

    def close(self) -> None:
        self._flush()
        self._wait()
        self._file.close()

    def discard(self) -> None:
        """Remove the file, unless it was closed."""
        self._thread.shutdown()
        self._file.discard()

    def _flush(self) -> None:
        if self._rows:
            self._wait()
            columns = [buffer[: self._rows] for buffer in self._buffers]
            table = pa.table(columns, schema=self._schema)
            self._writing = self._thread.submit(self._file.write, table)
            self._buffers, self._spare = self._spare, self._buffers
        self._rows = 0

    def _wait(self) -> None:
        """Let the thread finish; raise what it raised."""
        if self._writing:
            self._writing.result()


class ResultWriter:
    """Takes what sinks emit; a context manager, whose files appear when it ends without an error.

    Parameters
    ----------
    directory
        Where to write ``probes-N.parquet`` per probing stream N and, with *pairs*,
        ``results.parquet``; tuples dropped as late go into ``late.parquet``, and
        what collectors of interval joins did into ``collectors.parquet``.
    streams
        Their names, in the order of the query.
    actors
        Their names, in the order of rank.
    pairs
        Whether matches come with their ids.
    """

    def __init__(
        self, directory: Path, *, streams: Sequence[str], actors: Iterable[str], pairs: bool
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._rank = {name: rank for rank, name in enumerate(actors)}
        self._streams = streams
        self._files: list[_Columns] = []
        with ExitStack() as opened:

            def columns(path: Path, schema: pa.Schema) -> _Columns:
                self._files.append(_Columns(path, schema))
                opened.callback(self._files[-1].discard)
                return self._files[-1]

            self._summaries = [
                columns(summary_path(directory, stream), SUMMARY_SCHEMA)
                for stream in range(len(streams))
            ]
            self._pairs = columns(pairs_path(directory), pairs_schema(streams)) if pairs else None
            self._late = columns(late_path(directory), LATE_SCHEMA)
            self._collectors = columns(collectors_path(directory), COLLECTORS_SCHEMA)
            self._opened = opened.pop_all()
        self.produced = 0

    def __enter__(self) -> ResultWriter:
        """Return the writer itself."""
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        """Write what is left; after a *failure* discard every file."""
        with self._opened:
            if failure is None:
                for columns in self._files:
                    columns.close()

    def collect(self, outputs: list[Output | Late | Collected]) -> None:
        """Write *outputs*."""
        for output in outputs:
            if isinstance(output, Collected):
                figures = [getattr(output, name) for name in COLLECTORS_SCHEMA.names]
                self._collectors.add(*(np.array([figure]) for figure in figures))
                continue
            if isinstance(output, Late):
                rows = len(output.ids)
                stream, watermark = np.full(rows, output.stream), np.full(rows, output.watermark)
                self._late.add(stream, output.ids, output.ts, watermark)
                continue
            matches = output.matches
            self.produced += matches.total
            sender = np.full(len(matches), self._rank[output.sender], np.int32)
            self._summaries[matches.stream].add(
                matches.probe_id, matches.count, matches.fingerprint, output.latency_ns, sender
            )
            if self._pairs:
                probe_id, match_id = matches.pairs()
                stream = np.full(len(probe_id), matches.stream, np.int8)
                ids = [probe_id, *np.atleast_2d(match_id.T)]
                if len(self._streams) > 2:
                    ids.insert(matches.stream, ids.pop(0))
                self._pairs.add(stream, *ids)


# Reading back by ranges of probing tuples.
#
# What joiners find reaches the sink nearly in the order of the probing tuples. So each row group of
# the files covers a narrow range of them, and a reader that knows the smallest tuple still to come
# can hand out complete ranges with memory bounded by the disorder, not by the stream.


@dataclass(frozen=True, kw_only=True)
class ProbeSummary:
    """What a run found for a range of probing tuples, one row per tuple from *first* on.

    Attributes
    ----------
    first
        The range's first tuple.
    count, fingerprint
        Sums over all that was reported of each tuple.
    latency_ns
        From a tuple's birth until the last report of it left the system; -1 without any report.
    stray_rows, stray_pairs
        Rows that belong to no tuple that is still to come, or have a negative count, and the pairs
        that they claim.
    """

    first: int
    count: np.ndarray
    fingerprint: np.ndarray
    latency_ns: np.ndarray
    stray_rows: int = 0
    stray_pairs: int = 0


class RangeReader:
    """Reads rows by ascending, disjoint ranges of probing tuples from a nearly sorted file.

    The first of *columns* is the probing tuple's id.
    """

    def __init__(self, path: Path, columns: list[str], *, stream: int | None = None) -> None:
        self._file = pq.ParquetFile(path)
        self._columns = columns
        self._stream = stream
        self._least_to_come = least_to_come(self._file, columns[0])
        self._next_group = 0
        self._held = self._file.schema_arrow.empty_table().select(columns)

    def take(self, stop: int | None) -> pa.Table:
        """Return the rows below *stop* that have not been returned yet; all the rest for None."""
        while self._next_group < len(self._least_to_come) and (
            stop is None or self._least_to_come[self._next_group] < stop
        ):
            group = self._file.read_row_group(self._next_group)
            self._next_group += 1
            if self._stream is not None:
                group = group.filter(pa.compute.equal(group["probe_stream"], self._stream))
            self._held = pa.concat_tables([self._held, group.select(self._columns)])
        if stop is None:
            taken, self._held = self._held, self._held.slice(0, 0)
            return taken
        below = pa.compute.less(self._held[self._columns[0]], stop)
        taken = self._held.filter(below)
        self._held = self._held.filter(pa.compute.invert(below)).combine_chunks()
        return taken


def least_to_come(file: pq.ParquetFile, name: str) -> list[int]:
    """Return for each row group the smallest value of a column in it or any later one."""
    column = file.schema_arrow.get_field_index(name)
    least = [
        file.metadata.row_group(group).column(column).statistics.min
        for group in range(file.metadata.num_row_groups)
    ]
    for group in reversed(range(len(least) - 1)):
        least[group] = min(least[group], least[group + 1])
    return least


def read_summary(reader: RangeReader, first: int, stop: int) -> ProbeSummary:
    """Return what was reported of the tuples *first* to *stop* (exclusive)."""
    rows = reader.take(stop)
    place, reported, fingerprints, latencies = (
        rows[name].to_numpy() for name in ("probe_id", "count", "fingerprint", "latency_ns")
    )
    place = place - first
    stray = (place < 0) | (reported < 0)
    stray_pairs = int(np.abs(reported[stray]).sum())
    if stray.any():
        place, reported, fingerprints, latencies = (
            column[~stray] for column in (place, reported, fingerprints, latencies)
        )
    count = np.zeros(stop - first, np.int64)
    fingerprint = np.zeros(stop - first, np.uint64)
    latency_ns = np.full(stop - first, -1, np.int64)
    np.add.at(count, place, reported)
    np.add.at(fingerprint, place, fingerprints)
    np.maximum.at(latency_ns, place, latencies)
    return ProbeSummary(
        first=first,
        count=count,
        fingerprint=fingerprint,
        latency_ns=latency_ns,
        stray_rows=int(stray.sum()),
        stray_pairs=stray_pairs,
    )


_STEPS_PER_DOUBLING = 256
_EDGES = np.concatenate([[0], 2 ** (np.arange(1, 63 * _STEPS_PER_DOUBLING) / _STEPS_PER_DOUBLING)])
"""Each bin is 0.27 % wider than the one before: no percentile is further off than that."""


class Histogram:
    """Counts non-negative integers (nanoseconds, say) in bins that widen with the value."""

    def __init__(self) -> None:
        self._counts = np.zeros(len(_EDGES) - 1, np.int64)
        self.max = 0

    def add(self, values: np.ndarray) -> None:
        """Count *values*."""
        if len(values):
            self._counts += np.histogram(values, _EDGES)[0]
            self.max = max(self.max, int(values.max()))

    def percentile(self, percent: float) -> int | None:
        """Return the upper edge of the bin in which *percent* of the values have been passed.

        None when nothing was counted.
        """
        total = int(self._counts.sum())
        if not total:
            return None
        place = int(np.searchsorted(np.cumsum(self._counts), total * percent / 100))
        return min(self.max, int(_EDGES[place + 1]))
