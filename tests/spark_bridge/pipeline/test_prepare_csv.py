"""Dirty CSV: every bad row is rejected by its number and for its reason, every other one stays."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.errors import DataError
from spark_bridge.pipeline import quotes
from tests.spark_bridge.helpers import prepare_one, rejects, tuples, write_csv

DIRTY = '''\ufefftime,dist,fare,note,zip
2020-01-01 00:00:05,1.5,10,"a, ""b""",007
2020-01-01 00:00:01,2,11,x,008
bad,3,12,y,1

2020-01-01 00:00:03,abc,13,z,2
2020-01-01 00:00:03,4,,z,3
2020-01-01 00:00:03,NaN,1,z,4
2020-01-01 00:00:03,-inf,99999999999999999999,z,5
too,few
2020-01-01 00:00:03,1,1,z,6,extra
2020-01-01 00:00:03,1e999,1,,
2020-01-01 00:00:03,1d,no,,
2020-01-01 00:00:03, 1 , 1 ,,
,,,,x
'''
REASONS = {
    3: "time: not a timestamp 'bad'",
    4: "dist: not a number 'abc'",
    5: "fare: null",
    6: "dist: NaN",
    7: "dist: infinite; fare: overflows bigint '99999999999999999999'",
    8: "row: malformed, its columns do not match the header",
    9: "row: malformed, its columns do not match the header",
    10: "dist: overflows double '1e999'",
    11: "dist: not a number '1d'; fare: not a number 'no'",
    13: "time: null; dist: null; fare: null",
}


def test_every_bad_row_is_rejected_by_number_and_reason(spark: Any, tmp_path: Path) -> None:
    file = tmp_path / "dirty.csv"
    file.write_text(DIRTY.replace("\n", "\r\n"), newline="")
    stream = prepare_one(tmp_path / "out", spark, paths=[file], fields=["dist", "fare"])
    assert rejects(stream) == REASONS
    assert stream.rejected_reasons["row: malformed, its columns do not match the header"] == 2
    assert stream.rejected_reasons["dist: not a number"] == 2
    assert sum(stream.rejected_reasons.values()) == 14
    table = tuples(stream)
    assert table["dist"].to_pylist() == [2.0, 1.0, 1.5]
    assert table["fare"].to_pylist() == [11, 1, 10]
    assert table["note"].to_pylist() == ["x", None, 'a, "b"']
    assert table["zip"].to_pylist() == ["008", None, "007"], "a code is not a number"
    assert stream.schema.fields == {"dist": "float64", "fare": "int64"}
    kept = pq.read_table(stream.path.parent / "rejected").to_pylist()
    assert kept[1] | {"source_file": None} == {
        "source_file": None,
        "source_row": 4,
        "reason": REASONS[4],
        "source_text": None,
        "time": "2020-01-01 00:00:03",
        "dist": "abc",
        "fare": "13",
        "note": "z",
        "zip": "2",
    }
    assert kept[5]["source_text"] == "too,few"


def test_one_odd_value_does_not_change_a_fields_type(spark: Any, tmp_path: Path) -> None:
    rows = [[at, at * 2, "n/a" if at == 50 else at] for at in range(100)]
    file = write_csv(tmp_path / "raw.csv", ["ts", "whole", "dirty"], rows)
    stream = prepare_one(tmp_path / "out", spark, paths=[file], fields=["whole", "dirty"])
    assert stream.schema.fields == {"whole": "int64", "dirty": "int64"}
    assert rejects(stream) == {51: "dirty: not a number 'n/a'"}


def test_a_value_that_a_time_expression_does_without_is_noted(spark: Any, tmp_path: Path) -> None:
    rows: list[list[Any]] = [[1, 5], [2, 6], ["x", 7]]
    file = write_csv(tmp_path / "raw.csv", ["a", "b"], rows)
    stream = prepare_one(tmp_path / "out", spark, paths=[file], time="coalesce(a, b)")
    assert tuples(stream)["ts"].to_pylist() == [1, 2, 7]
    assert tuples(stream)["a"].to_pylist() == [1, 2, None]
    assert "column a: 1 values are not bigint: null in the stream" in stream.notes


def test_rows_are_numbered_per_file_across_its_blocks(spark: Any, tmp_path: Path) -> None:
    """Small read blocks cut the files many times; row numbers must not notice."""
    rng = np.random.default_rng(3)
    files, expected = [], []
    for number in range(3):
        bad = rng.random(1500) < 0.01
        rows = [[at, "oops" if bad[at] else at, "pad" * 5] for at in range(1500)]
        files.append(write_csv(tmp_path / f"{number}.csv", ["ts", "v", "pad"], rows))
        expected += [(str(files[-1].resolve()), int(at) + 1) for at in np.flatnonzero(bad)]
    packed = tmp_path / "3.CSV.GZ"
    packed.write_bytes(gzip.compress(b"pad,v,ts\nx,1,1\nx,oops,2\n"))
    session = spark.newSession()
    settings = {"maxPartitionBytes": "8192", "openCostInBytes": "1000"}
    old = {name: spark.conf.get(f"spark.sql.files.{name}") for name in settings}
    for name, value in settings.items():
        session.conf.set(f"spark.sql.files.{name}", value)
    stream = prepare_one(
        tmp_path / "out", _Fixed(session), paths=[*files, packed], fields=["v"], segment_rows=2000
    )
    assert {name: spark.conf.get(f"spark.sql.files.{name}") for name in settings} == old
    table = pq.read_table(stream.path.parent / "rejected")
    found = zip(table["source_file"].to_pylist(), table["source_row"].to_pylist(), strict=True)
    assert list(found) == [*expected, (str(packed.resolve()), 2)]
    assert stream.rows == 3 * 1500 + 2 - stream.rejected


class _Fixed:
    """A session whose siblings are itself, so that a test's settings reach the pipeline."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def newSession(self) -> Any:  # noqa: N802  (Spark's name)
        return self._session


def test_other_clocks_are_named(spark: Any, tmp_path: Path) -> None:
    """As the household has it: day first, '?' for what is missing."""
    file = tmp_path / "power.txt"
    file.write_text("Date,Time,Power\n16/12/2006,17:24:00,4.2\n16/12/2006,17:25:00,?\n")
    stream = prepare_one(
        tmp_path / "out",
        spark,
        paths=[file],
        fields=["Power"],
        time="to_timestamp(Date || ' ' || Time, 'd/M/yyyy H:m:s')",
    )
    assert tuples(stream)["ts"].to_pylist() == [1_166_289_840 * 10**9]
    assert rejects(stream) == {2: "Power: not a number '?'"}


def test_tabs_are_the_delimiter_of_tsv(spark: Any, tmp_path: Path) -> None:
    file = tmp_path / "raw.tsv"
    file.write_text("ts\tv\n1\t2,5\n")
    stream = prepare_one(tmp_path / "out", spark, paths=[file])
    assert tuples(stream).to_pylist() == [{"id": 0, "ts": 1, "v": "2,5"}]


def test_a_zone_may_follow_the_minutes(spark: Any, tmp_path: Path) -> None:
    """As Java writes a time of no seconds; Spark reads it only after seconds."""
    file = tmp_path / "raw.csv"
    times = [
        "1970-01-01T01:30+01:00",
        "1970-01-01 00:31Z",
        "1970-01-01 00:32 UTC",
        "1970-01-01T00:33Q",
    ]
    file.write_text("\n".join(["t", *times]))
    stream = prepare_one(tmp_path / "out", spark, paths=[file], time="t")
    assert [ts // 60 // 10**9 for ts in tuples(stream)["ts"].to_pylist()] == [30, 31, 32]
    assert rejects(stream) == {4: "t: not a timestamp '1970-01-01T00:33Q'"}


def test_a_file_is_read_as_its_own_name_says(spark: Any, tmp_path: Path) -> None:
    """Neither the folder that it is in nor the file that a link leads to says how."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "blob").write_bytes(gzip.compress(b"ts\tv\n1\t2\n"))
    (folder / "a.tsv.gz").symlink_to(tmp_path / "blob")
    (folder / "b.csv").write_text("v,ts\n4,3\n")
    stream = prepare_one(tmp_path / "out", spark, paths=[folder], fields=["v"])
    assert tuples(stream).to_pylist() == [{"id": 0, "ts": 1, "v": 2}, {"id": 1, "ts": 3, "v": 4}]


def test_a_row_that_cannot_be_judged_by_the_condition_is_rejected_not_dropped(
    spark: Any, tmp_path: Path
) -> None:
    times = ["2007-01-01 00:00:00", "2008-01-01 00:00:00", "?", "2008-01-01"]
    rows = list(zip(times, [1, 2, 3, "x"], strict=True))
    file = write_csv(tmp_path / "raw.csv", ["t", "v"], rows)
    stream = prepare_one(
        tmp_path / "out", spark, paths=[file], fields=["v"], time="t", where="year(t) = 2007"
    )
    assert tuples(stream)["v"].to_pylist() == [1]
    assert rejects(stream) == {3: "t: not a timestamp '?'"}


def test_bytes_that_are_not_utf8_make_no_texts_equal(spark: Any, tmp_path: Path) -> None:
    """Read as UTF-8, both cities of Latin-1 would have the same code."""
    file = tmp_path / "cities.csv"
    file.write_bytes(
        "ts,city,note\n1,K\u00f6ln,a\n2,K\u00e4ln,b\n3,Bonn,\u00e9\n".encode("latin-1")
    )
    stream = prepare_one(
        tmp_path / "out", spark, paths=[file], fields=["city"], codes={"city": "city"}
    )
    assert stream.rejected_reasons == {"city: not UTF-8 text": 2}
    assert stream.rows == 1, "a note that nobody joins on may be what it is"


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_text_with_line_breaks_is_read_whole(spark: Any, tmp_path: Path, line_end: str) -> None:
    """Of its lines, the second would be a row of its own, and the first and the last cut texts."""
    files = [tmp_path / "notes.csv", tmp_path / "plain.csv"]
    rows = ["ts,dist,note", '1,1,"a, ""b"""', '2,2,"two\n9,9,lines\n"', "3,3,d", "4,4", '5,5,5"']
    files[0].write_bytes(line_end.join([*rows, ""]).encode("utf-8-sig"))
    files[1].write_text('ts,dist,note\n6,6,"Bob" Smith\n')
    stream = prepare_one(
        tmp_path / "out", spark, paths=files, fields=["note"], codes={"note": "note"}
    )
    assert tuples(stream)["ts"].to_pylist() == [1, 2, 3, 5, 6]
    codes = pq.read_table(stream.path.parent / "codes-note.parquet")["value"]
    texts = [codes[code].as_py() for code in tuples(stream)["note"].to_pylist()]
    assert texts == ['a, "b"', "two\n9,9,lines\n", "d", '5"', '"Bob" Smith']
    assert rejects(stream) == {4: "row: malformed, its columns do not match the header"}


@pytest.mark.parametrize("ends", [["\n"], ["\r\n"], ["\n", "\r\n"], ["\r\n", "\n"]])
def test_texts_keep_their_line_breaks_however_rows_end(
    spark: Any, tmp_path: Path, ends: list[str]
) -> None:
    """A CR that ends the last column's row is no part of a text, and one in quotes always is."""
    file = tmp_path / "notes.csv"
    rows = ["dist,note", '1,"a\r\nb"', '2,"a\nb"', " \t", '3,"a\rb"', "4,a"]
    lines = [row + end for row, end in zip(rows, ends * len(rows), strict=False)]
    file.write_bytes("".join(lines).encode())
    stream = prepare_one(
        tmp_path / "out", spark, paths=[file], time="rows", fields=["note"], codes={"note": "note"}
    )
    assert stream.values("note").to_pylist() == ["a\r\nb", "a\nb", "a\rb", "a"]
    assert rejects(stream) == {}


@pytest.mark.parametrize(
    "rows",
    ['2,2,"two\n3,3,c\n4,4,"four"\n', '2,"two\n3,3,c\n', '2,2,"two', '2,2,"two""\n3,3,c\n'],
)
def test_a_quote_that_is_not_closed_is_named(tmp_path: Path, rows: str) -> None:
    """Read as the standard has it, the rows to the next quote would be one text."""
    file = tmp_path / "notes.csv"
    file.write_text('ts,dist,note\n1,1,"a\nb"\n' + rows)
    with pytest.raises(DataError, match=r"notes.csv, line 4: a quote that begins a column there"):
        prepare_one(tmp_path / "out", None, paths=[file], fields=["dist"])


@settings(max_examples=200, deadline=None)
@given(
    rows=st.lists(st.lists(st.text('a,"\n\r', max_size=5), min_size=2, max_size=2), max_size=9),
    last=st.sampled_from(["", "\n"]),
    chunk_bytes=st.integers(1, 40),
)
def test_line_breaks_are_found_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], last: str, chunk_bytes: int
) -> None:
    file = write_csv(tmp_path_factory.mktemp("quotes") / "raw.csv", ["a", "b"], rows)
    file.write_bytes(file.read_bytes().removesuffix(b"\r\n") + last.encode())
    with patch.object(quotes, "_CHUNK_BYTES", chunk_bytes):
        assert quotes.records_span_lines(file, ",") == any(
            set("\r\n") & set(text) for row in rows for text in row
        )
        quotes.write_with_line_feeds(file, ",", file.with_name("copy.csv"))
    copied = file.with_name("copy.csv").read_bytes().decode()
    assert list(csv.reader(io.StringIO(copied, newline=""))) == [["a", "b"], *rows]
    texts = [text for row in rows for text in row]
    assert copied.count("\r") == sum(text.count("\r") for text in texts)


def test_a_time_beyond_int64_by_its_last_digits_is_rejected(spark: Any, tmp_path: Path) -> None:
    times = ["2262-04-11T23:47:16.854775807", "2262-04-11T23:47:16.854775808"]
    file = write_csv(tmp_path / "raw.csv", ["ts", "x"], [[time, 1] for time in times])
    stream = prepare_one(tmp_path / "out", spark, paths=[file], fields=["x"])
    assert tuples(stream)["ts"].to_pylist() == [2**63 - 1]
    assert list(rejects(stream)) == [2]


def test_codes_beside_a_fraction_stay_texts(spark: Any, tmp_path: Path) -> None:
    rows = [[1, "007", "7", 1], [2, "1.5", "1.5", 2]]
    file = write_csv(tmp_path / "raw.csv", ["ts", "code", "number", "x"], rows)
    table = tuples(prepare_one(tmp_path / "out", spark, paths=[file], fields=["x"]))
    assert table["code"].to_pylist() == ["007", "1.5"]
    assert table["number"].to_pylist() == [7.0, 1.5]
