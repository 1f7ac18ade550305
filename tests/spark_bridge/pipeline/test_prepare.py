"""A prepared stream against a plain reference: numpy's stable sort of the rows that are valid."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from joins.batch import Batch
from joins.errors import DataError
from spark_bridge.prepared import ROW_GROUP_ROWS, load_stream
from tests.spark_bridge.helpers import prepare_one, rejects, tuples, write_csv, write_parquet

SORTED = "input was not in time order: sorted; arrival = rows feeds it as it is"
FIRST_MS = 1_577_836_800_000  # 2020-01-01 in UTC

floats = st.one_of(
    st.none(),
    st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf"), 1e300]),
    st.floats(-1e6, 1e6),
)
rows_of_files = st.lists(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.integers(-3, 12)),  # seconds: many ties, little order
            floats,
            st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
            st.text("ab ,\"'", max_size=4),
        ),
        min_size=1,
        max_size=40,
    ),
    min_size=1,
    max_size=3,
)


def reference(files: list[list[tuple[Any, ...]]]) -> tuple[list[tuple[Any, ...]], set[Any]]:
    """Return the stream's (ts, a, b, word) in order, and (file, row) of every rejected row."""
    kept, bad = [], set()
    for number, rows in enumerate(files):
        for at, (second, a, b, word) in enumerate(rows, 1):
            if second is None or a is None or not np.isfinite(a) or b is None:
                bad.add((number, at))
            else:
                kept.append(((FIRST_MS + 1000 * second) * 1_000_000, a, b, word))
    order = np.argsort(np.array([row[0] for row in kept], np.int64), kind="stable")
    return [kept[at] for at in order], bad


def _text(value: Any) -> Any:
    return "" if value is None else value


def stamp(second: int | None) -> Any:
    return None if second is None else np.datetime64(FIRST_MS + 1000 * second, "ms")


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(files=rows_of_files, segment_rows=st.sampled_from([9, 1000]), as_csv=st.booleans())
def test_a_stream_is_the_stable_time_order_of_the_valid_rows(
    spark: Any, files: list[list[tuple[Any, ...]]], segment_rows: int, as_csv: bool
) -> None:
    expected, bad = reference(files)
    if not expected:
        return
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, rows in enumerate(files):
            if as_csv:
                # A trailing column keeps a row without values from being a blank line.
                cells = [
                    ["" if s is None else stamp(s), _text(a), _text(b), word, "x"]
                    for s, a, b, word in rows
                ]
                header = ["at", "a", "b", "word", "end"]
                paths.append(write_csv(Path(folder, f"{number}.csv"), header, cells))
            else:
                columns = {
                    "at": pa.array([stamp(row[0]) for row in rows], pa.timestamp("ms")),
                    "a": pa.array([row[1] for row in rows], pa.float64()),
                    "b": pa.array([row[2] for row in rows], pa.int64()),
                    "word": pa.array([row[3] for row in rows], pa.string()),
                }
                paths.append(write_parquet(Path(folder, f"{number}.parquet"), columns))
        stream = prepare_one(
            Path(folder, "out"),
            spark,
            paths=paths,
            fields=["a", "b"],
            time="at",
            segment_rows=segment_rows,
        )
        table = tuples(stream)
        got = list(zip(*(table[name].to_pylist() for name in ("ts", "a", "b")), strict=True))
        assert got == [row[:3] for row in expected]
        if not as_csv:  # CSV cannot tell an empty text from none
            assert table["word"].to_pylist() == [row[3] for row in expected]
        assert table["id"].to_pylist() == list(range(len(expected)))
        assert (stream.rows, stream.rejected) == (len(expected), len(bad))
        assert (stream.first_ts, stream.last_ts) == (expected[0][0], expected[-1][0])
        assert stream.schema.fields == {"a": "float64", "b": "int64"}
        if bad:
            table = pq.read_table(stream.path.parent / "rejected")
            numbers = {str(path.resolve()): number for number, path in enumerate(paths)}
            found = zip(table["source_file"].to_pylist(), table["source_row"].to_pylist())  # noqa: B905
            assert [(numbers[file], row) for file, row in found] == sorted(bad)


