from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from joins.state import array_bytes
from scenarios import many_runs, scenario_files
from scenarios.config import RunConfig
from scenarios.many_runs import VARIANTS, RunResult, systems_by_label
from scenarios.scenario_files import ConfigError
from topologies import TOPOLOGIES, TopologyError

QUERY = "SELECT s.id FROM s WHERE s.a1 > s.a2 WINDOW AS (SLIDE INTERVAL '5' ON '10')"


@pytest.fixture
def base(tmp_path: Path) -> RunConfig:
    values = {
        "query": QUERY,
        "streams": [{"files": ["s"]}],
        "topology": "spo_join",
        "parameters": {"po_join_pes": 3},
    }
    return scenario_files.build(values, where="test")


def test_all_systems_there_are_take_part(base: RunConfig) -> None:
    topologies = {config.topology for config in systems_by_label(base, [], {}).values()}
    assert topologies == set(TOPOLOGIES)


def test_no_label_is_that_of_two_systems(base: RunConfig) -> None:
    variants = sum(len(VARIANTS.get(name, {name: {}})) for name in TOPOLOGIES)
    assert len(systems_by_label(base, [], {})) == variants


def test_a_parameter_goes_to_the_systems_that_have_it(base: RunConfig) -> None:
    configs = systems_by_label(
        base, ["spo_join", "split_join"], {"pes": "7", "rows": "50"}
    ).values()
    assert {config.rows for config in configs} == {50}
    for config in configs:
        expected = "7" if config.topology == "split_join" else None
        assert config.parameters.get("pes") == expected


def test_one_topology_is_refused_where_several_are_compared(base: RunConfig) -> None:
    with pytest.raises(ConfigError, match="topology = 'bchj': several are compared here"):
        systems_by_label(base, [], {"topology": "bchj"})


def test_the_scenarios_parameters_go_to_its_own_system(base: RunConfig) -> None:
    for config in systems_by_label(base, ["spo_join", "split_join"], {}).values():
        expected = 3 if config.topology == "spo_join" else None
        assert config.parameters.get("po_join_pes") == expected


def test_a_setting_that_makes_variants_one_leaves_one(base: RunConfig) -> None:
    settings = {"mutable": "hash", "immutable": "css_hash", "merge_threshold": "slide"}
    variants = systems_by_label(base, ["spo_join"], settings).values()
    parameters = {repr(sorted(config.parameters.items())) for config in variants}
    assert len(parameters) == len(variants)
    assert len(variants) < len(systems_by_label(base, ["spo_join"], {}))


def test_a_setting_that_means_nothing_is_refused(base: RunConfig) -> None:
    with pytest.raises(ConfigError, match="colour: no system compared here"):
        systems_by_label(base, [], {"colour": "red"})


def test_a_system_there_is_not_is_refused(base: RunConfig) -> None:
    with pytest.raises(TopologyError, match="no topology is called 'spojoin'"):
        systems_by_label(base, ["spojoin"], {})


def test_bytes_held_count_each_array_once_and_views_as_what_they_are_views_of() -> None:
    class Holder:
        __slots__ = ("array", "others")

    holder: Any = Holder()
    holder.array = np.zeros(100)
    holder.others = {"view": holder.array[:10], "again": [holder.array, (np.zeros(5, np.int8),)]}
    assert array_bytes(holder) == 805


@pytest.mark.parametrize(
    ("expected", "produced", "exact", "is_exact"),
    [(0, 0, True, None), (3, 3, True, True), (3, 2, False, False)],
)
def test_only_what_was_tested_is_exact_or_not(
    expected: int, produced: int, exact: bool, is_exact: bool | None, base: RunConfig
) -> None:
    verdict = {"expected": expected, "produced": produced, "exact": exact}
    assert RunResult(config=base, record={"verdict": verdict}).is_exact is is_exact
    assert RunResult(config=base).is_exact is None


def test_a_system_of_which_no_arrival_is_measured_is_the_last(
    base: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ran(plan: Any, *_: Any, **__: Any) -> RunResult:
        return RunResult(config=base, record={"throughput_tps": plan.tps})

    monkeypatch.setattr(many_runs, "run_one_of_many", ran)
    plans: Any = {
        str(tps): SimpleNamespace(tps=tps, config=base, streams=(), rows=())
        for tps in (None, 5.0, 7.0)
    }
    compared = many_runs.run_all(
        plans, {}, {}, tmp_path, on_point=lambda *_: None, replay=lambda _: ""
    )
    assert list(compared.results) == ["7.0", "5.0", "None"]
