"""Where streams are looked for and prepared, what is prepared of them, and which texts compare."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from joins.batch import Schema
from joins.queries.parser import parse_query
from joins.queries.query import JoinQuery, QueryError
from scenarios import scenario_files, streams
from scenarios.preparation import prepare_by_spark
from scenarios.scenario_files import ConfigError
from scenarios.streams import codes_mistake, dictionary_names
from spark_bridge.prepared import PreparedStream

QUERY = "SELECT * FROM S WHERE S.x1 > S.x2 WINDOW AS (SLIDE INTERVAL '1' ON '5')"


def test_streams_are_prepared_where_the_environment_says(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JOINSIM_PREPARED", str(tmp_path / "shared"))
    stream = {"name": "S", "synthetic": {"rows": 9, "fields": {"x": "uniform(1, 5)"}}}
    config = scenario_files.build(
        {"name": "elsewhere", "query": QUERY, "topology": "nested_loop", "streams": [stream]},
        where="this test",
    )
    (prepared,) = prepare_by_spark(config, parse_query(QUERY))
    assert prepared.rows == 9
    assert prepared.path.is_relative_to(tmp_path / "shared")
    assert [path.name for path in tmp_path.iterdir()] == ["shared"]


def test_a_run_prepares_the_columns_that_its_query_reads(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOINSIM_PREPARED", str(tmp_path))
    fields = {"x": "uniform(1, 5)", "y": "uniform(1, 5)", "z": "uniform(1, 5)"}
    stream = {"name": "S", "synthetic": {"rows": 9, "fields": fields}}

    def prepared(selected: str) -> PreparedStream:
        text = QUERY.replace("*", selected)
        config = scenario_files.build(
            {"name": "n", "query": text, "topology": "nested_loop", "streams": [stream]},
            where="this test",
        )
        return prepare_by_spark(config, parse_query(text))[0]

    whole, narrow, y = prepared("*"), prepared("S.id"), prepared("S.y2, S.ts")
    assert whole.columns == ["id", "ts", "x", "y", "z"]
    assert narrow.columns == ["id", "ts", "x"]
    assert y.columns == ["id", "ts", "x", "y"]
    assert y.values("y").equals(whole.values("y"))
    assert len({one.path for one in (whole, narrow, y)}) == 3
    with pytest.raises(QueryError, match=r"SELECT S\.zz: .*did you mean 'z'"):
        prepared("S.zz")


def test_only_folders_that_are_there_are_named_where_a_file_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "REPOSITORY", tmp_path / "site-packages")
    with pytest.raises(ConfigError, match=r"no nope.csv, neither here nor in") as raised:
        streams.find_file(("nope.csv",))
    assert str(tmp_path) not in str(raised.value)


def query(streams: str, where: str) -> JoinQuery:
    window = "WINDOW AS (SLIDE INTERVAL '1' ON '5')"
    return parse_query(f"SELECT * FROM {streams} WHERE {where} {window}")


@pytest.mark.parametrize(
    ("streams", "where", "names"),
    [
        ("A, B", "A.k = B.key", ({"k": "A.k"}, {"key": "A.k"})),
        ("A, B", "A.k = B.k AND A.x <> B.y", ({"k": "A.k", "x": "A.x"}, {"k": "A.k", "y": "A.x"})),
        ("A, B", "A.k = B.k AND A.k <= B.k", ({}, {})),
        ("A, B", "A.k = B.k AND ABS(A.x - B.x) <= 0", ({"k": "A.k"}, {"k": "A.k"})),
        ("S", "S.k1 = S.k2", ({"k": "S.k"},)),
        (
            "A, B, C",
            "A.k = B.k AND B.k = C.k AND A.l = C.l",
            ({"k": "A.k", "l": "A.l"}, {"k": "A.k"}, {"k": "A.k", "l": "A.l"}),
        ),
        ("A, B, C, D", "C.k = D.k AND A.k = B.k AND B.k = C.k", ({"k": "A.k"},) * 4),
        ("A, B, C", "A.k = B.k AND B.k = C.k AND A.k > C.k", ({}, {}, {})),
    ],
)
def test_fields_that_meet_share_a_dictionary_unless_they_are_ordered(
    streams: str, where: str, names: tuple[dict[str, str], ...]
) -> None:
    assert dictionary_names(query(streams, where)) == names


def stream(name: str, **codes: str) -> PreparedStream:
    return PreparedStream(
        name=name,
        path=Path(name),
        rows=1,
        rejected=0,
        rejected_reasons={},
        schema=Schema(stream=name, fields={"k": "int64"}),
        first_ts=0,
        last_ts=0,
        notes=(),
        fingerprint="",
        codes=codes,
    )


@pytest.mark.parametrize(
    ("where", "left", "right", "words"),
    [
        ("A.k < B.k", {"k": "1"}, {"k": "1"}, "A.k < B.k: A.k is text, which = and != alone"),
        ("ABS(A.k - B.k) <= 1", {}, {"k": "1"}, "B.k is text, which = and != alone"),
        ("A.k = B.k", {}, {"k": "1"}, "B.k is text, and A.k is a number"),
        ("A.k = B.k", {"k": "1"}, {"k": "2"}, "prepared apart.*Give the raw files"),
    ],
)
def test_codes_that_mean_nothing_to_each_other_are_refused(
    where: str, left: dict[str, str], right: dict[str, str], words: str
) -> None:
    mistake = codes_mistake(query("A, B", where), [stream("A", **left), stream("B", **right)])
    assert mistake is not None
    assert re.search(words, mistake)


@pytest.mark.parametrize("codes", [{}, {"k": "1"}])
def test_numbers_and_codes_of_one_dictionary_are_compared(codes: dict[str, str]) -> None:
    both = [stream("A", **codes), stream("B", **codes)]
    assert codes_mistake(query("A, B", "A.k != B.k"), both) is None
