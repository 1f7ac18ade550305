from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.work import COUNTERS, Work
from netsim.cost import CostProfile, load_profile
from scenarios.calibration.fit import COSTS, errors, fit, least_squares, write
from scenarios.calibration.observe import Observed


def observed(rng: np.random.Generator, price: CostProfile, *, atomics: bool) -> Observed:
    """Return a run of random work that took exactly what *price* says."""
    counts = rng.integers(1_000, 1_000_000, len(COUNTERS))
    counts[-1] = 0
    work = Work(**dict(zip(COUNTERS, counts.tolist(), strict=True)))
    if not atomics:
        work = Work(**{name: getattr(work, name) for name in COUNTERS if name != "atomics"})
    run = Observed(messages=int(rng.integers(10, 99)), rows=7_000, nbytes=50_000, work=work)
    run.rows, run.nbytes = int(rng.integers(1_000, 10**6)), int(rng.integers(1_000, 10**7))
    prices = np.array([getattr(price, name) for name in COSTS])
    run.seconds = float(run.counts @ prices) / 1e12
    return run


def test_costs_are_found_again_from_what_runs_took() -> None:
    rng = np.random.default_rng(3)
    price = load_profile("shared_memory")
    runs = [observed(rng, price, atomics=True) for _ in range(60)]
    found = fit(runs)
    for name in COSTS:
        assert getattr(found, name) == pytest.approx(getattr(price, name), rel=0.01, abs=1), name
    assert np.abs(errors(found, runs)).max() < 1e-3


def test_what_no_run_did_keeps_its_price() -> None:
    rng = np.random.default_rng(4)
    runs = [observed(rng, load_profile("multicore"), atomics=False) for _ in range(40)]
    assert fit(runs).atomic_ps == load_profile().atomic_ps


def test_without_runs_there_is_no_profile() -> None:
    with pytest.raises(ValueError, match="there are none"):
        fit([])


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
    path = tmp_path / "mine.toml"
    write(load_profile("multicore"), path, "for a test")
    read = load_profile(path)
    assert [getattr(read, name) for name in COSTS] == [
        getattr(load_profile("multicore"), name) for name in COSTS
    ]
