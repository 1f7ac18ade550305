from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.work import Work
from netsim.cost import load_profile
from netsim.operator_cost import OperatorCost, operator_profiles
from scenarios.calibration.fit import (
    COSTS,
    Calibrated,
    fit,
    least_squares,
    seconds,
    write,
)
from scenarios.calibration.observe import Observed
from scenarios.calibration.transport import Carried

LOCAL_PS, MESSAGE_PS, BYTE_PS = 30_000_000, 200_000_000, 400
JOINER = OperatorCost(message_ps=90_000_000, row_ps=25_000, work_percent=170)
SOURCE = OperatorCost(message_ps=400_000_000, row_ps=9_000, work_percent=0)


def observed(rng: np.random.Generator, cost: OperatorCost) -> Observed:
    """Return an operator's part in a run that took exactly what *cost* says."""
    comparisons, matches = rng.integers(10**6, 10**8, 2).tolist() if cost.work_percent else (0, 0)
    run = Observed(
        messages=int(rng.integers(10, 99)),
        rows=int(rng.integers(1_000, 10**6)),
        work=Work(comparisons=comparisons, matches=matches),
    )
    run.seconds = seconds(load_profile(), cost, run)
    return run


def carried(rng: np.random.Generator) -> Carried:
    local, remote = rng.integers(50, 900, 2).tolist()
    nbytes = int(rng.integers(10**5, 10**8))
    took = local * LOCAL_PS + remote * MESSAGE_PS + nbytes * BYTE_PS
    return Carried(seconds=took / 1e12, local=local, remote=remote, nbytes=nbytes)


def calibrated(rng: np.random.Generator) -> Calibrated:
    runs = {"joiner": [observed(rng, JOINER) for _ in range(6)]}
    runs["source"] = [observed(rng, SOURCE) for _ in range(6)]
    return fit({"split_join": runs}, [carried(rng) for _ in range(12)])


def test_costs_are_found_again_from_what_runs_took() -> None:
    found = calibrated(np.random.default_rng(3))
    assert found.local_message_ps == pytest.approx(LOCAL_PS, rel=0.01)
    assert found.base.message_ps == pytest.approx(MESSAGE_PS, rel=0.01)
    assert found.base.byte_ps == pytest.approx(BYTE_PS, abs=2)
    for role, wanted in (("joiner", JOINER), ("source", SOURCE)):
        cost = found.operators["split_join"][role]
        assert cost.message_ps == pytest.approx(wanted.message_ps, rel=0.02)
        assert cost.row_ps == pytest.approx(wanted.row_ps, rel=0.02)
        assert cost.work_percent == wanted.work_percent


def test_units_keep_the_prices_of_the_default_profile() -> None:
    found, default = calibrated(np.random.default_rng(4)).base, load_profile()
    assert (found.comparison_ps, found.insert_ps) == (default.comparison_ps, default.insert_ps)


def test_without_runs_there_is_no_profile() -> None:
    with pytest.raises(ValueError, match="there are none"):
        fit({}, [])


@given(st.integers(0, 2**32 - 1))
def test_least_squares_never_goes_below_zero_and_no_step_helps(seed: int) -> None:
    """At the optimum the gradient is zero where x is positive, and does not pull down at zero."""
    rng = np.random.default_rng(seed)
    rows, wanted = rng.normal(size=(12, 5)), rng.normal(size=12)
    x = least_squares(rows, wanted)
    pull = rows.T @ (wanted - rows @ x)
    assert (x >= 0).all()
    assert (pull < 1e-6).all()
    assert np.abs(pull[x > 0]).max(initial=0.0) < 1e-6


def test_a_profile_is_read_back_as_written(tmp_path: Path) -> None:
    path, written = tmp_path / "mine.toml", calibrated(np.random.default_rng(5))
    write(written, path, "for a test")
    base = load_profile(path)
    assert [getattr(base, name) for name in COSTS] == [getattr(written.base, c) for c in COSTS]
    joiner = operator_profiles(path, "split_join")["joiner"]
    cost = written.operators["split_join"]["joiner"]
    work = Work(comparisons=1000, matches=10)
    assert joiner.work_ns(work) == pytest.approx(base.work_ns(work) * cost.work_percent / 100, 0.01)
    assert joiner.local_ns(5, 999) == (
        (written.local_message_ps + cost.message_ps + 5 * cost.row_ps) // 1000
    )
    assert joiner.floor_ns(0, 0) == (base.message_ps + cost.message_ps) // 1000
    assert operator_profiles(path, "hash_join") == {}
