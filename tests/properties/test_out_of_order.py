"""PanJoin over streams out of order: windows of event time, late buffers, and what is late."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from scenarios.worlds import World, WorldStream

QUERIES = {
    "band": "SELECT * FROM R, S WHERE ABS(R.y - S.y) <= 1 AND R.x < S.x",
    "unequal": "SELECT * FROM R, S WHERE R.x != S.x AND R.y > S.y",
}
WINDOWS = {
    "sliding": "SLIDE INTERVAL '4 ns' ON '20 ns'",
    "precise": "SLIDE INTERVAL '1 ns' ON '20 ns' PRECISE",
}


def stream(rng: np.random.Generator, rows: int) -> WorldStream:
    """Return tuples, many of them at equal times."""
    ts = np.cumsum(rng.integers(0, 3, rows))
    return WorldStream(
        ts.tolist(), (rng.integers(0, 9, rows) / 10).tolist(), rng.integers(-4, 5, rows).tolist()
    )


def job(query: str, window: str, seed: int, feeding: dict[str, Any], **chosen: Any) -> World:
    rng = np.random.default_rng(seed)
    return World(
        topology="panjoin",
        parameters={"workers": 3, "batch_count": 7} | chosen,
        query=f"{QUERIES[query]} WINDOW AS ({WINDOWS[window]})",
        streams=(stream(rng, 120), stream(rng, 120)),
        network={"preset": "rack", "jitter": 3_000_000, "latency_kind": "uniform"},
        feeding={"batch_rows": 10, **feeding},
        segment_rows=64,
        seed=seed,
    )


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("chosen", [{"subwindow": 16}, {"structure": "rap_table"}], ids=str)
def test_the_answer_is_that_of_streams_in_order(
    query: str, window: str, chosen: dict[str, Any], tmp_path: Path
) -> None:
    """Subwindows end by count, or by stretches that are shorter than the disorder."""
    in_order = job(query, window, 1, {}, **chosen).run(tmp_path).verdict
    for bounded in (True, False):
        feeding = {"disorder": 6, "bounded": bounded, "watermark_lag": 60}
        verdict = job(query, window, 1, feeding, **chosen).run(tmp_path).verdict
        assert verdict.exact, verdict
        assert (verdict.late, verdict.produced) == (0, in_order.produced)
    assert in_order.produced > 400


@pytest.mark.parametrize("query", QUERIES)
def test_what_is_late_is_listed_and_all_else_is_joined(query: str, tmp_path: Path) -> None:
    late = 0
    for seed in range(3):
        feeding = {"disorder": 8, "watermark_lag": 3}
        verdict = job(query, "sliding", seed, feeding).run(tmp_path).verdict
        assert verdict.exact, verdict
        assert all(check.passed is not False for check in verdict.checks), verdict.checks
        listed = pq.read_table(tmp_path / "late.parquet")
        assert listed.num_rows == verdict.late
        assert all((listed["ts"].to_numpy() < listed["watermark"].to_numpy()).tolist())
        late += verdict.late
    assert late > 0


def test_without_watermarks_nothing_is_late_and_nothing_is_let_go(tmp_path: Path) -> None:
    feeding = {"disorder": 40, "bounded": False, "watermarks": False, "unbounded_state": True}
    verdict = job("band", "sliding", 5, feeding).run(tmp_path).verdict
    assert verdict.exact, verdict
    assert verdict.late == 0
