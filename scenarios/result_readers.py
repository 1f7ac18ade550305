"""Reading a run's results back, by ranges of probing tuples, and with the columns of their tuples.

What joiners find reaches the sink nearly in the order of the probing tuples, in several rows a
tuple. So each row group of the files covers a narrow range of them, and a reader that knows the
smallest tuple still to come can hand out complete ranges, added up per tuple (`TupleSums`), with
memory bounded by the disorder, not by the stream.

Pairs are positions. In ``joined.parquet`` each is replaced by what its tuples have in the columns
that the query selects (`joins.queries.selection`), as the source had them: texts as texts, not as
codes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from actors.result_files import id_columns, pairs_path, part_files
from actors.whole_files import WholeTable
from joins.errors import DataError
from joins.hashing import mix_rows
from joins.machine.compiling import kernel
from joins.queries.query import JoinQuery
from joins.queries.selection import Selected, select
from spark_bridge.prepared import PreparedStream


class RowGroups:
    """The row groups of what a run wrote, a file or a folder of parts, read in any order of these.

    Some *columns* are read. Those *ordered* have probing tuples' ids, nearly in order.
    """

    def __init__(self, path: Path, columns: Sequence[str], ordered: Sequence[str]) -> None:
        self._paths = part_files(path)
        self._files = [pq.ParquetFile(part) for part in self._paths]
        self._columns = list(columns)
        self._least = [
            [_least_to_come(part, file, name) for name in ordered]
            for part, file in zip(self._paths, self._files, strict=True)
        ]
        self._next = [0] * len(self._files)
        self.rows = sum(file.metadata.num_rows for file in self._files)
        """In all of them."""

    def until(self, stop: int | None, place: int = 0) -> Iterator[pa.Table]:
        """Yield the next row groups that have, or have one behind them with, an id below *stop*.

        *place* says which of the ordered columns that is about. A *stop* of None is after all.

        Raise :exc:`DataError` naming a file with missing values.
        """
        for number, (file, least) in enumerate(zip(self._files, self._least, strict=True)):
            for group in range(self._next[number], len(least[place])):
                if stop is not None and least[place][group] >= stop:
                    break
                self._next[number] += 1
                table = file.read_row_group(group, columns=self._columns, use_threads=False)
                for name in self._columns:
                    if table[name].null_count:
                        raise _missing_values(self._paths[number], name)
                yield table

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()


def _missing_values(path: Path, column: str) -> DataError:
    return DataError(
        f"{path}: column {column} has missing values, which no run writes; run it again"
    )


def _least_to_come(path: Path, file: pq.ParquetFile, name: str) -> list[int]:
    """Return for each row group the smallest value of a column in it or any later one."""
    column = file.schema_arrow.get_field_index(name)
    least = []
    for group in range(file.metadata.num_row_groups):
        statistics = file.metadata.row_group(group).column(column).statistics
        if statistics is None or (statistics.min is None and statistics.null_count):
            raise _missing_values(path, name)
        least.append(statistics.min)
    for group in reversed(range(len(least) - 1)):
        least[group] = min(least[group], least[group + 1])
    return least


class Sums(NamedTuple):
    """What has been added up, a row per tuple."""

    pairs: np.ndarray
    fingerprint: np.ndarray
    """int64 and uint64, sums."""
    latest: np.ndarray
    """int64, the greatest; -1 of a tuple without rows."""

    @classmethod
    def empty(cls, tuples: int) -> Sums:
        """Return the sums of *tuples* without rows."""
        return cls(
            np.zeros(tuples, np.int64), np.zeros(tuples, np.uint64), np.full(tuples, -1, np.int64)
        )

    def slice(self, start: int, stop: int) -> Sums:
        """Return tuples *start* to *stop* (exclusive) as views."""
        return Sums(*(column[start:stop] for column in self))


class TupleSums:
    """Adds up rows of the first *tuples* of a stream that have not been taken.

    Rows come in nearly any order, sums leave in ascending ranges. Each row is looked at once;
    memory is that of the tuples between the first not taken and the last seen.
    """

    def __init__(self, tuples: int) -> None:
        self._tuples, self._first = tuples, 0
        self._sums = Sums.empty(0)
        self.stray_rows = self.stray_pairs = 0
        """Rows of no such tuple, or with a negative count, and the pairs that they claim."""

    def add(
        self, ids: np.ndarray, count: np.ndarray, fingerprint: np.ndarray, latest: np.ndarray
    ) -> None:
        """Add rows: tuple (int64), matches, their fingerprint, and a candidate for the latest."""
        self._make_room(ids)
        rows, pairs = _add_rows(
            self._first, self._tuples, ids, count, fingerprint, latest, self._sums
        )
        self.stray_rows += rows
        self.stray_pairs += pairs

    def add_pairs(
        self, ids: np.ndarray, hashes: np.ndarray, mine: np.ndarray, stray: np.ndarray
    ) -> None:
        """Add the pairs that the mask *mine* names: a tuple of *ids*, and its match's hash, uint64.

        The mask *stray* is cleared where the tuple exists and was not taken.
        """
        self._make_room(ids)
        _add_pairs(self._first, self._tuples, ids, hashes, mine, self._sums, stray)

    def take(self, stop: int) -> Sums:
        """Return the sums of all tuples below *stop* that have not been taken."""
        self._grow(stop)
        taken = self._sums.slice(0, stop - self._first)
        self._sums = self._sums.slice(stop - self._first, len(self._sums.pairs))
        self._first = stop
        return taken

    def _make_room(self, ids: np.ndarray) -> None:
        if len(ids):
            self._grow(min(int(ids.max()) + 1, self._tuples))

    def _grow(self, stop: int) -> None:
        there = len(self._sums.pairs)
        more = stop - self._first - there
        if more > 0:
            fresh = Sums.empty(max(more, there))
            self._sums = Sums(*map(np.concatenate, zip(self._sums, fresh, strict=True)))


@kernel
def _add_rows(
    first: int,
    tuples: int,
    ids: np.ndarray,
    count: np.ndarray,
    fingerprint: np.ndarray,
    latest: np.ndarray,
    sums: Sums,
) -> tuple[int, int]:
    """Return how many rows are stray, and the pairs that they claim."""
    rows = pairs = 0
    for i in range(len(ids)):
        if ids[i] < first or ids[i] >= tuples or count[i] < 0:
            rows += 1
            pairs += abs(count[i])
            continue
        place = ids[i] - first
        sums.pairs[place] += count[i]
        sums.fingerprint[place] += fingerprint[i]
        sums.latest[place] = max(sums.latest[place], latest[i])
    return rows, pairs


@kernel
def _add_pairs(
    first: int,
    tuples: int,
    ids: np.ndarray,
    hashes: np.ndarray,
    mine: np.ndarray,
    sums: Sums,
    stray: np.ndarray,
) -> None:
    for i in range(len(ids)):
        if mine[i] and first <= ids[i] < tuples:
            place = ids[i] - first
            sums.pairs[place] += 1
            sums.fingerprint[place] += hashes[i]
            stray[i] = False


class Summaries:
    """What a run reported of the tuples of a probing stream, taken by ascending ranges.

    The reports (`actors.result_files.summary_path`) may be of the stream's first *tuples* tuples,
    and by so many *actors*; None for any number.
    """

    def __init__(self, path: Path, tuples: int, actors: int | None = None) -> None:
        columns = ["probe_id", "count", "fingerprint", "latency_ns", "sender"]
        self._groups = RowGroups(path, columns, columns[:1])
        self._actors = actors
        self.sums = TupleSums(tuples)
        """Has the rows read so far that belong to no such tuple (``stray_rows``), and the pairs
        that they claim (``stray_pairs``)."""
        self.odd_rows = 0
        """Rows read so far whose sender is none of the actors, or whose latency is negative."""
        self.by_sender = np.zeros(actors or 0, np.int64)
        """Rows read so far, by the rank of the actor that sent them."""

    def take(self, stop: int) -> Sums:
        """Return what was reported of the tuples from the last *stop* to this, latest latency."""
        self._read(stop)
        return self.sums.take(stop)

    def finish(self) -> None:
        """Read what is left: it should be of no tuple at all."""
        self._read(None)
        self._groups.close()

    def _read(self, stop: int | None) -> None:
        for group in self._groups.until(stop):
            probe_id, count, fingerprint, latency, sender = (
                column.to_numpy() for column in group.columns
            )
            self.sums.add(probe_id, count, fingerprint, latency)
            odd = (sender < 0) | (latency < 0)
            if self._actors is not None:
                odd |= sender >= self._actors
                ranked = sender[(sender >= 0) & (sender < self._actors)]
                self.by_sender += np.bincount(ranked, minlength=self._actors)
            self.odd_rows += int(odd.sum())


class ListedPairs:
    """The pairs that a run listed, added up per probing tuple, taken by ascending ranges.

    What a run reported of a tuple (its count and fingerprint) and what it listed are two files.
    Here the listed ids are hashed anew, so that the oracle's sums can be compared with both of
    them. Each row is read once.

    *probing* says, for each of the query's *streams*, how many of its tuples may have pairs, the
    first ones. So many stray pairs are remembered: *strays_max*.
    """

    def __init__(
        self, path: Path, streams: Sequence[str], probing: Sequence[int], *, strays_max: int
    ) -> None:
        self._columns = [id_columns(streams, stream) for stream in range(len(streams))]
        read = ["probe_stream", *dict.fromkeys(name for names in self._columns for name in names)]
        self._groups = RowGroups(path, read, [names[0] for names in self._columns])
        self._sums = [TupleSums(tuples) for tuples in probing]
        self._strays_max = strays_max
        self.rows = self._groups.rows
        """Pairs in the file."""
        self.stray_rows = 0
        """Of those read so far, the ones whose probing tuple does not exist."""
        self.strays: list[tuple[int, ...]] = []
        """The first of them: the stream, the probing tuple's id, its matches' ids."""

    def take(self, stream: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return count and fingerprint of the tuples of *stream* from the last *stop* to this."""
        for group in self._groups.until(stop, stream):
            self._add(group)
        sums = self._sums[stream].take(stop)
        return sums.pairs, sums.fingerprint

    def finish(self) -> None:
        """Read what is left, and close the file: it should be of no tuple at all."""
        for group in self._groups.until(None):
            self._add(group)
        self._groups.close()

    def _add(self, group: pa.Table) -> None:
        columns = {name: group[name].to_numpy() for name in group.column_names}
        stream = columns.pop("probe_stream")
        stray = np.ones(len(stream), np.bool_)
        for place, (names, sums) in enumerate(zip(self._columns, self._sums, strict=True)):
            mine = stream == place
            if not mine.any():
                continue
            probe_id, *others = (columns[name] for name in names)
            sums.add_pairs(probe_id, mix_rows(others), mine, stray)
        rows = np.flatnonzero(stray)
        self.stray_rows += len(rows)
        for row in rows[: self._strays_max - len(self.strays)].tolist():
            known = 0 <= stream[row] < len(self._columns)
            names = self._columns[stream[row] if known else 0]
            self.strays.append((int(stream[row]), *(int(columns[name][row]) for name in names)))


