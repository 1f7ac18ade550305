from __future__ import annotations

from typing import Any

import pytest

from netsim.cost import load_profile
from scenarios.surveys.survey import (
    IndexStepsSurvey,
    InsertSpreadSurvey,
    MemoryTrafficSurvey,
    take_survey,
)

STEPS = {"insert", "delete", "search", "scan", "merge"}


def record_of(survey: Any, *, seed: int = 1) -> dict[str, Any]:
    found = take_survey(survey, seed=seed, profile=load_profile())
    assert found.passed
    return found.record


@pytest.mark.parametrize("index", ["b_plus_tree", "im_tree", "pim_tree"])
def test_steps_add_up_and_only_those_there_are_cost_something(index: str) -> None:
    survey = IndexStepsSurvey.model_validate({"index": index, "window_bits": 10})
    found = record_of(survey)
    for kind in ("counted_ns", "processor_ns"):
        steps = dict(found[kind])
        assert steps.pop("total") == pytest.approx(sum(steps.values()))
        assert set(steps) == STEPS
    idle = {step for step, ns in found["counted_ns"].items() if ns == 0}
    assert idle == ({"merge"} if index == "b_plus_tree" else {"delete"})
    share = found["merges"]["counted_percent"]
    assert (share == 0) == (index == "b_plus_tree")


def test_a_merge_takes_as_long_as_its_entries_together() -> None:
    """Two merges replace a window at a ratio of one half; each has one and a half windows."""
    merges = record_of(IndexStepsSurvey(window_bits=12))["merges"]
    assert merges["counted_ms"] == pytest.approx(1.5 * 4096 * merges["counted_ns"] / 1e6)
    assert merges["processor_ms"] == pytest.approx(1.5 * 4096 * merges["processor_ns"] / 1e6)


def test_counted_steps_are_the_same_every_time() -> None:
    first, second = (
        record_of(IndexStepsSurvey(window_bits=8), seed=seed)["counted_ns"] for seed in (1, 2)
    )
    assert first == second


def spread(shift: float, window_bits: int = 12) -> dict[str, Any]:
    return record_of(InsertSpreadSurvey(shift=shift, window_bits=window_bits))


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


def test_what_is_read_and_written_makes_the_total() -> None:
    found = record_of(MemoryTrafficSurvey(threads=3, window_bits=9))
    traffic = found["gb_s"]
    assert traffic["total"] == pytest.approx(traffic["read"] + traffic["written"])
    share = 100 * traffic["written"] / traffic["total"]
    assert found["written_percent"] == pytest.approx(share)


def test_every_tuple_is_written_at_least_once() -> None:
    """An insert writes 16 bytes; at the speed of one thread that is a floor for the traffic."""
    profile = load_profile("shared_memory")
    one, four = (
        take_survey(
            MemoryTrafficSurvey(threads=threads, window_bits=12), seed=1, profile=profile
        ).record
        for threads in (1, 4)
    )
    assert one["gb_s"]["written"] > 16 / 10_000  # a tuple takes less than 10 us
    assert 2 < four["gb_s"]["total"] / one["gb_s"]["total"] < 4.5
