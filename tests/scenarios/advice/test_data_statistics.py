"""Statistics of data, beside data whose rates, skew, disorder and selectivity are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from joins.queries.parser import parse_query
from joinsim._calls import of_query
from scenarios.advice.data_statistics import data_statistics, with_hot_key

QUERY = (
    "SELECT * FROM A, B WHERE A.k = B.k AND A.x < B.x AND B.ts "
    "BETWEEN A.ts - INTERVAL '1 s' AND A.ts + INTERVAL '1 s'"
)
MS = 1_000_000


def streams(**columns: Any) -> Any:
    n = len(columns["k"])
    table = {"ts": np.arange(n) * 10 * MS, "x": np.zeros(n, int)} | columns
    scenario = of_query(QUERY, {"A": table, "B": table}, None)
    assert scenario.streams is not None
    return scenario.streams


def test_a_rate_is_that_of_event_times() -> None:
    found = data_statistics(parse_query(QUERY), streams(k=np.arange(1_000)), None)
    assert found.streams[0].rate_tps == pytest.approx(100, rel=0.01)
    assert found.rate_tps == pytest.approx(200, rel=0.01)


def test_row_numbers_are_no_clock() -> None:
    found = data_statistics(parse_query(QUERY), streams(k=np.arange(100), ts=np.arange(100)), None)
    assert found.rate_tps is None


def test_skew_is_the_share_of_the_commonest_key() -> None:
    (one, _) = data_statistics(
        parse_query(QUERY), streams(k=np.array([7] * 30 + list(range(100, 170)))), None
    ).streams
    assert (one.key, one.keys, one.top_share) == ("k", 71, 0.3)


def test_duplicates_are_equal_in_time_and_in_all_fields() -> None:
    n = np.arange(100)
    found = data_statistics(parse_query(QUERY), streams(k=n // 4, ts=n // 4 * 10 * MS), None)
    assert found.streams[0].duplicates == 0.75


def test_disorder_is_the_share_that_came_late() -> None:
    ts = np.arange(100) * 10 * MS
    ts[[3, 50]] -= 25 * MS
    assert data_statistics(parse_query(QUERY), streams(k=np.arange(100), ts=ts), None).streams[
        0
    ].disorder == pytest.approx(0.02)


def test_selectivity_is_that_of_random_pairs() -> None:
    rng = np.random.default_rng(5)
    found = data_statistics(
        parse_query(QUERY),
        streams(k=rng.integers(0, 10, 5_000), x=rng.integers(0, 10**6, 5_000)),
        None,
    )
    assert found.selectivity == pytest.approx(0.1 / 2, rel=0.1)


def test_a_hot_key_has_half_of_the_tuples_and_the_rest_stays() -> None:
    query, (first, _) = parse_query(QUERY), streams(k=np.arange(1, 1_001))
    hot = with_hot_key(query, first, 0)
    keys = np.asarray(hot.table["k"])  # type: ignore[attr-defined]
    assert (keys == 0).mean() == pytest.approx(0.5, abs=0.05)
    kept = keys != 0
    assert (keys[kept] == np.arange(1, 1_001)[kept]).all()
