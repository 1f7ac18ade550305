"""How much more uneven values match than even ones: against tuples that were drawn."""

from __future__ import annotations

import numpy as np
import pytest

from topologies.semijoins.formulas import distinct_among
from topologies.semijoins.join_statistics import JoinAttribute, JoinStream
from topologies.semijoins.shedding import unevenness

STREAMS = tuple(
    JoinStream(name=name, rate_tps=100, window_rows=200, full_bytes=100) for name in "AB"
)


def of(*columns: np.ndarray) -> float:
    return unevenness(JoinAttribute.of_columns(dict(enumerate(columns)), 2), STREAMS)


def test_even_values_are_even() -> None:
    column = np.tile(np.arange(500), 20)
    assert of(column, column) == pytest.approx(1, abs=1e-6)
    assert of(column, column + 250) == pytest.approx(1, abs=1e-6)
    assert of(column, column + 500) == 1  # nothing matches


def test_uneven_values_match_as_often_as_drawn_ones() -> None:
    rng = np.random.default_rng(1)
    columns = [np.minimum(rng.zipf(1.3, 40_000), 3000) for _ in "AB"]
    hits = [
        np.isin(columns[0][i : i + 20], columns[1][i : i + 200]).mean()
        for i in range(0, 39_000, 20)
    ]
    distinct = len(np.unique(columns[1]))
    there = np.isin(columns[0], columns[1]).mean()
    even = there * distinct_among(distinct, 200) / distinct
    assert of(*columns) == pytest.approx(np.mean(hits) / even, rel=0.03)
