"""A run that is watched says what each operator did, and the kernel charges operators by it."""

from __future__ import annotations

from pathlib import Path

from netsim.cost import load_profile
from netsim.operator_cost import GROUPS, OperatorCost
from scenarios.calibration.fit import Calibrated, write
from scenarios.calibration.observe import observe
from scenarios.plan import make_plan
from scenarios.run_config import RunConfig
from scenarios.simulation import simulate
from tests.scenarios.calibration.conftest import BATCH, ROWS


def test_every_operator_is_watched(split_join: RunConfig) -> None:
    observed = observe(make_plan(split_join))
    assert set(observed) == {"source", "router", "joiner", "sink"}
    assert observed["source"].rows == ROWS, "what a source sends"
    assert observed["router"].messages == ROWS // BATCH
    assert observed["joiner"].rows == 4 * ROWS
    assert observed["joiner"].work.comparisons > 0
    assert all(one.seconds > 0 for one in observed.values())


def test_an_operator_that_costs_more_takes_longer(split_join: RunConfig, tmp_path: Path) -> None:
    took = {}
    for row_ps in (0, 1_000_000):
        path = tmp_path / f"{row_ps}.toml"
        cost = OperatorCost(message_ps=0, row_ps=row_ps, **dict.fromkeys(GROUPS, 0))
        operators = {"split_join": {"source": cost}}
        measured = Calibrated(base=load_profile(), local_message_ps=0, operators=operators)
        write(measured, path, "for a test")
        directory = tmp_path / str(row_ps)
        directory.mkdir()
        plan = make_plan(split_join.model_copy(update={"profile": str(path)}))
        run = simulate(plan, directory, pairs=False)
        took[row_ps] = run.outcome.virtual_ns
    # A source prepares eight messages at a time, which leave when all are done.
    assert ROWS * 1_000 >= took[1_000_000] - took[0] >= 8 * BATCH * 1_000