_STEPS_PER_DOUBLING = 256
_EDGES = np.concatenate([[0], 2 ** (np.arange(1, 63 * _STEPS_PER_DOUBLING) / _STEPS_PER_DOUBLING)])
"""Each bin is 0.27 % wider than the one before: no percentile is further off than that."""


class LatencyHistogram:
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


class JoinedColumns:
    """The selected columns of the pairs listed in a directory, some thousand pairs at a time."""

    def __init__(
        self, query: JoinQuery, streams: Sequence[PreparedStream], directory: Path
    ) -> None:
        self._query = query
        self._rows = [stream.rows for stream in streams]
        self._pairs = pairs_path(directory)
        self._chosen = select(query, [stream.names for stream in streams])
        self._values = {
            (stream, column): in_one_piece(streams[stream].values(column))
            for stream, column in dict.fromkeys((one.stream, one.column) for one in self._chosen)
        }
        self.schema = pa.schema([(one.name, self._of(one).type) for one in self._chosen])
        """The columns, named as the query spells them."""

    def __iter__(self) -> Iterator[pa.Table]:
        """Yield tables of pairs, in the order in which they are listed.

        Where a pair names a tuple that does not exist, its columns are null.
        """
        sides = dict.fromkeys((one.stream, one.earlier) for one in self._chosen)
        for part in part_files(self._pairs):
            with pq.ParquetFile(part) as file:
                for block in file.iter_batches():
                    ids = {side: self._ids(*side, block) for side in sides}
                    columns = [
                        self._of(one).take(ids[one.stream, one.earlier]) for one in self._chosen
                    ]
                    yield pa.table(columns, schema=self.schema)

    def _of(self, one: Selected) -> pa.Array | pa.ChunkedArray:
        return self._values[one.stream, one.column]

    def _ids(self, stream: int, earlier: bool, block: pa.RecordBatch) -> pa.Array:
        ids = _ids(self._query, stream, earlier, block)
        exists = pc.and_(pc.greater_equal(ids, 0), pc.less(ids, self._rows[stream]))
        return ids if pc.all(exists).as_py() else pc.if_else(exists, ids, None)


