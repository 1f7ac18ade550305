"""The Flink adapter: what it says where Flink is missing, and what it asks and makes of it.

A small program stands for Flink: the adapter starts it as it starts Flink's Python.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from actors.feed import StreamFile
from joins.queries.parser import parse_query
from joins.queries.query import JoinQuery
from scenarios.engines.flink_engine import PYTHON_VARIABLE, Flink, join
from spark_bridge.engines import EngineFailed, Totals
from tests.spark_bridge.sql.test_native import stream

INTERVAL = (
    "SELECT * FROM R, S WHERE R.y = S.y "
    "AND S.ts BETWEEN R.ts - INTERVAL '3 ns' AND R.ts + INTERVAL '5 ns'"
)
COUNTS = "SELECT * FROM R, S WHERE R.x < S.x WINDOW AS (SLIDE INTERVAL '4' ON '12')"

NOTHING = (
    "answer = {'seconds': 1.0, 'start_seconds': 1.0, 'counted': [], 'checked': []}\n"
    "print(json.dumps(answer), flush=True)"
)
"""What Flink answers where it has not found a pair, or has written them."""

Acting = Callable[[str], None]


@pytest.fixture
def acting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Acting:
    """Return what makes some lines of Python answer for Flink; what is asked is in ``asked``."""

    def act(lines: str) -> None:
        program = tmp_path / "python"
        program.write_text(
            f"#!{sys.executable}\n"
            "import json, pathlib, sys\n"
            "line = sys.stdin.readline()\n"
            "job = json.loads(line)\n"
            f"pathlib.Path({str(tmp_path / 'asked')!r}).write_text(line)\n"
            f"{lines}\n"
            "sys.stdin.read()  # as the job does: it is looked at before it may end\n"
        )
        program.chmod(0o755)
        monkeypatch.setenv(PYTHON_VARIABLE, str(program))

    return act


def files_of(query: JoinQuery, folder: Path) -> tuple[StreamFile, ...]:
    rng = np.random.default_rng(1)
    return tuple(stream(rng).write(name, folder / name, 1000) for name in query.streams)


def test_without_its_environment_it_says_how_to_make_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PYTHON_VARIABLE, "/nowhere/python")
    assert Flink().version() is None
    assert "make flink" in Flink().install


def test_counts_of_all_days_are_added_up(tmp_path: Path, acting: Acting) -> None:
    acting(
        "print('a warning')\n"
        "answer = {'seconds': 2.5, 'start_seconds': 9, 'counted': [[4], [3]]}\n"
        "print(json.dumps(answer | {'checked': [[3, -2], [4, 1]]}), flush=True)"
    )
    query = parse_query(COUNTS)
    found = join(query, files_of(query, tmp_path), tmp_path, pairs=False)
    assert (found.totals, found.wall_seconds) == (Totals(7, 2**64 - 1), 2.5)
    assert found.start_seconds == 9
    asked = json.loads((tmp_path / "asked").read_text())
    assert len(asked["statements"]) == 4, "each stream probes, and is looked at"
    assert "UNION ALL" in asked["select"]
    assert "mixed" not in asked["select"], "the checksum is computed when the clock has stopped"
    assert "mixed" in asked["check"]


def test_two_counts_that_differ_are_a_failure(tmp_path: Path, acting: Acting) -> None:
    acting(
        "answer = {'seconds': 2.5, 'start_seconds': 9, 'counted': [[4]], 'checked': [[3, -2]]}\n"
        "print(json.dumps(answer), flush=True)"
    )
    query = parse_query(COUNTS)
    with pytest.raises(EngineFailed, match="it counted 4 pairs, and then 3"):
        join(query, files_of(query, tmp_path), tmp_path, pairs=False)


def test_no_pairs_at_all_are_a_count_too(tmp_path: Path, acting: Acting) -> None:
    acting(NOTHING)
    query = parse_query(COUNTS)
    assert join(query, files_of(query, tmp_path), tmp_path, pairs=False).totals == Totals()


def test_pairs_are_read_from_all_files_that_were_written(tmp_path: Path, acting: Acting) -> None:
    acting(
        f"found = pathlib.Path({str(tmp_path / 'found')!r}); found.mkdir()\n"
        "[(found / f'part-{i}').write_text(f'{i},3\\n{i},4\\n') for i in (1, 7)]\n"
        f"{NOTHING}"
    )
    query = parse_query(INTERVAL)
    found = join(query, files_of(query, tmp_path), tmp_path, pairs=True)
    assert found.totals == Totals.of_pairs(np.array([1, 1, 7, 7]), np.array([3, 4, 3, 4]))
    assert (found.memory_bytes or 0) > 0


def test_its_last_words_are_passed_on(tmp_path: Path, acting: Acting) -> None:
    acting("sys.exit('at Top.java\\nCaused by: TableException: no such luck\\nat Java.java')")
    query = parse_query(INTERVAL)
    with pytest.raises(EngineFailed, match="TableException: no such luck"):
        join(query, files_of(query, tmp_path), tmp_path, pairs=False)


def test_without_java_it_says_what_is_missing(
    tmp_path: Path, acting: Acting, monkeypatch: pytest.MonkeyPatch
) -> None:
    acting("sys.exit('FileNotFoundError: java')")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    query = parse_query(INTERVAL)
    with pytest.raises(EngineFailed, match=r"^JAVA_HOME is .* needs Java 17 or newer for Flink"):
        join(query, files_of(query, tmp_path), tmp_path, pairs=False)


def test_no_tuple_is_before_the_epoch_of_flinks_clock(tmp_path: Path, acting: Acting) -> None:
    """Of times before 1970, Flink loses pairs and does not say so."""
    acting(NOTHING)
    query = parse_query(
        "SELECT * FROM R, S WHERE R.x < S.x WINDOW AS (SLIDE INTERVAL '1 ns' ON '9 ns')"
    )
    join(query, files_of(query, tmp_path), tmp_path, pairs=False)
    for probing, stored in (("p0", "m0"), ("p1", "m1")):
        rows = [
            [int(value) for value in line.split(",")[2:5]]
            for name in (probing, stored)
            for line in (tmp_path / f"{name}.csv").read_text().splitlines()
        ]
        at, _, clock = np.array(rows).T
        assert at.min() < 0
        assert clock.min() == 0
        assert set(clock - at // 1_000_000) == {1}, "both sides have one clock"


def test_a_stream_is_written_in_order_as_java_reads_it(tmp_path: Path, acting: Acting) -> None:
    acting(NOTHING)
    query = parse_query("SELECT * FROM T WHERE T.x1 < T.x2 WINDOW AS (SLIDE INTERVAL '1' ON '7')")
    join(query, files_of(query, tmp_path), tmp_path, pairs=False)
    rows = [line.split(",") for line in (tmp_path / "p0.csv").read_text().splitlines()]
    assert [int(row[0]) for row in rows] == list(range(len(rows)))
    values = {row[-2] for row in rows}
    assert "0" in values
    assert not values & {"-0", "-0.0"}
