"""The columns that a query selects, of every pair that a run listed: ``joined.parquet``.

Pairs are positions; here each is replaced by what its tuples have in the selected columns, as the
source had them: texts as texts, not as codes. A column is named as the query spells it. In a self
join ``x1`` is of the newer tuple and ``x2`` of the earlier one; without a suffix it is the newer's.
``*`` stands for all columns of all streams.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from actors.feed import ARRIVAL, PLACE
from actors.result_files import id_columns, pairs_path, part_files
from actors.whole_files import WholeTable
from joins.queries.conditions import prepared_name
from joins.queries.query import JoinQuery, QueryError
from scenarios.tables import TableStream
from spark_bridge.prepared import PreparedStream, codes_file

STAR = "*"
_HIDDEN = (ARRIVAL, PLACE)


@dataclass(frozen=True, kw_only=True)
class Selected:
    """A column to output.

    Attributes
    ----------
    name
        As the query spells it.
    stream
        Place of its stream in the query.
    column
        Its name in the stream.
    earlier
        Whether it is of the earlier tuple of a self join.
    """

    name: str
    stream: int
    column: str
    earlier: bool = False


def joined_path(directory: Path) -> Path:
    """Return the file of the selected columns."""
    return directory / "joined.parquet"


def select(query: JoinQuery, streams: Sequence[PreparedStream]) -> list[Selected]:
    """Return the columns that *query* selects of *streams*.

    Raise :exc:`QueryError` for a column that no stream has, with the nearest that there is.
    """
    columns = [_columns(stream) for stream in streams]
    chosen: list[Selected] = []
    for item in query.select:
        if item == STAR:
            chosen += _all(query, columns)
        else:
            chosen.append(_one(query, columns, item))
    return list({one.name: one for one in chosen}.values())


class JoinedColumns:
    """The selected columns of the pairs listed in a directory, some thousand pairs at a time.

    Attributes
    ----------
    schema
        The columns, named as the query spells them.
    """

    def __init__(
        self, query: JoinQuery, streams: Sequence[PreparedStream], directory: Path
    ) -> None:
        self._query = query
        self._pairs = pairs_path(directory)
        self._chosen = select(query, streams)
        self._values = {
            (stream, column): _values(streams[stream], column)
            for stream, column in dict.fromkeys((one.stream, one.column) for one in self._chosen)
        }
        self.schema = pa.schema([(one.name, self._of(one).type) for one in self._chosen])

    def __iter__(self) -> Iterator[pa.Table]:
        """Yield tables of pairs, in the order in which they are listed."""
        for part in part_files(self._pairs):
            with pq.ParquetFile(part) as file:
                for block in file.iter_batches():
                    columns = [
                        self._of(one).take(_ids(self._query, one, block)) for one in self._chosen
                    ]
                    yield pa.table(columns, schema=self.schema)

    def _of(self, one: Selected) -> pa.ChunkedArray:
        return self._values[one.stream, one.column]


def write_joined(query: JoinQuery, streams: Sequence[PreparedStream], directory: Path) -> None:
    """Write ``joined.parquet`` beside the pairs in *directory*."""
    joined = JoinedColumns(query, streams, directory)
    with WholeTable(joined_path(directory), joined.schema, compression="zstd") as file:
        for table in joined:
            file.write(table)


def _all(query: JoinQuery, columns: Sequence[Sequence[str]]) -> Iterator[Selected]:
    if query.is_self_join:
        (name,) = query.streams
        for role in (1, 2):
            for column in columns[0]:
                yield Selected(
                    name=f"{name}.{column}{role}", stream=0, column=column, earlier=role == 2
                )
        return
    for place, (name, own) in enumerate(zip(query.streams, columns, strict=True)):
        for column in own:
            yield Selected(name=f"{name}.{column}", stream=place, column=column)


def _one(query: JoinQuery, columns: Sequence[Sequence[str]], item: str) -> Selected:
    name, dot, spelt = item.rpartition(".")
    spelt = spelt.strip('"')
    if dot and name not in query.streams:
        raise QueryError(
            f"SELECT {item}: there is no stream {name!r} in FROM, only {', '.join(query.streams)}"
        )
    places = [query.streams.index(name)] if dot else list(range(len(query.streams)))
    for place in places:
        if (column := _find(columns[place], spelt)) is not None:
            return Selected(name=item, stream=place, column=column)
        if query.is_self_join and spelt[-1:] in ("1", "2"):
            column = _find(columns[place], spelt[:-1])
            if column is not None:
                return Selected(name=item, stream=place, column=column, earlier=spelt[-1] == "2")
    known = [column for place in places for column in columns[place]]
    near = difflib.get_close_matches(spelt, known, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise QueryError(f"SELECT {item}: there is no such column; {hint}there are {', '.join(known)}")


def _find(columns: Sequence[str], spelt: str) -> str | None:
    for name in (prepared_name(spelt), spelt):
        if name in columns:
            return name
    same = [column for column in columns if column.lower() == spelt.lower()]
    return same[0] if len(same) == 1 else None


def _columns(stream: PreparedStream) -> list[str]:
    """Return the columns that can be selected: the source's, and the tuple's own id and time."""
    if isinstance(stream, TableStream):
        return list(dict.fromkeys([*stream.source.schema.names, "ts", "id"]))
    schema = pq.read_schema(part_files(stream.path)[0])
    return [name for name in schema.names if name not in _HIDDEN]


def _values(stream: PreparedStream, column: str) -> pa.ChunkedArray:
    """Return a column, in the order of the tuples' ids."""
    if isinstance(stream, TableStream):
        if column in stream.source.schema.names:
            return stream.source[column].take(pa.array(stream.order))
        return (
            pa.chunked_array([np.arange(stream.rows)]) if column == "id" else stream.table[column]
        )
    values = pq.read_table(part_files(stream.path), columns=[column])[column]
    if column in stream.codes:
        texts = pq.read_table(stream.path.with_name(codes_file(column))).sort_by("code")["value"]
        return texts.take(values)
    return values


def _ids(query: JoinQuery, one: Selected, block: pa.RecordBatch) -> pa.Array:
    """Return the ids of the tuples, of the pairs in *block*, that a column is taken from."""
    if len(query.streams) > 2:
        return block[id_columns(query.streams, one.stream)[0]]
    if query.is_self_join:
        return block["match_id" if one.earlier else "probe_id"]
    mine = pc.equal(block["probe_stream"], one.stream)
    return pc.if_else(mine, block["probe_id"], block["match_id"])