def in_one_piece(column: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return *column* as one array: of several chunks, Arrow copies all to take a few values."""
    try:
        return column.combine_chunks()
    except pa.ArrowInvalid:  # its texts are longer than one array can hold
        return column


def joined_path(directory: Path) -> Path:
    """Return the file of the selected columns of the pairs."""
    return directory / "joined.parquet"


def write_joined(query: JoinQuery, streams: Sequence[PreparedStream], directory: Path) -> None:
    """Write `joined_path` beside the pairs in *directory*.

    While a thread writes some pairs, the next ones are put together. Numbers are stored as in the
    file of pairs, see `actors.result_files`: neighbours have a tuple in common.
    """
    joined = JoinedColumns(query, streams, directory)
    numbers = [field.name for field in joined.schema if _is_number(field.type)]
    file = WholeTable(
        joined_path(directory),
        joined.schema,
        compression="lz4",
        use_dictionary=[name for name in joined.schema.names if name not in numbers],
        column_encoding=dict.fromkeys(numbers, "BYTE_STREAM_SPLIT"),
    )
    with file, ThreadPoolExecutor(max_workers=1) as thread:
        writing: Future[None] | None = None
        for table in joined:
            if writing:
                writing.result()
            writing = thread.submit(file.write, table)
        if writing:
            writing.result()


def _is_number(kind: pa.DataType) -> bool:
    """Return whether values are of four or eight bytes each, times among them."""
    return pa.types.is_primitive(kind) and kind.bit_width in (32, 64)


def _ids(query: JoinQuery, stream: int, earlier: bool, block: pa.RecordBatch) -> pa.Array:
    """Return the ids of the tuples of a *stream* in the pairs of *block*.

    Of a self join those of the *earlier* tuples, or of the newer ones.
    """
    if len(query.streams) > 2:
        return block[id_columns(query.streams, stream)[0]]
    if query.is_self_join:
        return block["match_id" if earlier else "probe_id"]
    mine = pc.equal(block["probe_stream"], stream)
    return pc.if_else(mine, block["probe_id"], block["match_id"])
