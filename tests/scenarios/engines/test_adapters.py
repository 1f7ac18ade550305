"""What DuckDB and Polars find is what the oracle expects, whatever the query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from actors.feed import Feed, StreamFile
from joins.oracle.expected import expected
from joins.queries.parser import parse_query
from joins.queries.query import JoinQuery
from scenarios.engines.embedded_engines import DuckDB, Polars
from scenarios.engines.engine import Measured
from spark_bridge.totals import Totals
from tests.spark_bridge.sql.test_sql_oracle import QUERIES, stream

Join = Callable[[JoinQuery, Sequence[StreamFile], Path | None], Measured]


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


def test_pairs_and_counts_have_one_checksum() -> None:
    pairs = Totals.of_pairs(np.array([1, 1, 7]), np.array([2, 3, 2]))
    one, other = (
        Totals.of_pairs(np.array(p), np.array(m)) for p, m in (([7], [2]), ([1, 1], [3, 2]))
    )
    assert pairs == one + other
    assert pairs != Totals.of_pairs(np.array([1, 1, 7]), np.array([2, 2, 3]))
