"""What a person reads when something is wrong: one sentence with the file and the remedy."""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import joinsim as js
from joins.errors import DataError, OutputError
from spark_bridge.pipeline.pipeline import prepare
from spark_bridge.pipeline.raw_files import inspect_files
from spark_bridge.pipeline.raw_source import RawSource, lay_out
from spark_bridge.query_runs import process_id
from tests.spark_bridge.helpers import prepare_one, write_csv, write_parquet


def good(folder: Path) -> Path:
    return write_parquet(folder / "good.parquet", {"ts": [1, 2], "fare": [1.0, 2.0]})


def truncated(folder: Path) -> Path:
    file = folder / "cut.parquet"
    file.write_bytes(good(folder).read_bytes()[:-20])
    return file


def damaged_footer(folder: Path) -> Path:
    data = bytearray(good(folder).read_bytes())
    data[-8:-4] = b"\xff\xff\xff\x7f"
    (folder / "bad.parquet").write_bytes(data)
    return folder / "bad.parquet"


def written(name: str, data: bytes) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / name).write_bytes(data)
        return folder / name

    return write


def no_rows(folder: Path) -> Path:
    return write_parquet(folder / "none.parquet", {"ts": pa.array([], pa.int64())})


def in_folders(folder: Path) -> Path:
    """As Hive has them, beside a file that would be read alone."""
    (folder / "day=1").mkdir()
    good(folder / "day=1")
    return good(folder).parent


FILES = {
    "missing": (
        lambda folder: good(folder).with_name("god.parquet"),
        "does not exist; did you mean .*good.parquet",
    ),
    "no folder": (
        lambda folder: folder / "nowhere" / "x.csv",
        "does not exist: there is no folder",
    ),
    "empty folder": (lambda folder: folder, "is a folder without CSV or Parquet files"),
    "folders of its own": (in_folders, "has files in folders of its own, as .*day=1/good.parquet"),
    "zero bytes": (written("x.csv", b""), r"is empty \(0 bytes\)"),
    "zero bytes parquet": (written("x.parquet", b""), r"is empty \(0 bytes\)"),
    "header alone": (written("x.csv", b"ts,fare\n"), "has a header but no rows"),
    "header and blank lines": (written("x.csv", b"ts,fare\n\n \n"), "has a header but no rows"),
    "name of other letters": (
        written(os.fsdecode(b"x\xff.csv"), b"ts,fare\n1,2\n"),
        "is not in UTF-8",
    ),
    "no rows": (no_rows, "has no rows"),
    "no header": (written("x.csv", b"1,2.5\n3,4\n"), "has no header: its first line is '1,2.5'"),
    "header of two lines": (
        written("x.csv", b'ts,"fa\nre"\n1,2\n'),
        "x.csv, line 1: the header is not CSV",
    ),
    "open quote": (
        written("x.csv", b'ts,fare\n1,2\n2,"3\n3,4\n'),
        "x.csv, line 3: a quote that begins a column there is not closed",
    ),
    "other delimiter": (
        written("x.csv", b"a;b\n1;2\n"),
        "one column, and ';' in its name: columns are to be separated by commas",
    ),
    "same name twice": (written("x.csv", b"ts,a,a\n1,2,3\n"), "two columns named 'a'"),
    "name of Spark's": (written("x.csv", b"ts,_metadata\n1,2\n"), "a column named '_metadata'"),
    "name of ours": (written("x.csv", b"ts,_place\n1,2\n"), "a column named '_place'"),
    "type of no Spark": (
        lambda folder: write_parquet(
            folder / "x.parquet", {"ts": [1], "a": pa.array([[1]], pa.list_(pa.time64("us")))}
        ),
        r"column 'a' is of type list<.*time64\[us\]>, and Spark cannot read time64\[us\]",
    ),
    "unknown kind": (written("x.json", b"{}"), "is neither CSV nor Parquet; allowed are"),
    "wrong name": (written("x.parquet", b"ts,fare\n1,2\n"), "is not a Parquet file, whatever"),
    "binary": (written("x.csv", b"PK\x03\x04\0\0\0"), "is not text"),
    "utf-16": (written("x.csv", "ts,fare\n1,2".encode("utf-16")), "NUL bytes|not UTF-8"),
    "latin-1": (written("x.csv", "ts,préis\n1,2\n".encode("latin-1")), "is not UTF-8 text"),
    "bad gzip": (written("x.csv.gz", b"\x1f\x8b\x08\x00abc"), "damaged gzip|cannot be read"),
    "bad deflate": (written("x.csv.gz", b"\x1f\x8b\x08" + bytes(7) + b"\x07"), "damaged gzip file"),
    "truncated": (truncated, "truncated Parquet file"),
    "damaged": (damaged_footer, "damaged Parquet file"),
}


