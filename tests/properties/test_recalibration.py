"""HP-OIJ while the frequent key changes: keys are split anew, and no pair is lost or repeated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.hosting.inline import InlineHost
from joinsim.checks import RestoringHost
from scenarios.run import FinishedRun
from scenarios.worlds import World, WorldStream

STEPS_OF_A_CHANGE = 4


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


def drifting(rng: np.random.Generator, rows: int, phases: int) -> WorldStream:
    """Return tuples most of which have one key, another one in each of *phases*."""
    ts = np.cumsum(rng.integers(0, 3, rows))
    hot = np.arange(rows) * phases // rows
    keys = np.where(rng.random(rows) < 0.8, hot, rng.integers(10, 20, rows))
    return WorldStream(ts.tolist(), (rng.integers(0, 4, rows) / 10).tolist(), keys.tolist())


def drift(
    seed: int, parameters: dict[str, Any], *, rows: int = 300, reach: int = 6, disorder: int = 0
) -> World:
    """Return a join whose frequent key changes twice."""
    rng = np.random.default_rng(seed)
    return World(
        topology="hp_oij",
        parameters=parameters,
        query=(
            "SELECT * FROM R, S WHERE R.y = S.y AND S.ts BETWEEN "
            f"R.ts - INTERVAL '{reach} ns' AND R.ts + INTERVAL '{reach} ns'"
        ),
        streams=(drifting(rng, rows, 3), drifting(rng, rows, 3)),
        network={"preset": "rack", "jitter": 1_500_000, "latency_kind": "uniform"},
        feeding={"batch_rows": 8, "rate_tps": 10_000, "disorder": disorder},
        segment_rows=64,
        seed=seed,
    )


def sent_by_master(report: FinishedRun) -> int:
    """Return how many messages the master sent to each emitter."""
    path = report.directory / "trace.parquet"
    from_master = [("sender", "==", "master"), ("receiver", "==", "emitter.R.0")]
    return pq.read_table(path, filters=from_master).num_rows


SETTINGS: dict[str, Any] = {
    "replicas": 4,
    "calibration_turns": 4,
    "recalibration_turns": 4,
    "batch_rows": 4,
}


def test_a_new_hot_key_is_split_and_the_old_one_is_no_more(directory: Path) -> None:
    """The master changes the assignment once without measuring again, else once a hot key."""
    once = drift(1, SETTINGS | {"recalibration_turns": None}).run(directory)
    assert once.verdict.exact
    assert sent_by_master(once) == STEPS_OF_A_CHANGE
    again = drift(1, SETTINGS).run(directory)
    assert again.verdict.exact
    assert sent_by_master(again) >= 3 * STEPS_OF_A_CHANGE


@settings(max_examples=10)
@given(
    seed=st.integers(0, 2**32 - 1),
    replicas=st.integers(2, 5),
    emitters=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    batch_rows=st.integers(1, 8),
    linger=st.integers(0, 4),
    measured=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    most=st.none() | st.integers(1, 4),
    reach=st.integers(0, 12),
    disorder=st.integers(0, 6),
    restored=st.booleans(),
)
def test_no_pair_is_lost_or_repeated_while_keys_drift(
    directory: Path,
    seed: int,
    replicas: int,
    emitters: tuple[int, int],
    batch_rows: int,
    linger: int,
    measured: tuple[int, int],
    most: int | None,
    reach: int,
    disorder: int,
    restored: bool,
) -> None:
    """Also when every actor is replaced by one from its snapshot at each message."""
    parameters = {
        "replicas": replicas,
        "base_emitters": emitters[0],
        "probe_emitters": emitters[1],
        "batch_rows": batch_rows,
        "linger_turns": linger,
        "calibration_turns": measured[0],
        "recalibration_turns": measured[1],
        "max_splitting": most,
    }
    one = drift(seed, parameters, rows=80 if restored else 240, reach=reach, disorder=disorder)
    host = RestoringHost if restored else InlineHost
    verdict = one.run(directory, inline_host=host).verdict
    assert verdict.exact, verdict
    assert verdict.expected > 0
    assert all(check.passed is not False for check in verdict.checks), verdict.checks
