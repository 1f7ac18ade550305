"""What batches add to latency, and how near a rate is to saturation, in runs of known load."""

from __future__ import annotations

import numpy as np
import pytest

import joinsim as js
from scenarios.report.load import RunLoad, measure_load

QUERY = "SELECT * FROM A, B WHERE A.x = B.x WINDOW AS (SLIDE INTERVAL '1' ON '20')"
ROWS = 400


def load_of(**feeding: int) -> RunLoad | None:
    streams = {name: {"x": np.arange(ROWS) % 7} for name in ("A", "B")}
    run = js.run(QUERY, streams, topology="hash_join", pes=2, feeding=feeding, pairs=False)
    return measure_load(run.finished)


def test_a_tuple_waits_half_of_what_its_batch_takes_to_fill() -> None:
    """At 1,000 a second, a batch of 100 leaves as its last tuple comes into being, 100 ms on."""
    load = load_of(rate_tps=1_000, batch_rows=100)
    assert load is not None
    assert load.batching_ms == pytest.approx(50, rel=0.02)
    assert load.median_ms is not None
    assert load.median_ms > load.batching_ms * 0.9
    assert load.busy < 0.1
    assert "SATURATION" not in load.saturation


def test_a_tuple_alone_waits_for_none() -> None:
    load = load_of(rate_tps=1_000, batch_rows=1)
    assert load is not None
    assert load.batching_ms == 0
    assert load.median_ms is not None
    assert load.median_ms < 1


def test_a_rate_beyond_what_the_system_takes_is_named() -> None:
    load = load_of(rate_tps=10_000_000, batch_rows=1)
    assert load is not None
    assert load.saturation.startswith("BEYOND SATURATION: fed 10,000,000 tuples/s, it takes ")


def test_without_a_rate_there_is_nothing_to_say() -> None:
    assert load_of(batch_rows=50) is None