def test_segments_are_numbered_through_and_readable_by_anyone(spark: Any, tmp_path: Path) -> None:
    """Some 20 segments: file names sort into stream order, ids run through, engines agree."""
    rng = np.random.default_rng(7)
    at = rng.integers(0, 3000, 20_000)
    file = write_parquet(
        tmp_path / "raw.parquet",
        {"at": pa.array(at.astype("datetime64[s]")), "v": rng.random(20_000)},
    )
    stream = prepare_one(tmp_path / "out", spark, paths=[file], fields=["v"])
    parts = sorted(stream.path.iterdir())
    assert [part.name for part in parts] == [f"part-{n:05d}.parquet" for n in range(len(parts))]
    assert len(parts) >= 20
    ids = np.concatenate([pq.read_table(part)["id"].to_numpy() for part in parts])
    assert np.array_equal(ids, np.arange(20_000))
    table = tuples(stream)
    assert np.array_equal(table["ts"].to_numpy(), np.sort(at) * 1_000_000_000)
    query = f"select count(*), sum(v), max(id) from '{stream.path}/*.parquet'"
    (seen,) = duckdb.connect().execute(query).fetchall()
    by_spark = (
        spark.read.parquet(str(stream.path)).selectExpr("count(*)", "sum(v)", "max(id)").first()
    )
    assert seen[0] == by_spark[0] == 20_000
    assert seen[1] == pytest.approx(by_spark[1])
    assert seen[2] == by_spark[2] == 19_999


def test_row_groups_are_bounded(spark: Any, tmp_path: Path) -> None:
    rows = 3 * ROW_GROUP_ROWS // 2
    file = write_parquet(tmp_path / "raw.parquet", {"ts": np.arange(rows), "v": np.zeros(rows)})
    stream = prepare_one(tmp_path / "out", spark, paths=[file], segment_rows=10**6)
    (part,) = stream.path.iterdir()
    about = pq.ParquetFile(part).metadata
    groups = [about.row_group(group).num_rows for group in range(about.num_row_groups)]
    assert len(groups) > 1
    assert max(groups) <= ROW_GROUP_ROWS
    assert about.row_group(0).column(0).compression == "ZSTD"


@pytest.mark.parametrize(
    ("column", "said", "expected"),
    [
        (pa.array([3, 1, 2], pa.int64()), {}, [1, 2, 3]),
        (pa.array([3, 1, 2], pa.int32()), {}, [1, 2, 3]),
        (pa.array([1_609_459_200.0, 1.0, -0.0], pa.float64()), {}, [0, 1, 1_609_459_200]),
        (pa.array([1.6, 0.4]), {"time": "t * 1e9"}, [400_000_000, 1_600_000_000]),
        (pa.array([2**62 + 1, -3]).cast(pa.decimal128(25, 2)), {}, [-3, 2**62 + 1]),
        (
            pa.array([1_577_836_800_123_456_789, -1, 1001], pa.timestamp("ns")),
            {},
            [-1, 1001, 1_577_836_800_123_456_789],
        ),
        (
            pa.array([20, 10, -1], pa.date32()),
            {},
            [-86_400 * 10**9, 864_000 * 10**9, 1_728_000 * 10**9],
        ),
        (
            pa.array(["2020-01-01 00:00:00.000000007", "2020-01-01", "2020-01-01T01:00:00+01:00"]),
            {},
            [FIRST_MS * 10**6, FIRST_MS * 10**6, FIRST_MS * 10**6 + 7],
        ),
        (
            pa.array([5, 4, 3], pa.timestamp("us")),
            {"time": "t - timestamp_ntz'1970-01-01 00:00:00'"},
            [3000, 4000, 5000],
        ),
    ],
)
def test_event_time_is_exact_in_every_type(
    spark: Any, tmp_path: Path, column: pa.Array, said: dict[str, Any], expected: list[int]
) -> None:
    file = write_parquet(tmp_path / "raw.parquet", {"t": column})
    stream = prepare_one(tmp_path / "out", spark, paths=[file], **({"time": "t"} | said))
    assert tuples(stream)["ts"].to_pylist() == expected


