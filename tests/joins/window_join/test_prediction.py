"""The model's predictions beside what the kernels count."""

from __future__ import annotations

import pytest

from benchmarks.pim_tree import make_work
from joins.window_join.model.prediction import MODELLED, predict, predict_all
from joins.window_join.registry import IndexName, Making
from netsim.cost import load_profile

UNIT_PS = load_profile().unit_ps


@pytest.mark.parametrize("bits", [12, 15])
@pytest.mark.parametrize("index", MODELLED)
def test_a_prediction_is_within_30_percent_of_the_work_counted(index: IndexName, bits: int) -> None:
    window = 1 << bits
    tuples = 2 * window if index != "nested_loop" else 2000
    rows = make_work(tuples, window)
    making = Making(index=index)
    join = making.make(self_join=False, unit_ps=UNIT_PS)
    join.join(rows.part(0, 2 * window))
    found = join.join(rows.part(2 * window, 2 * window + tuples))
    counted_ns = load_profile().work_ns(found.work) / tuples
    predicted = predict(making, window=window, match_rate=2, unit_ps=UNIT_PS).tuple_ns
    assert counted_ns / 1.3 < predicted < counted_ns * 1.3


def test_every_index_is_ranked_once_at_its_best() -> None:
    ranked = predict_all(window=2**20, match_rate=2, unit_ps=UNIT_PS)
    assert sorted(one.making.index for one in ranked) == sorted(MODELLED)
    costs = [one.tuple_ns for one in ranked]
    assert costs == sorted(costs)
    for one in ranked:
        default = predict(
            Making(index=one.making.index), window=2**20, match_rate=2, unit_ps=UNIT_PS
        )
        assert one.tuple_ns <= default.tuple_ns
    assert ranked[-1].making.index == "nested_loop"
