"""Interval joins where there is much to get wrong: hot keys, jitter, disorder, split keys."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from joins.hashing import mix
from scenarios.run import FinishedRun
from scenarios.worlds import World, WorldStream

PATTERNS = ("kp_oij", "dp_oij", "hp_oij")


def stream(rng: np.random.Generator, rows: int, skew: float) -> WorldStream:
    """Return tuples with some at equal times; the smaller *skew*, the more keys."""
    ts = np.cumsum(rng.integers(0, 3, rows))
    keys = np.minimum(rng.geometric(skew, rows), 12)
    return WorldStream(ts.tolist(), (rng.integers(0, 4, rows) / 10).tolist(), keys.tolist())


def job(topology: str, seed: int, parameters: dict[str, Any], **feeding: Any) -> World:
    """Return a join of two skewed streams over links of very uneven latency."""
    rng = np.random.default_rng(seed)
    lower, upper = sorted(rng.integers(-12, 13, 2).tolist())
    ends = [f"R.ts {'-' if by < 0 else '+'} INTERVAL '{abs(by)} ns'" for by in (lower, upper)]
    skew = rng.uniform(0.2, 0.9)
    return World(
        topology=topology,
        parameters=parameters,
        query=f"SELECT * FROM R, S WHERE R.y = S.y AND S.ts BETWEEN {ends[0]} AND {ends[1]}",
        streams=(stream(rng, 150, skew), stream(rng, 200, skew)),
        network={"preset": "rack", "jitter": 3_000_000, "latency_kind": "uniform"},
        feeding={"batch_rows": 10, **feeding},
        segment_rows=64,
        seed=seed,
    )


SETTINGS = {"replicas": 3, "base_emitters": 2, "probe_emitters": 3, "batch_rows": 4}


@pytest.mark.parametrize("topology", PATTERNS)
@pytest.mark.parametrize("lag", [None, 0, 3])
def test_out_of_order_streams_are_joined_exactly_but_for_what_is_late(
    topology: str, lag: int | None, tmp_path: Path
) -> None:
    """With a watermark behind the longest delay nothing is late; with less some tuples are."""
    late = pairs = 0
    for seed in range(3):
        feeding = {"disorder": 8} | ({} if lag is None else {"watermark_lag": lag})
        verdict = job(topology, seed, SETTINGS, **feeding).run(tmp_path).verdict
        assert verdict.exact, verdict
        assert all(check.passed is not False for check in verdict.checks), verdict.checks
        listed = pq.read_table(tmp_path / "late.parquet")
        assert listed.num_rows == verdict.late
        assert all((listed["ts"].to_numpy() < listed["watermark"].to_numpy()).tolist())
        late, pairs = late + verdict.late, pairs + verdict.expected
    assert pairs > 100
    assert (late > 0) == (lag is not None)


@pytest.mark.parametrize("topology", ["dp_oij", "hp_oij"])
def test_naive_collectors_repeat_and_lose_pairs_and_ordered_ones_do_not(
    topology: str, tmp_path: Path
) -> None:
    """Examples 4.1 to 4.3 happen where latencies differ; a naive run is measured, not failed."""
    split = {"splitting": 2} if topology == "hp_oij" else {}
    missing = duplicate = 0
    for seed in range(3):
        naive = job(topology, seed, SETTINGS | split | {"collector": "naive"}).run(tmp_path).verdict
        assert not naive.claims_exact
        assert naive.passed is not False
        missing, duplicate = missing + naive.missing, duplicate + naive.duplicate
        ordered = job(topology, seed, SETTINGS | split).run(tmp_path).verdict
        assert ordered.claims_exact
        assert ordered.exact
    assert missing > 0
    assert duplicate > 0


def rows_received(report: FinishedRun) -> dict[str, int]:
    """Return how many tuples each replica was sent."""
    trace = pq.read_table(report.directory / "trace.parquet", columns=["receiver", "rows"])
    received: dict[str, int] = {}
    for name, rows in zip(trace["receiver"].to_pylist(), trace["rows"].to_pylist(), strict=True):
        if name.startswith("oij."):
            received[name] = received.get(name, 0) + rows
    return received


@pytest.mark.parametrize("seed", range(4))
def test_calibration_splits_a_hot_key_on_the_fly_and_loses_no_pair(
    seed: int, tmp_path: Path
) -> None:
    """One key in all: its home alone would work, but for the calibration, which shares it out."""
    one_key = job("hp_oij", seed, SETTINGS | {"calibration_turns": 3}, rate_tps=20_000)
    hot = [WorldStream(s.ts, s.x, [7] * len(s.ts)) for s in one_key.streams]
    calibrated = replace(one_key, streams=tuple(hot))
    report = calibrated.run(tmp_path)
    assert report.verdict.exact, report.verdict
    assert report.verdict.expected > 100
    received = rows_received(report)
    total = sum(len(s.ts) for s in hot)
    assert max(received.values()) == total
    assert sorted(rows > 0 for rows in received.values()) == [True] * 3
    assert min(received.values()) < total


@pytest.mark.parametrize("topology", PATTERNS)
def test_patterns_send_each_tuple_to_as_many_replicas_as_the_paper_says(
    topology: str, tmp_path: Path
) -> None:
    """One in KP-OIJ, all in DP-OIJ, the splitting degree in HP-OIJ."""
    split = {"splitting": 2} if topology == "hp_oij" else {}
    report = job(topology, 1, SETTINGS | split).run(tmp_path)
    degree = {"kp_oij": 1, "dp_oij": 3, "hp_oij": 2}[topology]
    assert sum(rows_received(report).values()) == degree * 350


def test_the_interval_join_of_the_published_comparison_has_its_known_pairs(tmp_path: Path) -> None:
    """100,000 tuples a stream, 50 keys, 100 ms each way: 399,272 pairs."""
    i = np.arange(100_000)
    streams = [
        WorldStream(
            (i * 1_000_000 + shift).tolist(),
            [0.0] * len(i),
            (mix((salt << 48) ^ i) % np.uint64(50)).astype(np.int64).tolist(),
        )
        for salt, shift in ((1, 0), (2, 501_000))
    ]
    report = World(
        topology="kp_oij",
        parameters={"replicas": 2, "batch_rows": 4_000},
        query=(
            "SELECT * FROM A, B WHERE A.y = B.y "
            "AND B.ts BETWEEN A.ts - INTERVAL '100 ms' AND A.ts + INTERVAL '100 ms'"
        ),
        streams=tuple(streams),
        network={},
        feeding={"batch_rows": 8_000},
        segment_rows=16_384,
        seed=1,
    ).run(tmp_path)
    assert report.verdict.exact
    assert report.verdict.produced == 399_272