FRACTION = "ts: not a whole number of nanoseconds"


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        (pa.array([7.0, 1.5, 1e-20, 2.0**62, 2.0**63]), ["1.5", "1.0E-20"]),
        (pa.array([7, 1.5, -0.25, 2.0**62, 2.0**63], pa.float32()), ["1.5", "-0.25"]),
        (
            pa.array(["7", "1.5", "0.01", f"{2**62}", f"{2**63}"]).cast(pa.decimal128(25, 2)),
            ["1.50", "0.01"],
        ),
    ],
)
def test_a_time_between_two_nanoseconds_is_rejected(
    spark: Any, tmp_path: Path, column: pa.Array, shown: list[str]
) -> None:
    file = write_parquet(tmp_path / "raw.parquet", {"ts": column})
    stream = prepare_one(tmp_path / "out", spark, paths=[file])
    assert tuples(stream)["ts"].to_pylist() == [7, 2**62]
    reasons = {row: f"{FRACTION} '{text}'" for row, text in enumerate(shown, 2)}
    assert rejects(stream) == reasons | {5: "ts: overflows int64 nanoseconds"}


def test_one_fraction_leaves_the_other_times_of_a_csv_file_exact(
    spark: Any, tmp_path: Path
) -> None:
    texts = [f"{2**62 + 1}", "3.0", "1e3", "1.5", f"{2**61 + 1}.5", "1e-20", "", "1e30", "x"]
    file = write_csv(tmp_path / "raw.csv", ["ts", "v"], [[text, 1] for text in texts])
    stream = prepare_one(tmp_path / "out", spark, paths=[file])
    assert tuples(stream)["ts"].to_pylist() == [3, 1000, 2**62 + 1]
    assert rejects(stream) == {
        4: f"{FRACTION} '1.5'",
        5: f"{FRACTION} '{texts[4]}'",
        6: f"{FRACTION} '1e-20'",
        7: "ts: null",
        8: "ts: overflows int64 nanoseconds",
        9: "ts: not a number 'x'",
    }


def test_text_of_nanoseconds_keeps_them_in_csv(spark: Any, tmp_path: Path) -> None:
    rows = [["2020-01-01 00:00:00.000000012", 1], ["2020-01-01 00:00:00.0000000115", 2]]
    file = write_csv(tmp_path / "raw.csv", ["t", "v"], rows)
    stream = prepare_one(tmp_path / "out", spark, paths=[file], fields=["v"])
    assert [ts - FIRST_MS * 10**6 for ts in tuples(stream)["ts"].to_pylist()] == [11, 12]


def test_the_years_can_be_laid_over_each_other(spark: Any, tmp_path: Path) -> None:
    """An interval as event time, and a condition that makes two streams of one file."""
    days = np.array(["2007-01-02", "2008-01-01", "2007-01-01", "2008-01-02"], "datetime64[ms]")
    file = write_parquet(tmp_path / "raw.parquet", {"date time": pa.array(days), "v": range(4)})
    time = "`date time` - date_trunc('year', `date time`)"
    for year, values in ((2007, [2, 0]), (2008, [1, 3])):
        where = f"year(`date time`) = {year}"
        stream = prepare_one(
            tmp_path / "out", spark, paths=[file], fields=["v"], time=time, where=where
        )
        assert tuples(stream)["v"].to_pylist() == values
        assert tuples(stream)["ts"].to_pylist() == [0, 86_400 * 10**9]
        assert SORTED in stream.notes or year == 2008


def test_a_limit_keeps_the_first_in_time(spark: Any, tmp_path: Path) -> None:
    ts = np.random.default_rng(1).permutation(50)
    file = write_parquet(tmp_path / "raw.parquet", {"ts": ts})
    stream = prepare_one(tmp_path / "out", spark, paths=[file], rows=7, segment_rows=10)
    assert tuples(stream)["ts"].to_pylist() == list(range(7))
    assert stream.rows == 7
    assert "the first 7 of 50 valid rows, by event time" in stream.notes