@pytest.mark.parametrize("case", FILES)
def test_a_bad_file_is_named_before_spark_is_asked(case: str, tmp_path: Path) -> None:
    make, words = FILES[case]
    path = make(tmp_path)
    with pytest.raises(DataError, match=words) as raised:
        prepare(RawSource(name="R", paths=[path], time="ts"), tmp_path / "out")
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"name": "a/b"}, "stream name 'a/b'"),
        ({"paths": []}, "no file is named"),
        ({"rows": 0}, "rows is 0; it must be 1 or more"),
        ({"fields": ["a", "a"]}, "join field 'a' is named twice"),
    ],
)
def test_a_bad_option_is_refused_at_once(said: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        RawSource(**({"name": "R", "paths": ["x.csv"]} | said))


ASKED: dict[str, tuple[dict[str, Any], str]] = {
    "missing field": (
        {"fields": ["fair"]},
        "join field 'fair' is not in .* did you mean 'fare'.*its columns: at, fare, word",
    ),
    "missing column": ({"columns": ["fair"]}, "column 'fair' is not in .* did you mean 'fare'"),
    "field named id": ({"fields": ["id"]}, "join field 'id' means the tuple's own id"),
    "field of lists": ({"fields": ["tags"]}, "join field 'tags' is of type array"),
    "missing time": (
        {"time": "att"},
        "event time 'att' is not in .*did you mean 'at'.*columns: at",
    ),
    "time of nothing": ({"time": "nope + 1"}, "'nope . 1' is not valid: .UNRESOLVED_COLUMN"),
    "time of text": ({"time": "upper(word)"}, r"time, expression 'upper.word.', is of type string"),
    "time of lists": ({"time": "tags"}, "event time, column 'tags', is of type array"),
    "bad condition": ({"where": "fare >"}, "'fare >' is not valid at line 1, character 6$"),
    "condition of nothing": ({"where": "nope = 1"}, "'nope = 1' is not valid: .UNRESOLVED_COLUMN"),
    "condition is no truth": (
        {"where": "fare"},
        "'fare' is of type double; a condition is true or false",
    ),
    "condition fails": ({"where": "cast(word as int) = 1"}, "CAST_INVALID_INPUT"),
    "condition overflows": ({"where": "int(fare) * 2147483647 > 0"}, "ARITHMETIC_OVERFLOW"),
    "no row selected": ({"where": "fare < -1"}, "no row of .* satisfies 'fare < -1'"),
}


@pytest.mark.parametrize("case", ASKED)
def test_what_cannot_be_done_is_reported_in_one_line(
    spark: Any, case: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    said, words = ASKED[case]
    file = write_parquet(
        tmp_path / "raw.parquet",
        {
            "at": np.array([1, 2], "datetime64[ms]"),
            "fare": [1.0, 2.0],
            "word": ["x", "y"],
            "tags": [["a"], ["b"]],
        },
    )
    with pytest.raises(DataError) as raised:
        prepare_one(tmp_path / "out", spark, **({"paths": [file]} | said))
    message = str(raised.value)
    assert re.search(words, message)
    assert "'R'" in message
    assert "\n" not in message
    assert "at org.apache" not in message
    assert "__joinsim" not in message
    assert not (tmp_path / "out" / "R").exists()
    assert "".join(capfd.readouterr()) == "", "nothing but the exception speaks"


def test_no_time_at_all_lists_the_columns(spark: Any, tmp_path: Path) -> None:
    file = write_csv(tmp_path / "raw.csv", ["a", "b"], [[2007, "10:11:12"], [2008, "x"]])
    with pytest.raises(DataError, match=r"no column of .* holds timestamps.*its columns: a, b"):
        prepare_one(tmp_path / "out", spark, paths=[file])


def test_damaged_pages_are_reported_by_file(spark: Any, tmp_path: Path) -> None:
    file = tmp_path / "raw.parquet"
    pq.write_table(pa.table({"ts": np.random.default_rng(0).integers(0, 2**62, 5000)}), file)
    data = bytearray(file.read_bytes())
    data[4:2000] = b"\xff" * 1996
    file.write_bytes(data)
    with pytest.raises(DataError, match=r"raw.parquet") as raised:
        prepare_one(tmp_path / "out", spark, paths=[file])
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "out" / "R").exists()


def test_when_all_rows_are_rejected_they_are_kept_and_the_reasons_named(
    spark: Any, tmp_path: Path
) -> None:
    file = write_csv(tmp_path / "raw.csv", ["ts", "v"], [[1, "a"], [2, "b"], ["x", ""]])
    with pytest.raises(DataError, match=r"all 3 rows .* v: not a number \(2 times\)") as raised:
        prepare_one(tmp_path / "out", spark, paths=[file], fields=["v"])
    kept = tmp_path / "out" / "R.rejected"
    assert str(kept) in str(raised.value)
    assert pq.read_table(kept)["source_row"].to_pylist() == [1, 2, 3]
    assert not (tmp_path / "out" / "R").exists()
    prepare_one(tmp_path / "out", spark, paths=[file])
    assert not kept.exists(), "they are part of the stream now"


def test_an_output_that_cannot_be_written_is_named(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(DataError, match=r"file/out cannot be written to .*another output folder"):
        prepare_one(tmp_path / "file" / "out", spark, paths=[good(tmp_path)])


def test_a_full_disk_is_named_with_the_remedy(spark: Any, tmp_path: Path) -> None:
    """As a limit on the size of files has it, of Spark's process."""
    numbers = np.random.default_rng(1).integers(0, 2**60, (2, 50_000))
    file = write_parquet(tmp_path / "raw.parquet", {"ts": numbers[0], "v": numbers[1]})
    out, pid = tmp_path / "out", process_id(spark)
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
    try:
        with pytest.raises(OutputError) as raised:
            prepare_one(out, spark, paths=[file], fields=["v"], segment_rows=100_000)
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
    assert str(raised.value).startswith(f"cannot write to {out}, or to Spark's own files in ")
    assert "File too large; raise the limit" in str(raised.value)
    assert not (out / "R").exists()
    assert prepare_one(out, spark, paths=[file], fields=["v"]).rows == 50_000


def test_files_of_one_stream_must_agree(tmp_path: Path) -> None:
    one, two = good(tmp_path), write_parquet(tmp_path / "two.parquet", {"ts": [1], "fair": [1.0]})
    three = write_csv(tmp_path / "three.csv", ["ts", "fare"], [[1, 2]])
    with pytest.raises(DataError, match=r"different columns .only one has fair, fare."):
        prepare(RawSource(name="R", paths=[one, two]), tmp_path / "out")
    with pytest.raises(DataError, match="of one format"):
        prepare(RawSource(name="R", paths=[one, three]), tmp_path / "out")


@pytest.mark.parametrize("other", [pa.timestamp("us"), pa.int64()], ids=str)
@pytest.mark.parametrize("first", ["ns", "other"])
def test_files_of_which_one_has_nanoseconds_are_refused(
    first: str, other: pa.DataType, tmp_path: Path
) -> None:
    for name, kind in {"ns": pa.timestamp("ns"), "other": other}.items():
        column = pa.array([1, 2], pa.int64()).cast(kind)
        pq.write_table(pa.table({"ts": [1, 2], "at": column}), tmp_path / f"{name}.parquet")
    files = [tmp_path / "ns.parquet", tmp_path / "other.parquet"]
    with pytest.raises(
        DataError, match=r"column 'at' is .*; cast it in one of the files"
    ) as raised:
        inspect_files(files if first == "ns" else files[::-1])
    named = [f"timestamp[ns] in {files[0]}", f"{other} in {files[1]}"]
    assert all(text in str(raised.value) for text in named)
    assert len(inspect_files([files[0]] * 2)) == len(inspect_files([files[1]] * 2)) == 2


def test_a_join_field_that_is_not_there_is_answered_with_the_columns_of_the_file() -> None:
    source = RawSource(name="R", paths=["x.csv"], fields=["ix"])
    with pytest.raises(DataError, match=r"'ix' is not in x\.csv; .*its columns: id, x$"):
        lay_out(source, ["id", "x"])


def test_two_streams_of_one_name_are_refused(tmp_path: Path) -> None:
    sources = [RawSource(name=name, paths=[good(tmp_path)]) for name in ("R", "r")]
    with pytest.raises(DataError, match="two streams are named"):
        prepare(sources, tmp_path / "out")


def test_the_folder_where_one_is_has_a_name_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="is a folder without CSV or Parquet files"):
        js.prepare(".")
