"""A live run watched says what each operator did, and the kernel charges operators by that."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from netsim.cost import OperatorCost, TransportCost, load_profile
from scenarios import scenario_files
from scenarios.calibration.fit import Calibrated, write_profile
from scenarios.calibration.live_runs import Watched
from scenarios.config import RunConfig
from scenarios.plan import make_plan
from scenarios.preparation import prepare_by_spark
from scenarios.run import simulate
from tests.actors.meshes import Threads, labels
from tests.scenarios.calibration.conftest import BATCH, ROWS


def test_every_operator_is_watched(split_join: RunConfig) -> None:
    watched = Watched()
    with Threads(labels(2)) as processes:
        watched.observe(make_plan(split_join, prepare=prepare_by_spark), cast(Any, processes))
    operators = {role: served for role, (served,) in watched.operators["split_join"].items()}
    carried = watched.carried
    assert set(operators) == {"source", "router", "joiner", "sink"}
    assert operators["source"].rows == ROWS, "what a source sends"
    assert operators["router"].messages == ROWS // BATCH
    assert operators["joiner"].rows == 4 * ROWS
    assert sum(work.comparisons for _, _, work in operators["joiner"].steps()) > 0
    assert all(served.worked_ns > 0 for served in operators.values())
    messages = sum(served.messages for served in operators.values())
    assert sum(process.served for process in carried) == messages
    assert sum(process.sent for process in carried) == sum(process.received for process in carried)
    assert sum(process.sent_bytes for process in carried) > 8 * ROWS


def virtual_ns(
    config: RunConfig, directory: Path, *, row_ps: int = 0, sent_message_ps: int = 0
) -> int:
    """Return how long *config* takes with a source of such costs."""
    directory.mkdir()
    path = directory / "profile.toml"
    transport = TransportCost(local_message_ps=0, sent_message_ps=sent_message_ps, sent_byte_ps=0)
    cost = OperatorCost(message_ps=0, row_ps=row_ps, work_percent=0)
    operators = {"split_join": {"source": cost}}
    measured = Calibrated(base=load_profile(), transport=transport, operators=operators)
    write_profile(measured, path, "for a test")
    plan = make_plan(config.model_copy(update={"profile": str(path)}), prepare=prepare_by_spark)
    return simulate(plan, directory, pairs=False).outcome.virtual_ns


def test_an_operator_that_costs_more_takes_longer(split_join: RunConfig, tmp_path: Path) -> None:
    free = virtual_ns(split_join, tmp_path / "free")
    took = virtual_ns(split_join, tmp_path / "dear", row_ps=1_000_000)
    # A source prepares eight messages at a time, which leave when all are done.
    assert ROWS * 1_000 >= took - free >= 8 * BATCH * 1_000


def test_sending_costs_only_what_leaves_the_site(split_join: RunConfig, tmp_path: Path) -> None:
    took = {}
    for processes in (1, 3):
        alone = scenario_files.change(
            split_join, {"network.sites": "processes", "processes": processes}
        )
        free = virtual_ns(alone, tmp_path / f"free{processes}")
        dear = virtual_ns(alone, tmp_path / f"dear{processes}", sent_message_ps=1_000_000_000)
        took[processes] = dear - free
    assert took[1] == 0
    assert ROWS // BATCH * 1_000_000 >= took[3] >= 8 * 1_000_000


def test_actors_of_one_process_share_a_core(split_join: RunConfig, tmp_path: Path) -> None:
    took = {}
    for sites, processes in (("placed", 2), ("processes", 3), ("processes", 1)):
        settings = {"network.sites": sites, "processes": processes}
        plan = make_plan(scenario_files.change(split_join, settings), prepare=prepare_by_spark)
        found = set(plan.graph(pairs=False).placement.values())
        if sites == "processes":
            assert found == {f"process.{home}" for home in range(processes)}
        directory = tmp_path / f"{sites}{processes}"
        directory.mkdir()
        run = simulate(plan, directory, pairs=False)
        took[sites, processes] = run.outcome.virtual_ns
    assert took["placed", 2] < took["processes", 3] < took["processes", 1]
