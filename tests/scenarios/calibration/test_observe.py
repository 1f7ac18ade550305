"""A run that is watched says what each operator did, and the kernel charges operators by it."""

from __future__ import annotations

from pathlib import Path

from netsim.cost import load_profile
from netsim.operator_cost import GROUPS, OperatorCost, Transport
from scenarios.calibration.fit import Calibrated, write
from scenarios.calibration.observe import observe
from scenarios.configuration import configs
from scenarios.configuration.run_config import RunConfig
from scenarios.running.plan import make_plan
from scenarios.running.simulation import simulate
from tests.scenarios.calibration.conftest import BATCH, ROWS


def test_every_operator_is_watched(split_join: RunConfig) -> None:
    observed = observe(make_plan(split_join))
    assert set(observed) == {"source", "router", "joiner", "sink"}
    assert observed["source"].rows == ROWS, "what a source sends"
    assert observed["router"].messages == ROWS // BATCH
    assert observed["joiner"].rows == 4 * ROWS
    assert observed["joiner"].work.comparisons > 0
    assert all(one.seconds > 0 for one in observed.values())


def virtual_ns(
    config: RunConfig, directory: Path, *, row_ps: int = 0, sent_message_ps: int = 0
) -> int:
    """Return how long *config* takes with a source of such costs."""
    directory.mkdir()
    path = directory / "profile.toml"
    transport = Transport(local_message_ps=0, sent_message_ps=sent_message_ps, sent_byte_ps=0)
    cost = OperatorCost(message_ps=0, row_ps=row_ps, **dict.fromkeys(GROUPS, 0))
    operators = {"split_join": {"source": cost}}
    measured = Calibrated(base=load_profile(), transport=transport, operators=operators)
    write(measured, path, "for a test")
    plan = make_plan(config.model_copy(update={"profile": str(path)}))
    return simulate(plan, directory, pairs=False).outcome.virtual_ns


def test_an_operator_that_costs_more_takes_longer(split_join: RunConfig, tmp_path: Path) -> None:
    free = virtual_ns(split_join, tmp_path / "free")
    took = virtual_ns(split_join, tmp_path / "dear", row_ps=1_000_000)
    # A source prepares eight messages at a time, which leave when all are done.
    assert ROWS * 1_000 >= took - free >= 8 * BATCH * 1_000


def test_sending_costs_only_what_leaves_the_site(split_join: RunConfig, tmp_path: Path) -> None:
    took = {}
    for processes in (1, 3):
        alone = configs.change(split_join, {"network.sites": "processes", "processes": processes})
        free = virtual_ns(alone, tmp_path / f"free{processes}")
        dear = virtual_ns(alone, tmp_path / f"dear{processes}", sent_message_ps=1_000_000_000)
        took[processes] = dear - free
    assert took[1] == 0
    assert ROWS // BATCH * 1_000_000 >= took[3] >= 8 * 1_000_000
