from __future__ import annotations

import pytest

from netsim.cost import load_profile
from scenarios.surveys.index_steps import IndexStepsSurvey

STEPS = {"insert", "delete", "search", "scan", "merge"}


@pytest.mark.parametrize("index", ["b_plus_tree", "im_tree", "pim_tree"])
def test_steps_add_up_and_only_those_there_are_cost_something(index: str) -> None:
    survey = IndexStepsSurvey.model_validate({"index": index, "window_bits": 10})
    found = survey.take(seed=1, profile=load_profile())
    assert found.passed
    for kind in ("counted_ns", "processor_ns"):
        steps = dict(found.record[kind])
        assert steps.pop("total") == pytest.approx(sum(steps.values()))
        assert set(steps) == STEPS
    idle = {step for step, ns in found.record["counted_ns"].items() if ns == 0}
    assert idle == ({"merge"} if index == "b_plus_tree" else {"delete"})
    share = found.record["merges"]["counted_percent"]
    assert (share == 0) == (index == "b_plus_tree")


def test_a_merge_takes_as_long_as_its_entries_together() -> None:
    """Two merges replace a window at a ratio of one half; each has one and a half windows."""
    merges = IndexStepsSurvey(window_bits=12).take(seed=1, profile=load_profile()).record["merges"]
    assert merges["counted_ms"] == pytest.approx(1.5 * 4096 * merges["counted_ns"] / 1e6)
    assert merges["processor_ms"] == pytest.approx(1.5 * 4096 * merges["processor_ns"] / 1e6)


def test_counted_steps_are_the_same_every_time() -> None:
    first, second = (
        IndexStepsSurvey(window_bits=8).take(seed=seed, profile=load_profile()).record["counted_ns"]
        for seed in (1, 2)
    )
    assert first == second