@pytest.mark.parametrize(
    ("ts", "note"),
    [
        ([1, 2, 3, 4, 5, 6], None),
        ([4, 5, 6, 1, 2, 3], SORTED),
        ([1, 3, 2, 4, 5, 6], SORTED),
        ([1, 1, 1, 2, 3, 3], "3 timestamps repeated: kept, ordered by source row"),
    ],
)
def test_disorder_and_repeats_are_noted_and_only_they(
    spark: Any, tmp_path: Path, ts: list[int], note: str | None
) -> None:
    file = write_parquet(tmp_path / "raw.parquet", {"ts": ts, "row": range(len(ts))})
    stream = prepare_one(tmp_path / "out", spark, paths=[file], segment_rows=3)
    notes = [note for note in stream.notes if "order" in note]
    assert notes == ([note] if note else [])
    order = sorted(range(len(ts)), key=lambda row: (ts[row], row))
    assert tuples(stream)["row"].to_pylist() == order


@pytest.mark.parametrize("in_order", [True, False])
def test_a_bucket_has_rows_of_two_files(spark: Any, tmp_path: Path, in_order: bool) -> None:
    """Spark reads the larger file first."""
    ts = np.arange(1000)
    if not in_order:
        ts[[3, 5]] = ts[[5, 3]]
    files = [
        write_parquet(tmp_path / "a.parquet", {"ts": ts[:100]}),
        write_parquet(tmp_path / "b.parquet", {"ts": ts[100:]}),
    ]
    stream = prepare_one(tmp_path / "out", spark, paths=files, segment_rows=600)
    assert tuples(stream)["ts"].to_pylist() == sorted(ts)
    assert (SORTED in stream.notes) is not in_order


def test_times_at_which_all_rows_are_rejected_are_no_segments(spark: Any, tmp_path: Path) -> None:
    valid = [*range(40, 60), *range(80, 90)]
    values = [float(ts) if ts in valid else None for ts in range(100)]
    file = write_parquet(tmp_path / "raw.parquet", {"ts": range(100), "v": values})
    stream = prepare_one(tmp_path / "out", spark, paths=[file], fields=["v"], segment_rows=10)
    assert tuples(stream)["ts"].to_pylist() == valid
    assert stream.rejected == 70
    assert SORTED not in stream.notes
    assert all(pq.read_metadata(part).num_rows for part in stream.path.glob("*.parquet"))


@pytest.mark.parametrize("segment_rows", [300, 600, 2000])
@pytest.mark.parametrize(("last", "notes"), [(6, []), (4, [SORTED])])
def test_the_order_is_that_of_valid_rows_through_all_files(
    spark: Any, tmp_path: Path, segment_rows: int, last: int, notes: list[str]
) -> None:
    """Spark reads the larger file first; rows that are rejected are in no order."""
    files = [
        write_parquet(tmp_path / "a.parquet", {"ts": [1, 9, 2], "v": [0.0, None, 1.0]}),
        write_parquet(
            tmp_path / "b.parquet", {"ts": [0, *[3] * 900, 5, last], "v": [None, *range(902)]}
        ),
    ]
    stream = prepare_one(
        tmp_path / "out", spark, paths=files, fields=["v"], segment_rows=segment_rows
    )
    assert [note for note in stream.notes if "in time order" in note] == notes
    assert tuples(stream)["ts"].to_pylist() == sorted([1, 2, *[3] * 900, 5, last])


