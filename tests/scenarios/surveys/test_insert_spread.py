from __future__ import annotations

import pytest

from netsim.cost import load_profile
from scenarios.surveys.insert_spread import InsertSpreadSurvey


def spread(shift: float, window_bits: int = 12) -> dict:
    survey = InsertSpreadSurvey(shift=shift, window_bits=window_bits)
    found = survey.take(seed=1, profile=load_profile())
    assert found.passed
    return found.record


@pytest.mark.parametrize("shift", [0, 8, 40])
def test_shares_ascend_to_all_inserts(shift: float) -> None:
    shares = list(spread(shift)["share"].values())
    steps = [b - a for a, b in zip([0.0, *shares], shares, strict=False)]
    assert shares[-1] == pytest.approx(100)
    assert min(steps) >= 0


def test_values_that_hold_still_are_spread_evenly_and_drifting_ones_meet() -> None:
    still, slow, fast = spread(0), spread(8), spread(40)
    assert still["idle_percent"] == 0
    assert still["fullest_percent"] < 30  # 4 subindexes
    assert still["fullest_percent"] < slow["fullest_percent"] < fast["fullest_percent"]
    assert fast["fullest_percent"] > 90
    assert fast["idle_percent"] > 0


def test_a_window_of_one_subindex_puts_all_inserts_there() -> None:
    assert spread(8, window_bits=6)["fullest_percent"] == 100
