"""What a person gets wrong about an interval join, and what is answered."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tests.end_to_end.conftest import Command, Said, write_csv, write_prepared

QUERY = (
    "SELECT * FROM A, B WHERE A.k = B.k "
    "AND B.ts BETWEEN A.ts - INTERVAL '2 s' AND A.ts + INTERVAL '1 s'"
)


@pytest.fixture
def streams(tmp_path: Path) -> tuple[object, ...]:
    """Return options that name two prepared streams of 200 tuples, a second apart, nine keys."""
    for seed, name in enumerate("AB"):
        keys = np.random.default_rng(seed).integers(0, 9, 200)
        write_prepared(tmp_path / name, {"k": keys}, ts=np.arange(200) * 1_000_000_000)
    return ("--data", tmp_path / "A", "--data", tmp_path / "B", "--topology", "hp_oij")


def test_files_are_of_the_streams_that_they_name(
    joinsim: Command, streams: tuple[object, ...], tmp_path: Path
) -> None:
    a, b, kind = tmp_path / "A", tmp_path / "B", streams[-2:]
    in_order = joinsim("run", "--query", QUERY, *streams, "--json").json["digest"]
    for data in (["B=B", "A=A"], [f"B={b}", a], [a, f"B={b}"]):
        words = [word for one in data for word in ("--data", one)]
        said = joinsim("run", "--query", QUERY, *words, *kind, "--json")
        assert said.json["digest"] == in_order
    for data, message in (
        (["A=A", "A=B"], "--data is given twice for A"),
        (["A=A", "C=B"], "the query has no stream C; it has A, B"),
        (["A=A", "B=B", "A"], "give one file for each stream"),
        (["A=A"], "the query has 2 stream(s), A, B, but data is given for 1"),
    ):
        words = [word for one in data for word in ("--data", one)]
        refused(joinsim("run", "--query", QUERY, *words, *kind, "--json"), message)
    one = write_csv(tmp_path / "one.csv", ["2024-01-01,1,1"])
    said = joinsim("run", "--query", QUERY, "--data", one, "--time", "t", *kind, "--json")
    refused(said, "the query has 2 stream(s), A, B, but data is given for 1")


def refused(said: Said, *expected: str) -> None:
    assert (said.code, said.out) == (3, "")
    assert "Traceback" not in said.err
    for words in expected:
        assert words in said.err


def test_a_lower_end_above_the_upper_one_is_refused(
    joinsim: Command, streams: tuple[object, ...]
) -> None:
    query = QUERY.replace("- INTERVAL '2 s'", "+ INTERVAL '2 s'")
    said = joinsim("run", "--query", query, *streams, "--json")
    refused(said, "first end is after its second")


def test_a_window_join_system_says_that_the_query_has_an_interval(
    joinsim: Command, streams: tuple[object, ...]
) -> None:
    said = joinsim("run", "--query", QUERY, *streams[:-1], "spo_join", "--json")
    refused(said, "joins over windows", "interval")


def test_text_is_compared_for_equality_and_not_put_in_order(
    spark: object, joinsim: Command, tmp_path: Path
) -> None:
    lines = [f"2024-01-01 00:00:{i:02},{name},1.5" for i, name in enumerate(["IBM", "SPY", "BAC"])]
    write_csv(tmp_path / "A.csv", lines)
    write_csv(tmp_path / "B.csv", lines[::-1])
    query = QUERY.replace("A.k = B.k", "A.a = B.a")
    data = ("--data", "A.csv", "--data", "B.csv", "--topology", "kp_oij")
    said = joinsim("run", "--query", query, *data, "--json")
    assert said.code == 0, said.err
    assert said.json["verdict"]["produced"] == len(lines)
    said = joinsim("run", "--query", query.replace("=", "= B.a AND A.a <="), *data, "--json")
    refused(said, "A.csv", "a: not a number", "compared with = and != alone")


def test_without_watermarks_state_that_grows_for_ever_must_be_asked_for(
    joinsim: Command, streams: tuple[object, ...]
) -> None:
    asked = ("run", "--query", QUERY, *streams, "--set", "feeding.watermarks=false", "--json")
    refused(joinsim(*asked), "feeding.watermarks", "feeding.unbounded_state")
    said = joinsim(*asked, "--set", "feeding.unbounded_state=true")
    assert said.code == 0, said.err
    assert said.json["verdict"]["exact"] is True


def test_watermarks_that_run_backwards_are_counted_and_ignored(
    joinsim: Command, streams: tuple[object, ...]
) -> None:
    """A late tuple that an emitter holds back makes one: it promises less than before."""
    disorder = ("feeding.disorder=20 s", "feeding.watermark_lag=1 s", "feeding.batch_rows=5")
    gathering = ("batch_rows=32", "linger_turns=2")
    options = [option for one in (*disorder, *gathering) for option in ("--set", one)]
    said = joinsim("run", "--query", QUERY, *streams, *options, "--json")
    assert said.code == 0, said.err
    assert said.json["verdict"]["late"] > 0
    assert said.json["collectors"]["backward_watermarks"] > 0


def test_a_source_that_never_starts_leaves_nothing_to_join(
    joinsim: Command, streams: tuple[object, ...], tmp_path: Path
) -> None:
    """Its partner's tuples still pass: event time goes on without it."""
    far = np.arange(200) * 1_000_000_000 + 10**15
    write_prepared(tmp_path / "late" / "B", {"k": np.zeros(200, np.int64)}, ts=far)
    data = ("--data", tmp_path / "A", "--data", tmp_path / "late" / "B", "--topology", "hp_oij")
    said = joinsim("run", "--query", QUERY, *data, "--json")
    assert said.code == 2, said.err
    assert said.json["tuples"] == 400
    assert said.json["verdict"]["produced"] == 0


def test_a_generator_without_an_end_in_sight_is_refused(joinsim: Command) -> None:
    said = joinsim("run", "oij-w1", "--set", "streams.0.synthetic.rows=1000000000000000", "--json")
    refused(said, "streams.0.synthetic.rows", "less than or equal to 10000000000")


def test_a_source_that_may_never_end_is_refused(
    joinsim: Command, streams: tuple[object, ...], tmp_path: Path
) -> None:
    pipe = tmp_path / "endless.csv"
    os.mkfifo(pipe)
    data = ("--data", tmp_path / "A", "--data", pipe, "--topology", "hp_oij")
    said = joinsim("run", "--query", QUERY, *data, "--json")
    refused(said, str(pipe), "may never start or never end", "in a file")