@pytest.mark.parametrize("segment_rows", [3, 100])
@pytest.mark.parametrize(
    ("arrival", "arrives"),
    [("rows", [20, 30, 30, 30, 40, 40]), ("came", [21, 33, 31, 32, 41, 30])],
)
def test_the_order_of_arrival_is_recorded(
    spark: Any, tmp_path: Path, segment_rows: int, arrival: str, arrives: list[int]
) -> None:
    columns = {"ts": [20, 30, 10, 25, 40, 35], "came": [21, 33, 31, 32, 41, 30]}
    file = write_parquet(tmp_path / "raw.parquet", columns)
    stream = prepare_one(
        tmp_path / "out", spark, paths=[file], arrival=arrival, segment_rows=segment_rows
    )
    got = tuples(stream)
    assert got["ts"].to_pylist() == sorted(columns["ts"])
    by_row = got.sort_by("_place")
    assert by_row["ts"].to_pylist() == columns["ts"]
    assert by_row["_arrival"].to_pylist() == arrives
    late = [came - ts for came, ts in zip(arrives, columns["ts"], strict=True)]
    assert stream.delays == (min(late), max(late)) == load_stream(stream.path.parent).delays
    assert not [note for note in stream.notes if "sorted" in note]


@pytest.mark.parametrize("segment_rows", [3, 100])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_order_of_the_rows_may_be_the_event_time(
    spark: Any, tmp_path: Path, segment_rows: int, kind: str
) -> None:
    """Through all files, whatever columns there are; a rejected row has its number, too."""
    files = []
    parts: list[list[Any]] = [[3, 1, None, 2], [9, 8, 7]]
    for place, values in enumerate(parts):
        columns = {"ts": [50] * len(values), "v": values}
        path = tmp_path / f"{place}.{kind}"
        if kind == "csv":
            files.append(write_csv(path, list(columns), list(zip(*columns.values(), strict=True))))
        else:
            files.append(write_parquet(path, columns))
    how: dict[str, Any] = {"paths": files, "time": "rows", "fields": ["v"]}
    stream = prepare_one(tmp_path / "out", spark, segment_rows=segment_rows, **how)
    got = tuples(stream)
    assert got["ts"].to_pylist() == [0, 1, 3, 4, 5, 6]
    assert got["v"].to_pylist() == [3, 1, 2, 9, 8, 7]
    assert got["source_ts"].to_pylist() == [50] * 6
    assert (stream.time, stream.rejected) == ("rows", 1)


def test_an_arrival_that_is_not_there_is_refused_with_the_nearest(
    spark: Any, tmp_path: Path
) -> None:
    file = write_parquet(tmp_path / "raw.parquet", {"ts": [1, 2], "came": [1, 2]})
    with pytest.raises(DataError, match=r"arrival 'cam' is not in .* did you mean 'came'"):
        prepare_one(tmp_path / "out", spark, paths=[file], arrival="cam")


def test_source_columns_named_like_ours_make_way(spark: Any, tmp_path: Path) -> None:
    file = write_parquet(
        tmp_path / "raw.parquet",
        {"ID": ["x", "y"], "ts": [2, 1], "key": [1.5, 2.5], "v": [10, 20], "id.orig_h": [7, 8]},
    )
    stream = prepare_one(tmp_path / "out", spark, paths=[file], fields=["v", "id.orig_h"])
    rows = tuples(stream).to_pylist()
    assert rows[0] == {
        "id": 0, "ts": 1, "source_ID": "y", "key": 2.5, "v": 20, "id.orig_h": 8,
    }  # fmt: skip
    assert "the source's own column ID is named source_ID" in stream.notes
    assert stream.own_names == {"source_ID": "ID"}
    assert load_stream(stream.path.parent) == stream
    batch = Batch.from_arrow(tuples(stream), stream.schema)
    assert batch.fields["v"].tolist() == [20, 10]


@pytest.mark.parametrize(
    "name", ["{value}", "a`b", "a'b", 'a"b', "a\\b", "a.b", "$a b", "count(*)"]
)
def test_a_column_may_have_any_name(name: str, spark: Any, tmp_path: Path) -> None:
    file = write_parquet(tmp_path / "raw.parquet", {"ts": [1, 2, 3], name: ["3", "y", "4"]})
    stream = prepare_one(tmp_path / "out", spark, paths=[file], fields=[name])
    assert [row[name] for row in tuples(stream).to_pylist()] == [3, 4]
    assert rejects(stream) == {2: f"{name}: not a number 'y'"}


