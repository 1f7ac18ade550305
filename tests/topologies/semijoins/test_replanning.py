"""Semijoin plans that change while streams drift: no result is lost or repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.hosting.inline import InlineHost
from actors.protocol import HEADER_BYTES
from actors.semijoins.adaptive_site import LEAD, Observed
from joins.queries.parser import parse_query
from joins.semijoins.one_way_join import OneWayJoin
from joinsim.checks import RestoringHost
from scenarios.run import FinishedRun
from scenarios.worlds import World, WorldStream
from scenarios.worlds.drawing import draw_multiway_query
from tests.drawn import drawn
from tests.topologies.test_semijoin import TOPOLOGY, job, plans
from topologies import semijoin
from topologies.semijoin import SemijoinParameters, plan_of, replanning_of, with_tuple_bytes
from topologies.semijoins import replanning
from topologies.semijoins.costing import Costing
from topologies.semijoins.plans import LinearPlan
from topologies.semijoins.replanning import Epoch, GreedyPlans, predict_epochs
from topologies.semijoins.searches import greedy_plan
from topologies.topology import TopologyError

TWO_WAY = "SELECT * FROM A, B WHERE A.y = B.y WINDOW AS (SLIDE INTERVAL '1' ON '40')"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


@dataclass(frozen=True, kw_only=True)
class PlansInTurn(GreedyPlans):
    """Another plan after every epoch, good or not."""

    names: tuple[str, ...]

    def better(self, plan: str, observed: Sequence[Observed]) -> str:
        """Return the plan named by the epoch."""
        return self.names[observed[0].epoch % len(self.names)]


@st.composite
def drifting(draw: st.DrawFn, most: int) -> WorldStream:
    """Draw tuples whose values are of one range first and of another one later."""
    rows = draw(st.integers(0, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    later = np.arange(rows) >= draw(st.integers(0, rows))
    ts = np.cumsum(rng.integers(0, np.where(later, 2, 6)))
    y = np.where(later, rng.integers(0, 2, rows), rng.integers(0, 5, rows))
    return WorldStream(ts.tolist(), (rng.integers(0, 4, rows) / 10).tolist(), y.tolist())


@pytest.mark.parametrize("restored", [False, True])
def test_no_result_is_lost_or_repeated_while_plans_change(restored: bool, directory: Path) -> None:
    """Any plans after each other, whatever the latency; also restored at every message."""
    most = 15 if restored else 60

    @settings(max_examples=5 if restored else 20)
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        query = data.draw(drawn(draw_multiway_query))
        names = tuple(data.draw(st.lists(plans(query), min_size=1, max_size=4)))
        one = job(
            query,
            tuple(data.draw(drifting(most)) for _ in parse_query(query).streams),
            plan=data.draw(plans(query)).replace("\n", "; "),
            tau=data.draw(st.integers(500_000, 5_000_000)),
            replan_every=data.draw(st.integers(1, 4)),
        )
        latency = data.draw(st.integers(0, 20_000_000))
        one = replace(one, network={"preset": "rack", "latency": latency})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(semijoin, "GreedyPlans", partial(PlansInTurn, names=names))
            host = RestoringHost if restored else InlineHost
            verdict = one.run(directory, inline_host=host).verdict
        assert verdict.exact, (verdict, one, names)
        assert all(held.passed is not False for held in verdict.checks), verdict.checks

    check()


def selective_then_not(seed: int, rows: int = 1200) -> WorldStream:
    """Return tuples of values that hardly ever match, and from the half of them on often do."""
    rng = np.random.default_rng(seed)
    later = np.arange(rows) >= rows // 2
    y = np.where(later, rng.integers(0, 5, rows), 100 + seed * 10_000 + rng.integers(0, 900, rows))
    return WorldStream(ts=list(range(rows)), x=[0.0] * rows, y=y.tolist())


def drift(**parameters: object) -> World:
    """Return a join on which SM-S1 is good at first, and a simple one later."""
    one = job(
        TWO_WAY,
        (selective_then_not(1), selective_then_not(2)),
        plan="A: B SM-S1; B: A SM-S1",
        tau=2_000_000,
        tuple_bytes={"A": 60, "B": 2500},
        **parameters,
    )
    return replace(one, network={"preset": "wan", "bandwidth": 2_000_000, "latency": 1_000_000})


def decision_bytes(report: FinishedRun) -> list[int]:
    """Return the sizes of the decisions that a site received: a plan is shipped as its text."""
    path = report.directory / "trace.parquet"
    to_site = [("sender", "==", "coordinator"), ("receiver", "==", "site.A")]
    return pq.read_table(path, filters=to_site)["nbytes"].to_pylist()


def test_a_plan_that_has_become_bad_gives_way(directory: Path) -> None:
    """And the bytes that this saves are more than windows and reports cost."""
    fixed = drift().run(directory)
    assert fixed.verdict.exact
    changed = drift(replan_every=10).run(directory)
    assert changed.verdict.exact
    assert changed.outcome.nbytes < 0.6 * fixed.outcome.nbytes
    # Twelve epochs are seen, and the streams drift after the sixth.
    before, after = np.split(decision_bytes(changed), [6])
    assert len(np.unique(before)) == len(np.unique(after)) == 1
    assert before[0] != after[0]


def predicted(report: FinishedRun) -> list[Epoch]:
    """Return the epochs that are predicted of a run."""
    plan = report.plan
    job = with_tuple_bytes(plan.job(pairs=False), plan.parameters.tuple_bytes)
    replanning = replanning_of(job, plan_of(plan.query, plan.parameters), plan.parameters)
    assert replanning is not None
    approximation = TOPOLOGY.approximation(plan.query, plan.parameters)
    kept = approximation.kept if approximation else ()
    return list(predict_epochs(replanning, job, plan.parameters.tau, kept))


def test_the_plans_predicted_are_those_that_sites_decide(directory: Path) -> None:
    report = drift(replan_every=10).run(directory)
    epochs = predicted(report)
    assert [epoch.plan for epoch in epochs[:LEAD]] == [report.plan.parameters.plan] * LEAD
    sizes = [HEADER_BYTES + len(epoch.plan) for epoch in epochs[LEAD:]]
    assert sizes == decision_bytes(report)[: len(sizes)]
    assert len({epoch.plan for epoch in epochs}) > 1


def test_without_punctuations_plans_may_not_change() -> None:
    """A site could not tell when an old plan is over."""
    sketch = TOPOLOGY.sketch(parse_query(TWO_WAY))
    with pytest.raises(TopologyError, match=r"replan_every = 5: .*must be punctuated, not delayed"):
        TOPOLOGY.build(sketch, SemijoinParameters(execution="delayed", replan_every=5))


@pytest.mark.parametrize("bloom", [False, True])
def test_later_plans_may_have_the_algorithms_that_the_first_may(
    bloom: bool, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: set[bool] = set()

    def greedy(costing: Costing) -> LinearPlan:
        searched.add(OneWayJoin.BLOOM_S in costing.algorithms)
        return greedy_plan(costing)

    monkeypatch.setattr(replanning, "greedy_plan", greedy)
    assert drift(replan_every=10, bloom=bloom).run(directory).verdict.exact
    assert searched == {bloom}
