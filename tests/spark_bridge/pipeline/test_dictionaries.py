"""Texts become codes that are equal exactly where the texts are, in all streams of a dictionary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import joinsim as js
from joins.errors import DataError
from spark_bridge.pipeline.pipeline import prepare
from spark_bridge.pipeline.raw_source import RawSource
from spark_bridge.prepared import PreparedStream
from tests.spark_bridge.helpers import prepare_one, rejects, tuples, write_csv, write_parquet

WORDS = [
    "IBM",
    "ibm",
    " IBM",
    "IBM ",
    "SPY",
    "Zürich",
    "Zurich",
    "汉",
    "😀",
    "￿",
    "a'b",
    "1",
    "%41",
]


def texts(folder: Path, seed: int, name: str, rows: int) -> Path:
    keys = np.random.default_rng(seed).choice(WORDS, rows).tolist()
    columns = {"ts": np.arange(rows), "k": keys, "n": [str(i % 7) for i in range(rows)]}
    return write_parquet(folder / name, columns)


def meaning(stream: PreparedStream, field: str = "k") -> list[str]:
    """Return the texts of a stream's codes, by the file that lies beside its segments."""
    table = pq.read_table(stream.path.parent / f"codes-{field}.parquet")
    assert table["code"].to_pylist() == list(range(len(table)))
    values = table["value"].to_pylist()
    assert values == sorted(set(values), key=str.encode)
    return [values[code] for code in tuples(stream)[field].to_pylist()]


def test_codes_are_equal_exactly_where_texts_are(spark: Any, tmp_path: Path) -> None:
    a_file, b_file = texts(tmp_path, 1, "a.parquet", 300), tmp_path / "b.csv"
    sources = [
        RawSource(name=name, paths=[file], fields=[key, "n"], codes={key: "k", "n": "n"})
        for name, file, key in (("A", a_file, "k"), ("B", b_file, "word"))
    ]
    rows = [[i, word, i] for i, word in enumerate([*WORDS, "only in B", "", "  "])]
    write_csv(b_file, ["ts", "word", "n"], rows)
    a, b = prepare(sources, tmp_path / "out", spark=spark)
    assert meaning(a) == pq.read_table(a_file)["k"].to_pylist()
    assert meaning(b, "word") == [*WORDS, "only in B"]
    assert rejects(b) == {15: "word: null", 16: "word: null"}
    assert tuples(a)["n"].to_pylist() == [i % 7 for i in range(300)], "numbers stay numbers"
    assert (list(a.codes), list(b.codes)) == (["k"], ["word"])
    assert a.codes["k"] == b.codes["word"]
    assert any("word: 14 texts as their codes" in note and "with A" in note for note in b.notes)

    codes, place = tuples(a)["k"].to_pylist(), a.path.stat().st_ino
    prepare(sources, tmp_path / "out")
    assert a.path.stat().st_ino == place, "nothing has changed, and nothing is done"
    # One text more in the other file, other partitions: the codes of those after it go up by one.
    write_csv(b_file, ["ts", "word", "n"], [*rows, [99, "AAA", 1]])
    a, b = prepare(sources, tmp_path / "out", spark=spark, segment_rows=50)
    after = [word.encode() > b"AAA" for word in meaning(a)]
    assert tuples(a)["k"].to_pylist() == [old + up for old, up in zip(codes, after, strict=True)]
    assert a.codes["k"] == b.codes["word"]


def test_streams_prepared_apart_have_dictionaries_of_their_own(spark: Any, tmp_path: Path) -> None:
    digests = set()
    for name, keys in (("A", ["x", "y"]), ("B", ["y", "z"])):
        file = write_csv(tmp_path / f"{name}.csv", ["ts", "k"], list(enumerate(keys)))
        stream = prepare_one(
            tmp_path / "out", spark, name=name, paths=[file], fields=["k"], codes={"k": "k"}
        )
        assert any("of this stream alone" in note for note in stream.notes)
        digests.add(stream.codes["k"])
    assert len(digests) == 2


def test_text_that_is_ordered_or_compared_with_numbers_is_refused(
    spark: Any, tmp_path: Path
) -> None:
    text = write_csv(tmp_path / "text.csv", ["ts", "k"], [[1, "a"], [2, "b"]])
    number = write_csv(tmp_path / "number.csv", ["ts", "k"], [[1, 1], [2, 2]])
    with pytest.raises(DataError, match=r"k: not a number .* compared with = and != alone"):
        prepare_one(tmp_path / "out", spark, paths=[text], fields=["k"])
    sources = [
        RawSource(name=name, paths=[file], fields=["k"], codes={"k": "A.k"})
        for name, file in (("A", text), ("B", number))
    ]
    with pytest.raises(DataError, match=r"'B': join field 'k' is compared with A.k, .* text"):
        prepare(sources, tmp_path / "out", spark=spark)


def test_a_text_of_parquet_is_a_value_though_it_be_blank(spark: Any, tmp_path: Path) -> None:
    """So the same pairs come from a file as from the table that it has."""
    table = {"k": ["a", "", " ", None, "b"], "n": [1, 2, 3, 4, 5]}
    file = write_parquet(tmp_path / "r.parquet", {"ts": range(5)} | table)
    codes = {"k": "k", "n": "n"}
    stream = prepare_one(
        tmp_path / "out", spark, paths=[file], fields=["k", "n"], codes=codes, time="rows"
    )
    assert meaning(stream) == ["a", "", " ", "b"]
    assert rejects(stream) == {4: "k: null"}
    query = "SELECT * FROM R, S WHERE R.k = S.k WINDOW AS (SLIDE INTERVAL '1' ON '9')"
    prepared, tables = (js.run(query, {"R": left, "S": table}) for left in (stream, table))
    assert prepared.joined.sort_by("R.n").select(["R.n", "S.n", "R.k"]).to_pydict() == {
        "R.n": [1, 2, 3, 5], "S.n": [1, 2, 3, 5], "R.k": ["a", "", " ", "b"]
    }  # fmt: skip
    assert tables.verdict.produced == prepared.verdict.produced == 4