def test_columns_named_like_those_of_rejected_rows_make_way(spark: Any, tmp_path: Path) -> None:
    columns = ["ts", "reason", "raw_reason"]
    file = write_csv(tmp_path / "raw.csv", columns, [[1, "a", "b"], [2, "a", "b"], ["x", "c", "d"]])
    stream = prepare_one(tmp_path / "out", spark, paths=[file], time="ts")
    (rejected,) = pq.read_table(stream.path.parent / "rejected").to_pylist()
    assert rejected["reason"].startswith("ts: ")
    assert (rejected["raw_reason_"], rejected["raw_reason"]) == ("c", "d")


def test_join_fields_of_other_types_become_numbers(spark: Any, tmp_path: Path) -> None:
    file = write_parquet(
        tmp_path / "raw.parquet",
        {
            "ts": [1, 2],
            "when": pa.array([1, 2], pa.timestamp("ns")),
            "yes": [True, False],
            "small": pa.array([1, 2], pa.int8()),
            "single": pa.array([0.1, 0.2], pa.float32()),
            "money": pa.array(["1.50", "2.25"]).cast(pa.decimal128(9, 2)),
            "huge": pa.array([1, 2**64 - 1], pa.uint64()),
        },
    )
    fields = ["when", "yes", "small", "single", "money", "huge"]
    stream = prepare_one(tmp_path / "out", spark, paths=[file], fields=fields)
    batch = Batch.from_arrow(tuples(stream), stream.schema)
    assert {name: column[0] for name, column in batch.fields.items()} == {
        "when": 1, "yes": 1, "small": 1, "single": np.float32(0.1), "money": 1.5, "huge": 1,
    }  # fmt: skip
    assert rejects(stream) == {2: "huge: overflows int64 '18446744073709551615'"}
    assert "join field money: decimal(9,2) as float64, which keeps 15 digits" in stream.notes


def test_texts_of_parquet_are_what_they_are_in_a_table(spark: Any, tmp_path: Path) -> None:
    """Text that is compared with = alone is text, digits too; what is ordered may be times."""
    table = {
        "came": ["1970-01-01T00:00:02", "1970-01-01T00:00:01Z", "z"],
        "zip": ["01", "1", "1.0"],
    }
    file = write_parquet(tmp_path / "raw.parquet", table)
    stream = prepare_one(
        tmp_path / "out",
        spark,
        paths=[file],
        fields=["zip", "came"],
        codes={"zip": "zip"},
        time="rows",
        arrival="came",
    )
    assert stream.values("zip").to_pylist() == ["01", "1"]
    assert tuples(stream)["came"].to_pylist() == [2 * 10**9, 10**9]
    assert tuples(stream)["_arrival"].to_pylist() == [2 * 10**9, 10**9]
    assert list(rejects(stream)) == [3]


