"""``joined.parquet``, read back and compared with the pairs and the tuples that it is made of.

Which pairs should be there other checks say; here each listed pair has to have its row, in its
turn, with the values of its own tuples. How they are read is written anew, as what writes the file
would be wrong alike; which columns a query selects is not worked out anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from actors.result_files import pairs_path, part_files
from joins.queries.selection import select
from scenarios.columns import decode
from scenarios.plan import Plan
from scenarios.result_readers import in_one_piece, joined_path
from scenarios.tables import TableStream
from scenarios.verdict import CheckResult
from spark_bridge.prepared import PreparedStream, codes_file


def check_joined(plan: Plan, directory: Path) -> CheckResult:
    """Check that `joined_path` has, of each listed pair in turn, the columns of its tuples."""
    try:
        wrong = _difference(plan, directory)
    except (pa.ArrowException, OSError) as error:
        wrong = f"{joined_path(directory).name} cannot be read: {error}"
    detail = "read back from disk: each row has what the tuples of its pair have"
    return CheckResult(name="joined rows", passed=wrong is None, detail=wrong or detail)


def _difference(plan: Plan, directory: Path) -> str | None:
    path = joined_path(directory)
    chosen = select(plan.query, [stream.names for stream in plan.streams])
    sides = dict.fromkeys((one.stream, one.earlier) for one in chosen)
    values = {
        (one.stream, one.column): in_one_piece(_read(plan.streams[one.stream], one.column))
        for one in chosen
    }
    with pq.ParquetFile(path) as file:
        names, groups = file.schema_arrow.names, range(file.num_row_groups)
        if names != [one.name for one in chosen]:
            return f"{path.name} has columns {', '.join(names)}"
        listed = sum(pq.read_metadata(part).num_rows for part in part_files(pairs_path(directory)))
        if file.metadata.num_rows != listed:
            return f"{path.name} has {file.metadata.num_rows:,} rows of {listed:,} pairs"
        pairs = _Pairs(directory)
        first = 0
        for rows in map(file.read_row_group, groups):
            block = pairs.take(len(rows))
            ids = {side: _ids(plan, *side, block) for side in sides}
            for one in chosen:
                due = values[one.stream, one.column].take(ids[one.stream, one.earlier])
                if not _are_equal(rows[one.name], due):
                    return (
                        f"rows {first:,} to {first + len(rows) - 1:,} of {path.name} have other "
                        f"values of {one.name} than the tuples of their pairs"
                    )
            first += len(rows)
    return None


class _Pairs:
    """The listed pairs, taken so many at a time."""

    def __init__(self, directory: Path) -> None:
        self._blocks = self._read_blocks(directory)
        self._waiting: list[pa.RecordBatch] = []

    def take(self, rows: int) -> pa.Table:
        """Return the next *rows* pairs, which are there."""
        while sum(map(len, self._waiting)) < rows:
            self._waiting.append(next(self._blocks))
        table = pa.Table.from_batches(self._waiting)
        self._waiting = table.slice(rows).to_batches()
        return table.slice(0, rows)

    @staticmethod
    def _read_blocks(directory: Path) -> Iterator[pa.RecordBatch]:
        for part in part_files(pairs_path(directory)):
            with pq.ParquetFile(part) as file:
                yield from file.iter_batches()


def _ids(plan: Plan, stream: int, earlier: bool, pairs: pa.Table) -> pa.Array:
    """Return of each pair the id of its tuple of *stream*; null where no such tuple exists.

    Of a self join that of the *earlier* tuple, or of the newer one.
    """
    query = plan.query
    if query.is_self_join:
        ids = pairs["match_id" if earlier else "probe_id"].to_numpy()
    elif len(query.streams) > 2:
        ids = pairs[f"{query.streams[stream]}_id"].to_numpy()
    else:
        probe_stream, probe_id, match_id = (column.to_numpy() for column in pairs.columns)
        ids = np.where(probe_stream == stream, probe_id, match_id)
    return pa.array(ids, mask=(ids < 0) | (ids >= plan.streams[stream].rows))


def _read(stream: PreparedStream, column: str) -> pa.ChunkedArray:
    """Return a column of a stream's tuples, texts as texts."""
    if isinstance(stream, TableStream):
        if column in stream.source.column_names:
            return decode(stream.source[column]).take(pa.array(stream.order))
        return pa.chunked_array([np.arange(stream.rows)]) if column == "id" else stream.table["ts"]
    values = pq.read_table(part_files(stream.path), columns=[column])[column]
    if column in stream.codes:
        texts = pq.read_table(stream.path.with_name(codes_file(column)))
        values = texts["value"].take(pc.index_in(values, texts["code"]))
    return values


def _are_equal(found: pa.ChunkedArray, due: pa.Array | pa.ChunkedArray) -> bool:
    if isinstance(due, pa.Array):
        due = pa.chunked_array([due])
    if found.type != due.type:  # Parquet has no seconds, for one
        due = due.cast(found.type)
    if found.equals(due):
        return True
    # Arrow takes no NaN for equal to another.
    if pa.types.is_floating(found.type):
        same = np.array_equal(found.to_numpy(), due.to_numpy(), equal_nan=True)
        return same and found.is_null().equals(due.is_null())
    return repr(found.to_pylist()) == repr(due.to_pylist())  # as in lists
