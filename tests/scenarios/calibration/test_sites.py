"""In a prediction of a live run, its processes are the sites."""

from __future__ import annotations

from pathlib import Path

from scenarios import scenario_files
from scenarios.config import RunConfig
from scenarios.plan import make_plan
from scenarios.preparation import prepare_by_spark
from scenarios.run import simulate


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