def test_times_of_day_and_durations_are_nanoseconds(spark: Any, tmp_path: Path) -> None:
    """As of the same columns in memory; Spark knows no times of day in milliseconds at all."""
    kinds = [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")]
    kinds += [pa.duration(unit) for unit in ("s", "ms", "us", "ns")]
    columns = {f"c{at}": pa.array([5, None, 7], kind) for at, kind in enumerate(kinds)}
    columns["word"] = pa.array(["a", "b", "a"]).dictionary_encode()
    table = pa.table({"ts": [0, 1, 2]} | columns)
    pq.write_table(table, tmp_path / "r.parquet")
    stream = prepare_one(tmp_path / "out", spark, paths=[tmp_path / "r.parquet"], fields=["c0"])
    assert rejects(stream) == {2: "c0: null"}
    got = tuples(stream)
    for at, ns in enumerate([10**9, 10**6, 1000, 1] * 2):
        assert got[f"c{at}"].to_pylist() == [5 * ns, 7 * ns]
    assert got["word"].to_pylist() == ["a", "a"]
    assert "column c7: times of day and durations as int64 nanoseconds" in stream.notes


def test_what_a_column_loses_is_noted(spark: Any, tmp_path: Path) -> None:
    fine = pa.array([1001, 2000], pa.timestamp("ns"))
    file = write_parquet(tmp_path / "raw.parquet", {"ts": [1, 2], "fine": fine})
    note = "column fine: 1 timestamps cut to the microsecond"
    assert note in prepare_one(tmp_path / "out", spark, paths=[file]).notes
    assert note not in prepare_one(tmp_path / "out", spark, paths=[file], columns=[]).notes
    whole = prepare_one(tmp_path / "out", spark, paths=[file], fields=["fine"])
    assert tuples(whole)["fine"].to_pylist() == [1001, 2000]
    assert note not in whole.notes
    rows = [[1, "2020-01-01 00:00:00.0000001"], [2, "2020-01-01 00:00:00"]]
    file = write_csv(tmp_path / "raw.csv", ["ts", "fine"], rows)
    stream = prepare_one(tmp_path / "out", spark, paths=[file])
    assert tuples(stream)["fine"].to_pylist() == [row[1] for row in rows], "it stays text"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_stream_has_the_columns_that_it_is_asked_for(
    spark: Any, tmp_path: Path, ending: str
) -> None:
    """Rejected rows have all of them, and times and conditions may need any."""
    header, path = ["at", "ID", "v", "w", "word"], tmp_path / f"raw.{ending}"
    rows: list[list[Any]] = [
        [3, 7, 1.5, "0.5", "x"],
        [1, 8, 2.5, "2.5", "y"],
        [2, 9, None, "1", "z"],
    ]
    rows.append([4, 9, 3.5, "9.5", "left out"])
    if ending == "csv":
        write_csv(path, header, rows)
    else:
        write_parquet(path, dict(zip(header, zip(*rows, strict=True), strict=True)))
    said: dict[str, Any] = {
        "paths": [path],
        "time": "at * 10",
        "where": "double(w) < 9",
        "fields": ["v"],
    }
    whole = prepare_one(tmp_path / "whole", spark, **said)
    narrow = prepare_one(tmp_path / "narrow", spark, **said, columns=["source_ID"])
    assert whole.columns == ["id", "ts", "at", "source_ID", "v", "w", "word"]
    assert narrow.columns == ["id", "ts", "source_ID", "v"]
    assert narrow.fingerprint != whole.fingerprint
    assert tuples(narrow).equals(tuples(whole).select(narrow.columns))
    assert tuples(narrow)["source_ID"].to_pylist() == [8, 7]
    assert rejects(narrow) == {3: "v: null"}
    (bad,) = pq.read_table(narrow.path.parent / "rejected").to_pylist()
    assert bad["word"] == "z"
    nothing = prepare_one(tmp_path / "nothing", spark, **said, columns=[])
    assert nothing.columns == ["id", "ts", "v"]
    assert "the source's own column ID is named source_ID" not in nothing.notes


def test_one_row_is_a_stream(spark: Any, tmp_path: Path) -> None:
    file = write_csv(tmp_path / "one.csv", ["ts", "v"], [[5, 1]])
    stream = prepare_one(tmp_path / "out", spark, paths=[file], fields=["v"])
    assert tuples(stream).to_pylist() == [{"id": 0, "ts": 5, "v": 1}]
    assert stream.first_ts == stream.last_ts == 5


def test_files_whose_types_differ_are_widened(spark: Any, tmp_path: Path) -> None:
    """Published months of one table come with a column integer here and floating there."""
    one = write_parquet(tmp_path / "1.parquet", {"ts": [3], "v": pa.array([1], pa.int32())})
    two = write_parquet(tmp_path / "2.parquet", {"v": pa.array([0.5]), "ts": [2]})
    stream = prepare_one(tmp_path / "out", spark, paths=[one, two], fields=["v"])
    assert tuples(stream).to_pylist() == [
        {"id": 0, "ts": 2, "v": 0.5},
        {"id": 1, "ts": 3, "v": 1.0},
    ]


def test_paths_may_have_any_name(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "a [b] é%20#{c}"
    folder.mkdir()
    file = write_csv(folder / "_x*?.csv", ["ts", "v"], [[1, 2]])
    stream = prepare_one(folder / "out: ü", spark, paths=[file], fields=["v"])
    assert tuples(stream)["v"].to_pylist() == [2]
