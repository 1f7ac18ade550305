"""What window joins take here, measured and kept."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from joins.window_join.drivers import Making
from joins.window_join.machine_times import MachineTimes
from netsim.cost import PROFILES, load_profile
from scenarios.calibration.window_joins import append_times, band_join, read_times, time_join

TIMES = MachineTimes(work_percent=57, doubling_ps=12, uncached_ps=0)


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """Return a profile that nothing was added to."""
    return Path(shutil.copy(PROFILES / "default.toml", tmp_path / "mine.toml"))


def test_times_are_kept_beside_the_profile(profile: Path) -> None:
    assert read_times(profile) == {}
    append_times({"pim_tree": TIMES, "b_chain": TIMES}, profile)
    assert read_times(profile) == {"pim_tree": TIMES, "b_chain": TIMES}
    assert load_profile(profile).unit_ps == load_profile().unit_ps


def test_a_wrong_entry_is_named(profile: Path) -> None:
    with profile.open("a") as file:
        file.write("[window_joins.pim_tree]\nspeed = 3\n")
    with pytest.raises(ValueError, match=r"mine.toml: window_joins: .*'speed'"):
        read_times(profile)


def test_tuples_that_fill_the_windows_are_not_counted() -> None:
    keys = np.zeros(30, np.int64)
    join = Making().make(self_join=False, unit_ps=load_profile().unit_ps)
    timed = time_join(join, band_join(keys, 0, 10), 20)
    assert timed.tuples == 10
    assert timed.work.matches == 10 * 10  # every tuple sees a full window of equal keys
    assert timed.seconds > 0
