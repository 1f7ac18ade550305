"""Reduced by partial tuples or not, a batch join finds the same; what it ships differs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from actors.feed import StreamFile
from joins.errors import DataError
from joins.queries.parser import parse_query
from scenarios.worlds import WorldStream
from spark_bridge.sql.semijoin_batch import run_shipping

REST_BYTES = 200
EQUAL = "SELECT * FROM R, S WHERE R.y = S.y "
QUERY = EQUAL + "AND S.ts BETWEEN R.ts - INTERVAL '300 ns' AND R.ts + INTERVAL '300 ns'"


def streams(folder: Path) -> tuple[StreamFile, ...]:
    """Write two streams of which one value in ten is in both."""
    rng = np.random.default_rng(2)
    files = []
    for name, least in (("R", 0), ("S", 180)):
        ts, y = np.arange(2_000), rng.integers(least, least + 200, 2_000)
        x = rng.random(2_000)
        file = WorldStream(ts.tolist(), x.tolist(), y.tolist()).write(name, folder / name, 500)
        files.append(replace(file, schema=replace(file.schema, width_bytes=REST_BYTES)))
    return tuple(files)


def test_tuples_without_partners_are_not_shipped(spark: Any, tmp_path: Path) -> None:
    query, files = parse_query(QUERY), streams(tmp_path)
    full, semijoin, bloom = (
        run_shipping(query, files, shipping, spark=spark)
        for shipping in ("full", "semijoin", "bloom")
    )
    assert full.totals == semijoin.totals == bloom.totals
    assert full.totals.pairs > 100
    whole, reduced, filtered = (one.shuffled_bytes or 0 for one in (full, semijoin, bloom))
    assert whole > 4_000 * REST_BYTES
    assert 0 < filtered < 0.3 * whole
    assert 0 < reduced < 0.3 * whole


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (QUERY.replace("R.y = S.y", "R.y < S.y"), "no equality of whole numbers"),
        (QUERY.replace("R.y = S.y", "R.x = S.x"), "no equality of whole numbers"),
        (EQUAL + "WINDOW AS (SLIDE INTERVAL '1' ON '9')", "a window by count"),
        ("SELECT * FROM R WHERE R.y1 = R.y2 WINDOW AS (SLIDE INTERVAL '1' ON '9')", "here are 1"),
    ],
)
def test_what_cannot_be_reduced_is_refused(
    spark: Any, tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        run_shipping(parse_query(text), streams(tmp_path), "full", spark=spark)
