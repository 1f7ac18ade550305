"""What DuckDB and Polars find is what the oracle expects, whatever the query."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import joinsim as js
from actors.feed import Feed, StreamFile
from joins.codes import GREATEST, LEAST
from joins.matches import Matches
from joins.oracle.evaluation import expected
from joins.queries.parser import parse_query
from joins.queries.query import JoinQuery
from scenarios.engines import embedded_engines, read_whole
from scenarios.engines.embedded_engines import (
    DuckDB,
    Polars,
    _with_mixed_ids,
    polars_predicates,
)
from spark_bridge.engines import EngineResult, Totals
from spark_bridge.sql.statement import ProbeSide, probe_sides
from tests.spark_bridge.sql.test_native import QUERIES, stream

Join = Callable[[JoinQuery, Sequence[StreamFile], Path | None], EngineResult]


@pytest.mark.parametrize("join", [DuckDB().join, Polars().join], ids=["duckdb", "polars"])
@pytest.mark.parametrize("write", [False, True], ids=["counted", "written"])
def test_an_engine_finds_what_the_oracle_expects(tmp_path: Path, join: Join, write: bool) -> None:
    rng = np.random.default_rng(12 + write)
    for case, text in enumerate(QUERIES):
        query = parse_query(text)
        files = tuple(stream(rng).write(n, tmp_path / f"{case}{n}", 1000) for n in query.streams)
        arrivals = Feed(files).take(10**6)
        assert arrivals is not None
        wanted = Totals()
        for matches in expected(query, [file.schema for file in files], [arrivals]):
            wanted += Totals.of(matches)
        assert wanted.pairs, f"nothing to compare: {text}"
        out = tmp_path / f"{case}.parquet" if write else None
        assert join(query, files, out).totals == wanted, text


def duckdb_pairs(side: ProbeSide, probes: pa.Table, stored: pa.Table) -> Totals:
    """Return what DuckDB finds without a window."""
    connection = duckdb.connect()
    connection.register("p", probes)
    connection.register("m", stored)
    where = " AND ".join(side.predicates("p.", "m."))
    found = connection.execute(
        f"SELECT p.id AS probe, m.id AS match FROM p, m WHERE {where}"
    ).fetchnumpy()
    return Totals.of_pairs(np.asarray(found["probe"]), np.asarray(found["match"]))


def polars_pairs(side: ProbeSide, probes: pa.Table, stored: pa.Table) -> Totals:
    """Return what Polars finds without a window."""
    probing, seen = (
        pl.LazyFrame(pl.from_arrow(table)).select(pl.all().name.prefix(prefix))
        for table, prefix in ((probes, "p_"), (stored, "m_"))
    )
    found = probing.join_where(seen, *polars_predicates(side)).collect()
    return Totals.of_pairs(found["p_id"].to_numpy(), found["m_id"].to_numpy())


@pytest.mark.parametrize("pairs", [duckdb_pairs, polars_pairs], ids=["duckdb", "polars"])
def test_predicates_alone_compare_all_tuples(tmp_path: Path, pairs: Callable[..., Totals]) -> None:
    query = parse_query(
        "SELECT * FROM R, S WHERE R.x < S.x AND R.y > S.y WINDOW AS (SLIDE INTERVAL '1' ON '2')"
    )
    rng = np.random.default_rng(5)
    files = tuple(stream(rng).write(name, tmp_path / name, 1000) for name in query.streams)
    stored, probing = (read_whole(file) for file in files)
    match, probe = np.nonzero(
        (stored.fields["x"][:, None] < probing.fields["x"])
        & (stored.fields["y"][:, None] > probing.fields["y"])
    )
    _, side = probe_sides(query, [file.schema for file in files])
    found = pairs(side, *(_with_mixed_ids(files[stream]) for stream in (side.probing, side.stored)))
    assert found == Totals.of_pairs(probe, match)
    assert found.pairs > 100


@pytest.mark.parametrize("engine", [DuckDB(), Polars()], ids=["duckdb", "polars"])
def test_an_answer_is_checked_when_the_clock_has_stopped(
    tmp_path: Path, engine: DuckDB | Polars, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked_s = []

    def check(pairs: pa.Table) -> Totals:
        checked_s.append(time.perf_counter())
        time.sleep(0.2)
        return Totals(7, 7)

    monkeypatch.setattr(embedded_engines, "pair_totals", check)
    query = parse_query(QUERIES[0])
    files = [stream(np.random.default_rng(1)).write("T", tmp_path / "T", 1000)]
    began_s = time.perf_counter()
    found = engine.join(query, files, tmp_path / "found.parquet")
    assert found.totals == Totals(7, 7)
    assert 0 < found.start_seconds + found.wall_seconds <= checked_s[0] - began_s


def test_pairs_and_counts_have_one_checksum() -> None:
    pairs = Totals.of_pairs(np.array([1, 1, 7]), np.array([2, 3, 2]))
    one, other = (
        Totals.of_pairs(np.array(p), np.array(m)) for p, m in (([7], [2]), ([1, 1], [3, 2]))
    )
    assert pairs == one + other
    assert pairs != Totals.of_pairs(np.array([1, 1, 7]), np.array([2, 2, 3]))
    assert pairs != Totals.of_pairs(np.array([2, 3, 2]), np.array([1, 1, 7]))
    listed = Matches.of_pairs(
        0, np.array([1, 7]), np.array([0, 0, 1]), np.array([2, 3, 2]), enumerate=False
    )
    assert Totals.of(listed) == pairs


WINDOW = "WINDOW AS (SLIDE INTERVAL '1 ns' ON '5 ns')"
BETWEEN = "AND S.ts BETWEEN R.ts - INTERVAL '3 ns' AND R.ts + INTERVAL '3 ns'"


@pytest.mark.parametrize(
    ("first", "extent"), [(LEAST, WINDOW), (LEAST, BETWEEN), (GREATEST - 29, BETWEEN)]
)
def test_windows_that_end_beyond_int64_are_refused(first: int, extent: str) -> None:
    """Engines add event times, and what they come to wraps round."""
    table = {"ts": first + np.arange(30), "k": np.arange(30) % 3}
    compared = js.compare_engines(
        f"SELECT * FROM R, S WHERE R.k = S.k {extent}",
        {"R": table, "S": table},
        engines=["duckdb", "polars"],
    )
    why = f"event times from {first} to {first + 29} ns have windows that end beyond int64"
    assert compared.result.refused == {"duckdb": why, "polars": why}
    assert compared.passed is None


def test_the_event_time_may_be_compared_as_a_field() -> None:
    """Names that statements have of their own may be those of fields."""
    names = ("k", "low", "bucket")
    table = {"ts": np.arange(0, 90, 3), **{name: np.arange(30) % 3 for name in names}}
    compared = js.compare_engines(
        "SELECT * FROM R, S WHERE R.k = S.k AND R.low = S.bucket AND R.ts <= S.ts "
        "WINDOW AS (SLIDE INTERVAL '1 ns' ON '20 ns')",
        {"R": table, "S": table},
        engines=["duckdb", "polars"],
    )
    assert compared.result.failed == {}
    assert compared.passed
