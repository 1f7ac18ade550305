"""NumPy's arrays have their values whatever their byte order, and their times whatever the unit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from joins.errors import DataError
from joins.queries.parser import parse_query
from scenarios.preparation import prepare_tables
from scenarios.tables import as_table
from spark_bridge.pipeline.raw_files import inspect_files


@pytest.mark.parametrize("kind", [">i2", ">i8", ">f4", ">f8", ">u4"])
def test_numbers_of_the_other_byte_order_have_their_values(kind: str) -> None:
    values = np.array([1, 258, 3], kind)
    records = np.array([(1,), (258,), (3,)], [("x", kind)])
    for table in (as_table({"x": values}, "T"), as_table(records, "T")):
        assert table["x"].to_pylist() == [1, 258, 3]


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"])
def test_numpys_times_are_taken_in_every_unit(unit: str) -> None:
    moments = np.array(["2024-03-01", "NaT", "2025-01-01"], f"datetime64[{unit}]")
    taken = as_table({"at": moments}, "T")["at"].cast(pa.timestamp("ns")).to_numpy()
    assert np.array_equal(taken, moments.astype("datetime64[ns]"), equal_nan=True)


@pytest.mark.parametrize("unit", ["W", "D", "h", "m", "s"])
def test_numpys_durations_are_taken_in_every_unit(unit: str) -> None:
    spans = np.array([1, -2], f"timedelta64[{unit}]")
    taken = as_table({"for": spans}, "T")["for"].cast(pa.duration("ns")).to_numpy()
    assert np.array_equal(taken, spans.astype("timedelta64[ns]"))


def test_numpys_texts_of_any_length_are_texts() -> None:
    texts = np.array(["a", "long enough"], np.dtypes.StringDType())
    assert as_table({"x": texts}, "T")["x"].to_pylist() == ["a", "long enough"]


@pytest.mark.parametrize("kind", ["datetime64[ps]", "complex128", "timedelta64[M]"])
def test_what_arrow_has_no_type_for_is_refused_by_its_own_name(kind: str) -> None:
    with pytest.raises(DataError, match=rf"stream 'T', column 'x': .*{re.escape(kind)}"):
        as_table({"x": np.zeros(2, kind)}, "T")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            pl.DataFrame({"a": [1], "k": pl.Series([2], dtype=pl.Int128)}),
            "column 'k' is of type Int128, which Arrow does not have; cast it",
        ),
        (pl.Series("k", [1], dtype=pl.Int128), "is of type Series, one column: pass a table, or"),
        (pl.Series("k", [1, 2]), "is of type Series, one column: pass a table, or a mapping of"),
        (pa.chunked_array([[1, 2]]), "is of type ChunkedArray, one column: pass a table"),
    ],
)
def test_what_is_no_table_of_arrow_s_is_refused(value: Any, message: str) -> None:
    with pytest.raises(DataError, match=f"stream 'T'.* {message}"):
        as_table(value, "T")


def test_a_relation_that_cannot_be_computed_is_refused_by_its_stream() -> None:
    relation = duckdb.sql("SELECT error('no such meter') AS x FROM range(3)")
    with pytest.raises(DataError, match=r"stream 'T': .*no such meter"):
        as_table(relation, "T")


def test_a_reader_that_fails_is_refused_by_its_own_words_alone() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        raise RuntimeError("the tunnel is closed")
        yield

    reader = pa.RecordBatchReader.from_batches(pa.schema([("x", pa.int64())]), batches())
    with pytest.raises(DataError, match=r"^stream 'T': [^\n]*the tunnel is closed$"):
        as_table(reader, "T")


def test_a_reader_that_is_given_for_several_streams_is_read_once() -> None:
    window = "WINDOW AS (SLIDE INTERVAL '1' ON '2')"
    query = parse_query(f"SELECT * FROM R, S WHERE R.x < S.x {window}")
    reader = pa.table({"x": [3, 1, 2]}).to_reader()
    streams = prepare_tables(query, [reader, reader], [None, None])
    assert [stream.table["x"].to_pylist() for stream in streams] == [[3, 1, 2]] * 2


def test_a_column_of_several_types_is_refused_by_its_name() -> None:
    mixed = pd.DataFrame({"x": [1, "a"]})
    with pytest.raises(DataError, match=r"stream 'T': [^(]*column x[^(]*'a'"):
        as_table(mixed, "T")


@pytest.mark.parametrize("operator", ["=", "<"])
def test_bytes_that_are_no_text_are_refused_by_their_row(operator: str) -> None:
    """Files may call them text all the same, and Arrow does not look."""
    table = pa.table({"x": pa.array([None, b"\xff", b"a"]).view(pa.string())})
    window = "WINDOW AS (SLIDE INTERVAL '1' ON '2')"
    query = parse_query(f"SELECT * FROM T WHERE T.x1 {operator} T.x2 {window}")
    with pytest.raises(DataError, match=r"stream 'T', column 'x': row 1 is b'\\xff', which is not"):
        prepare_tables(query, [table], [None])


@pytest.mark.parametrize("column", ["_arrival", "_Place"])
def test_a_column_named_as_the_recorded_arrival_is_refused(column: str) -> None:
    query = parse_query("SELECT * FROM T WHERE T.x1 < T.x2 WINDOW AS (SLIDE INTERVAL '1' ON '2')")
    with pytest.raises(DataError, match=f"stream 'T' has a column named '{column}', by which"):
        prepare_tables(query, [{"x": [1], column: [2]}], [None])
    again = prepare_tables(query, [{"x": [1]}], [None], ["rows"])
    assert prepare_tables(query, again, [None])[0].delays == (0, 0)


def test_a_device_is_refused_as_what_it_is() -> None:
    with pytest.raises(DataError, match=r"stream 'T': /dev/null is a pipe or a device; pass a "):
        as_table("/dev/null", "T")


def _folder(path: Path, *names: str) -> Path:
    """Return a folder of Parquet files of one row each, whose value is the place of the name."""
    for place, name in enumerate(names):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"x": [place]}), path / name)
    return path


def test_a_folder_has_the_rows_of_its_parquet_files_whatever_lies_beside_them(
    tmp_path: Path,
) -> None:
    names = ["a.parquet", "k=1/b.PARQUET", "part-0", "under/c.pq", "_x.parquet", ".y/z.parquet"]
    folder = _folder(tmp_path, *names)
    for name in ("README.md", "_SUCCESS", ".a.parquet.crc", "notes.txt", "k=1/.DS_Store"):
        (folder / name).write_text("no rows")
    table = as_table(folder, "s")
    assert table["x"].to_pylist() == [0, 1, 2, 3]
    assert table["k"].to_pylist() == [None, 1, None, None]


def test_a_text_beside_parquet_files_is_no_csv(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "a.parquet", "b.parquet")
    (folder / "README.txt").write_text("no rows")
    assert as_table(folder, "s")["x"].to_pylist() == [0, 1]
    assert [file.path.name for file in inspect_files([folder])] == ["a.parquet", "b.parquet"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("b.parquet", "b.parquet': Parquet"),
        ("b.parquet.gz", "b.parquet.gz': Parquet"),
        ("b.csv", "b.csv is CSV, and Parquet is read here"),
    ],
)
def test_a_file_that_stops_a_folder_is_named(tmp_path: Path, name: str, message: str) -> None:
    folder = _folder(tmp_path, "a.parquet")
    (folder / name).write_text("x")
    with pytest.raises(DataError, match=f"stream 's': .*{message}"):
        as_table(folder, "s")


def test_a_folder_without_parquet_files_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"stream 's': {tmp_path} is a folder without Parquet"):
        as_table(tmp_path, "s")


@pytest.mark.parametrize(
    ("mark", "kind"),
    [
        ("_delta_log/0.json", "Delta"),
        ("metadata/v1.metadata.json", "Iceberg"),
        (".hoodie/p", "Hudi"),
    ],
)
def test_a_folder_that_has_rows_deleted_since_is_refused(
    tmp_path: Path, mark: str, kind: str
) -> None:
    folder = _folder(tmp_path, "a.parquet")
    (folder / mark).parent.mkdir()
    (folder / mark).write_text("{}")
    reads: list[Callable[[], object]] = [
        lambda: as_table(folder, "s"),
        lambda: inspect_files([folder]),
    ]
    for read in reads:
        with pytest.raises(DataError, match=f"{folder} is a table of {kind}, whose files also"):
            read()
