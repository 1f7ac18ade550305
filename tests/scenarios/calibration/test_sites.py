"""In a prediction of a live run, its processes are the sites."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from scenarios import config as configs
from scenarios.plan import make_plan
from scenarios.simulation import simulate
from tests.end_to_end.conftest import SELF_JOIN, WINDOW, write_prepared


def test_actors_of_one_process_share_a_core(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    fields = {"a": rng.integers(0, 50, 200), "b": rng.random(200)}
    write_prepared(tmp_path / "s", fields, ts=np.arange(200) * 1_000)
    base = configs.build(
        {
            "query": SELF_JOIN.format(window=WINDOW),
            "topology": "split_join",
            "parameters": {"pes": 4},
            "streams": [{"files": [str(tmp_path / "s")]}],
            "feeding": {"batch_rows": 20},
            "network": {"preset": "same-host"},
        },
        where="test",
    )
    took = {}
    for sites, processes in (("placed", 2), ("processes", 3), ("processes", 1)):
        settings = {"network.sites": sites, "processes": processes}
        plan = make_plan(configs.change(base, settings))
        found = set(plan.graph(pairs=False).placement.values())
        if sites == "processes":
            assert found == {f"process.{home}" for home in range(processes)}
        directory = tmp_path / f"{sites}{processes}"
        directory.mkdir()
        run = simulate(plan, directory, pairs=False)
        took[sites, processes] = run.outcome.virtual_ns
    assert took["placed", 2] < took["processes", 3] < took["processes", 1]
