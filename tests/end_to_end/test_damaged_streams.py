"""A prepared stream that is not what it says is refused, with file and tuple, and no traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import joinsim as js
from actors.feed import StreamTable
from joins.batch import Schema
from spark_bridge.prepared import load_stream
from tests.end_to_end.conftest import SELF_JOIN, WINDOW, Command, write_prepared
from tests.end_to_end.test_bad_input import refused

QUERY = SELF_JOIN.format(window=WINDOW)
ROWS = 300
PART = "part-00000.parquet"
ABOUT = "stream.json is damaged"


def _column(name: str, change: Callable[[np.ndarray], Any]) -> Callable[[Path], None]:
    """Return what changes a column of the segment."""

    def damage(stream: Path) -> None:
        path = stream / "segments" / PART
        table = pq.read_table(path)
        column = pa.array(change(table[name].to_numpy().copy()))
        pq.write_table(table.set_column(table.schema.get_field_index(name), name, column), path)

    return damage


def _put(row: int, value: Any) -> Callable[[np.ndarray], np.ndarray]:
    def change(values: np.ndarray) -> np.ndarray:
        values[row] = value
        return values

    return change


def _huge(row: int) -> Callable[[np.ndarray], pa.Array]:
    """Return what makes decimals of whole numbers, one of which no int64 can hold."""

    def change(values: np.ndarray) -> pa.Array:
        whole = [Decimal(int(value)) for value in values]
        return pa.array([*whole[:row], Decimal(10**30), *whole[row + 1 :]], pa.decimal128(38, 0))

    return change


def _without(row: int) -> Callable[[np.ndarray], pa.Array]:
    return lambda values: pa.array(values, mask=np.arange(len(values)) == row)


def _twice(name: str) -> Callable[[Path], None]:
    """Return what gives the segment a column for the second time."""

    def damage(stream: Path) -> None:
        path = stream / "segments" / PART
        table = pq.read_table(path)
        pq.write_table(table.append_column(name, table[name]), path)

    return damage


def _summary(**values: Any) -> Callable[[Path], None]:
    def damage(stream: Path) -> None:
        about = json.loads((stream / "stream.json").read_text()) | values
        (stream / "stream.json").write_text(json.dumps(about))

    return damage


def _both(*damages: Callable[[Path], None]) -> Callable[[Path], None]:
    def damage(stream: Path) -> None:
        for each in damages:
            each(stream)

    return damage


def _segment(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def damage(stream: Path) -> None:
        path = stream / "segments" / PART
        path.write_bytes(change(path.read_bytes()))

    return damage


def _flipped(data: bytes) -> bytes:
    """Return *data* with the head of its first page overwritten."""
    return data[:4] + bytes(40) + data[44:]


DAMAGES: dict[str, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    "NaN": (_column("b", _put(7, np.nan)), (PART, "tuple 7", "b is NaN")),
    "infinite": (_column("b", _put(9, -np.inf)), (PART, "tuple 9", "infinite")),
    "null": (_column("a", _without(11)), (PART, "tuple 11", "a is null")),
    "unsigned": (
        _column("a", lambda a: _put(13, 2**63 + 5)(a.astype(np.uint64))),
        (PART, "tuple 13", "a is 9223372036854775813", "int64"),
    ),
    "unsigned time": (
        _both(
            _column("ts", lambda ts: _put(ROWS - 1, 2**63)(ts.astype(np.uint64))),
            _summary(last_ts=2**63),
        ),
        (PART, "tuple 299", "ts is 9223372036854775808", "int64"),
    ),
    "decimal": (_column("a", _huge(14)), (PART, "tuple 14", f"a is 1{'0' * 30}", "int64")),
    "null time": (_column("ts", _without(12)), (PART, "tuple 12", "ts is null")),
    "backwards": (_column("ts", _put(30, 1)), (PART, "backwards at tuple 30", "to 1 ns")),
    "ids of zero": (_column("id", np.zeros_like), (PART, "id of tuple 1 ")),
    "an id moved": (_column("id", _put(5, 6)), (PART, "id of tuple 5 ")),
    "ids of another type": (_column("id", lambda ids: ids.astype(float)), (PART, "'id'", "int64")),
    "times of another type": (_column("ts", lambda ts: ts.astype(float)), (PART, "'ts'")),
    "texts": (_column("b", lambda b: b.astype(str)), (PART, "'b' is string", "float64")),
    "a field twice": (_twice("a"), (PART, "column 'a' comes more than once")),
    "ids twice": (_twice("id"), (PART, "column 'id' comes more than once")),
    "fewer rows": (_summary(rows=299), ("299 tuples", "have 300")),
    "negative rows": (_summary(rows=-5), ("-5 tuples",)),
    "too many rows": (_summary(rows=10**15), ("1000000000000000 tuples",)),
    "negative rejected": (_summary(rejected=-5), (ABOUT, "rejected is -5", "or equal to 0")),
    "times that go back": (
        _summary(first_ts=10**18, last_ts=-5),
        (ABOUT, f"first_ts is {10**18}", "last_ts, which is -5"),
    ),
    "another first time": (
        _summary(first_ts=-7),
        (ABOUT, "first_ts is -7", "should be 0, as in the segments"),
    ),
    "another last time": (
        _summary(last_ts=10**18),
        (ABOUT, f"last_ts is {10**18}", "should be 299000, as in the segments"),
    ),
    "delays in words": (_summary(delays="abc"), (ABOUT, "delays is 'abc'", "array")),
    "one delay": (_summary(delays=[1]), (ABOUT, "delays.1 is missing")),
    "delays that go back": (_summary(delays=[2, 1]), (ABOUT, "delays is (2, 1)", "at the least")),
    "delays without arrivals": (_summary(delays=[0, 2]), (PART, "'_arrival' is missing")),
    "codes without texts": (
        _summary(codes={"a": "x"}),
        (ABOUT, "codes names 'a'", "codes-a.parquet"),
    ),
    "codes of no field": (
        _summary(codes={"ts": "x"}),
        (ABOUT, "codes names 'ts'", "join fields of int64 are a"),
    ),
    "codes in a list": (_summary(codes=["a"]), (ABOUT, "codes is ['a']", "object")),
    "fields in a word": (_summary(join_fields="ab"), (ABOUT, "join_fields is 'ab'", "array")),
    "a join field twice": (
        _summary(join_fields=["a", "a", "b"]),
        (ABOUT, "join_fields names 'a' more than once"),
    ),
    "an unknown join field": (
        _summary(join_fields=["a", "c"]),
        (ABOUT, "join_fields names 'c'", "schema has a, b"),
    ),
    "another dtype": (
        _summary(schema={"a": {"dtype": "int32"}, "b": {"dtype": "float64"}}),
        (ABOUT, "schema.a.dtype is 'int32'", "'int64' or 'float64'"),
    ),
    "a number for a name": (_summary(name=5), (ABOUT, "name is 5", "string")),
    "no notes": (_summary(notes=None), (ABOUT, "notes is None", "array")),
    "rows in words": (_summary(rows="many"), (ABOUT, "rows is 'many'")),
    "cut off": (_segment(lambda data: data[:-100]), (PART, "cannot be read")),
    "empty": (_segment(lambda data: b""), (PART, "cannot be read")),
    "flipped bytes": (_segment(_flipped), (PART,)),
    "no segment": (lambda stream: (stream / "segments" / PART).unlink(), ("segments have 0",)),
}


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    rng = np.random.default_rng(7)
    fields = {"a": rng.integers(0, 50, ROWS), "b": rng.random(ROWS)}
    write_prepared(tmp_path / "s", fields, ts=np.arange(ROWS) * 1_000)
    return tmp_path / "s"


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_stream_is_refused_with_file_and_tuple(
    damage: str, joinsim: Command, stream: Path
) -> None:
    apply, words = DAMAGES[damage]
    apply(stream)
    refused(joinsim("run", "--query", QUERY, "--data", stream, "--json"), *words)


@pytest.mark.parametrize("damage", ["NaN", "ids of zero", "backwards"])
def test_a_damaged_stream_is_refused_from_python_too(damage: str, stream: Path) -> None:
    apply, words = DAMAGES[damage]
    apply(stream)
    with pytest.raises(js.DataError) as raised:
        js.run(QUERY, {"s": stream})
    for word in words:
        assert word in str(raised.value)


@pytest.mark.parametrize("kind", [pa.uint64(), pa.int8(), pa.decimal128(38, 0), pa.decimal32(9, 0)])
def test_integers_of_any_type_are_read_where_they_fit(kind: pa.DataType, stream: Path) -> None:
    before = js.run(QUERY, {"s": stream}).verdict
    _column("a", lambda a: pa.array(a.tolist(), kind))(stream)
    after = js.run(QUERY, {"s": stream}).verdict
    assert after.passed
    assert after.expected == before.expected


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        ("x", [1.0, np.nan, 2.0], "tuple 1: x is NaN or infinite"),
        ("x", [1.0, 2.0, np.inf], "tuple 2: x is NaN or infinite"),
        ("x", pa.array([1.0, None, 2.0]), "tuple 1: x is null"),
        ("x", [1, 2, 3], "column 'x' is int64, and should be float64"),
        ("ts", [5, 6, 4], "backwards at tuple 2, from 6 to 4 ns"),
    ],
)
def test_a_stream_in_memory_is_checked_as_it_is_read(column: str, values: Any, words: str) -> None:
    table = pa.table({"ts": [1, 2, 3], "x": [1.0, 2.0, 3.0]} | {column: values})
    data = StreamTable(schema=Schema(stream="T", fields={"x": "float64"}), table=table)
    with pytest.raises(js.DataError, match=words):
        list(data.batches())


def test_a_damaged_column_that_is_only_selected_is_refused(stream: Path) -> None:
    found = load_stream(stream)
    part = stream / "segments" / PART
    with pq.ParquetFile(part) as file:
        column = file.metadata.row_group(0).column(file.schema_arrow.get_field_index("b"))
        begin = column.dictionary_page_offset or column.data_page_offset
        size = column.total_compressed_size
    content = bytearray(part.read_bytes())
    content[begin : begin + size] = b"\xff" * size
    part.write_bytes(content)
    with pytest.raises(js.DataError, match=r"column 'b' is damaged: .*; prepare the stream again"):
        found.values("b")
    pq.write_table(pa.table({"b": [0.5]}), part)
    with pytest.raises(js.DataError, match="column 'b' has 1 values, and the stream 300 tuples"):
        found.values("b")
