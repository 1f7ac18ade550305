"""Plans that change while streams are shed: right, within the budget, and the recall as stated."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.protocol import HEADER_BYTES
from actors.semijoins.adaptive_site import LEAD
from joins.semijoins.value_sample import ValueSample
from scenarios.run import FinishedRun
from scenarios.worlds import WorldStream
from tests.topologies.semijoins.test_replanning import PlansInTurn, decision_bytes, predicted
from tests.topologies.semijoins.test_shedding import (
    STEP_NS,
    THREE_WAY,
    TWO_WAY,
    run,
    uniform,
    values_of_results,
)
from tests.topologies.test_semijoin import plans
from topologies import semijoin


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


def drifting(seed: int, rows: int = 3000) -> WorldStream:
    """Return a stream of which some tuples match at first, and from the half of it on all may."""
    rng = np.random.default_rng(seed)
    common = (np.arange(rows) >= rows // 2) | (rng.random(rows) < 0.3)
    y = np.where(common, rng.integers(0, 200, rows), 1000 * seed + rng.integers(0, 400, rows))
    ts = (np.arange(rows) * STEP_NS + seed).tolist()
    return WorldStream(ts=ts, x=[0.0] * rows, y=y.tolist())


def changed(report: FinishedRun) -> bool:
    """Whether a plan other than the first was decided for: one of another length."""
    first = HEADER_BYTES + len(report.plan.parameters.plan)
    return any(nbytes != first for nbytes in decision_bytes(report))


def test_whatever_is_shed_and_whichever_plans_follow_nothing_is_lost_or_repeated(
    directory: Path,
) -> None:
    """What is kept has all of its results, each once."""
    streams = tuple(uniform(seed, 30, 400) for seed in range(3))
    whole = run(directory, THREE_WAY, streams)
    assert whole.verdict.exact
    expected = values_of_results(directory, streams[0])

    @settings(max_examples=6)
    @given(
        names=st.lists(plans(THREE_WAY), min_size=2, max_size=4),
        share=st.floats(0.1, 1),
        replan_every=st.integers(1, 4),
    )
    def check(names: list[str], share: float, replan_every: int) -> None:
        kept = ValueSample(share=share, always=(1.0,))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(semijoin, "GreedyPlans", partial(PlansInTurn, names=tuple(names)))
            verdict = run(
                directory, THREE_WAY, streams, kept=kept, replan_every=replan_every
            ).verdict
        assert verdict.spurious == verdict.duplicate == 0
        assert verdict.produced == kept.contains(expected).sum()
        assert all(check.passed is not False for check in verdict.checks), verdict.checks

    check()


@pytest.mark.parametrize("replan_every", [1, 5])
def test_streams_that_drift_keep_to_the_budget_and_to_the_recall_that_is_stated(
    replan_every: int, directory: Path
) -> None:
    """Within four standard errors; what sites tell the coordinator is in the budget, too."""
    streams = (drifting(1), drifting(2))
    common = {
        "plan": "A: B SM-S1; B: A SM-S1",
        "tuple_bytes": {"A": 120, "B": 1250},
        "replan_every": replan_every,
    }
    whole = run(directory, TWO_WAY, streams, kept=ValueSample(share=1), **common)
    assert whole.approximated is not None
    assert changed(whole)
    for part in (0.5, 0.9):
        budget = int(part * whole.approximated.link_bytes_ps)
        report = run(directory, TWO_WAY, streams, byte_budget=budget, **common)
        assert report.verdict.passed, report.verdict.checks
        assert report.verdict.spurious == report.verdict.duplicate == 0
        found = report.approximated
        assert found is not None
        assert found.stated_recall is not None
        assert found.standard_error is not None
        assert found.recall is not None
        assert 0 < found.recall < 1
        assert abs(found.stated_recall - found.recall) < 4 * found.standard_error
        sizes = [HEADER_BYTES + len(epoch.plan) for epoch in predicted(report)[LEAD:]]
        assert sizes == decision_bytes(report)[: len(sizes)]


def test_a_faster_plan_that_ships_more_is_not_taken_under_a_budget(directory: Path) -> None:
    """Over a wide link one message less is worth more than the bytes it saves."""
    streams = (uniform(1, 2000), uniform(2, 2000))
    wide = {"A": 1250, "B": 1250}
    common = {"plan": "A: B SM-D2; B: A SM-D2", "tuple_bytes": wide, "replan_every": 5}
    free = run(directory, TWO_WAY, streams, kept=ValueSample(share=1), **common)
    assert changed(free)
    assert free.approximated is not None
    budget = int(0.7 * free.approximated.link_bytes_ps)
    bound = run(directory, TWO_WAY, streams, byte_budget=budget, **common)
    assert not changed(bound)
    assert bound.verdict.passed, bound.verdict.checks
