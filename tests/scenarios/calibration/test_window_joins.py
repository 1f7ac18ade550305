"""What window joins take here, measured and kept."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from joins.window_join.cost_model import CALIBRATED_WINDOWS, MODELLED, MachineTimes
from joins.window_join.registry import Making
from netsim.cost import PROFILES, load_profile
from scenarios.calibration.window_joins import (
    Point,
    append_times,
    band_join,
    calibrated,
    read_times,
    time_indexes,
    time_join,
)

TIMES = MachineTimes(windows=(4096, 65536), ratios=(0.57, 1.25))


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """Return a profile that nothing was added to."""
    return Path(shutil.copy(PROFILES / "default.toml", tmp_path / "mine.toml"))


def test_times_are_kept_beside_the_profile(profile: Path) -> None:
    assert read_times(profile) == {}
    append_times({"pim_tree": TIMES, "b_chain": TIMES}, profile)
    assert read_times(profile) == {"pim_tree": TIMES, "b_chain": TIMES}
    assert load_profile(profile).unit_ps == load_profile().unit_ps


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("speed = [3]", "'speed'"),
        ("windows = 4096\nratios = 1.0", "not iterable"),
        ("windows = [4096]\nratios = [0.5, 1.0]", "2 ratios for 1 windows"),
        ("windows = [4096, 4096]\nratios = [0.5, 1.0]", "do not ascend"),
        ("windows = [4096]\nratios = [nan]", "above 0"),
    ],
)
def test_a_wrong_entry_is_named(profile: Path, entry: str, message: str) -> None:
    with profile.open("a") as file:
        file.write(f"[window_joins.pim_tree]\n{entry}\n")
    with pytest.raises(ValueError, match=rf"mine.toml: window_joins: .*{message}"):
        read_times(profile)


def test_windows_that_are_not_calibrated_at_do_not_count() -> None:
    known, unknown = CALIBRATED_WINDOWS[0], CALIBRATED_WINDOWS[0] + 1
    points = [
        Point(index="im_tree", window=window, predicted_ns=200, counted_ns=0, took_ns=took_ns)
        for window, took_ns in ((known, 100), (unknown, 900))
    ]
    assert calibrated(points) == MachineTimes(windows=(known,), ratios=(0.5,))


def test_every_index_is_timed_and_predicted_at_every_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("scenarios.calibration.window_joins._TUPLES", 2_000)
    timed = time_indexes([64, 256], passes=2)
    assert list(timed) == list(MODELLED)
    for points in timed.values():
        assert [point.window for point in points] == [64, 256]
        for point in points:
            assert point.predicted_ns == pytest.approx(point.counted_ns, rel=1)
            assert point.took_ns > 0


def test_tuples_that_fill_the_windows_are_not_counted() -> None:
    keys = np.zeros(30, np.int64)
    join = Making().make(self_join=False, unit_ps=load_profile().unit_ps)
    timed = time_join(join, band_join(keys, 0, 10), 20)
    assert timed.tuples == 10
    assert timed.work.matches == 10 * 10  # every tuple sees a full window of equal keys
    assert timed.seconds > 0
