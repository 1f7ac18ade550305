"""What is assumed of a run is said, with its source, and only of the runs that rest on it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from netsim.cost import PROFILES, CostProfile, load_profile
from scenarios.plan import make_parameters
from scenarios.study.study import load_study
from scenarios.survey import AnySurvey
from topologies import find_topology
from topologies.assumptions import ASSUMPTIONS, assumptions_of

MINE = replace(load_profile(), message_ps=17_000_000)
"""A profile whose messages were measured."""


def names(topology: str, costs: str | CostProfile = MINE, **values: object) -> set[str]:
    parameters = make_parameters(find_topology(topology), values)
    costs = load_profile(costs) if isinstance(costs, str) else costs
    return {one.name for one in assumptions_of(topology, costs, parameters)}


def test_every_run_assumes_messages_and_caches() -> None:
    assert names("hash_join", "default") == {"messages", "caches"}
    assert names("hash_join") == {"caches"}


ASSUMED = {
    "default": {"messages"},
    "multicore": {"messages within a machine"},
    "shared_memory": {"messages in shared memory"},
    "rdma": {"messages by remote memory access"},
    "free_messages": {"free messages"},
    "free_pointers": {"free messages"},
    "free_calls": {"free messages", "free calls"},
    "slow_merges": {"messages", "slow merges"},
    "even_merges": {"messages in shared memory", "even merges"},
    "free_matches": {"messages in shared memory", "free matches"},
    "slow_matches": {"messages by remote memory access", "slow matches"},
    "slow_atomics": {"messages in shared memory", "slow atomic operations"},
    "priced_pairs": {"messages within a machine", "priced pairs"},
}


@pytest.mark.parametrize("profile", sorted(path.stem for path in PROFILES.glob("*.toml")))
def test_a_profile_assumes_what_it_sets_and_what_it_has_from_another(profile: str) -> None:
    assert names("hash_join", profile) == {"caches"} | ASSUMED[profile]


def test_a_profile_of_ones_own_assumes_what_it_has_from_another(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('[structures]\nlike = "priced_pairs"\n')
    assert names("hash_join", str(mine)) == names("hash_join", "priced_pairs")


@pytest.mark.parametrize(
    ("topology", "values", "more"),
    [
        ("ibwj", {"threads": 8}, {"atomic operations", "memory of threads"}),
        (
            "ibwj",
            {"threads": 16, "cores": 8},
            {"atomic operations", "memory of threads", "hyper-threads"},
        ),
        ("scale_oij", {}, {"atomic operations", "contention"}),
        (
            "panjoin",
            {"device": "accelerator", "results": "manager"},
            {"the board", "power", "eight cores"},
        ),
        ("panjoin", {"threads": 2}, {"threads of a worker"}),
        ("spo_join", {"threads": 2}, {"segments by threads"}),
        ("semijoin", {"replan_every": 10}, {"choosing a plan"}),
    ],
)
def test_what_a_variant_assumes_is_named(
    topology: str, values: dict[str, Any], more: set[str]
) -> None:
    assert names(topology, **values) == {"caches"} | more


def test_every_assumption_says_what_and_from_where() -> None:
    assert len({one.name for one in ASSUMPTIONS}) == len(ASSUMPTIONS)
    for one in ASSUMPTIONS:
        assert one.source in str(one)
        assert not one.text.endswith(".")


def test_a_study_lists_what_its_runs_assume() -> None:
    study = load_study("pim-fig12a", scale="smoke")
    assert study is not None
    names = {one.name for one in study.assumptions}
    assert "hyper-threads" in names
    assert "the board" not in names


@pytest.mark.parametrize(
    ("study", "settings", "assumed"),
    [
        ("pim-fig11d", {}, {"caches", "atomic operations", "hyper-threads", "memory of threads"}),
        ("pim-fig09b", {}, {"caches"}),
        ("pim-fig13a", {}, {"speed of a drift"}),
        ("pim-fig13b", {}, {"speed of a drift"}),
        ("semijoin-table3", {}, {"messages"}),
        ("semijoin-table3", {"profile": "free_messages"}, {"free messages"}),
    ],
)
def test_a_study_lists_what_its_surveys_assume(
    study: str, settings: dict[str, str], assumed: set[str]
) -> None:
    read = load_study(study, scale="smoke", settings=settings)
    assert read is not None
    surveyed = [point for point in read.points if point.config.survey]
    assert surveyed
    assert {one.name for one in replace(read, points=tuple(surveyed)).assumptions} == assumed


def test_surveys_assume_what_is_listed() -> None:
    known = {one.name for one in ASSUMPTIONS}
    for kind in get_args(get_args(AnySurvey)[0]):
        assert set(kind.assumed) <= known
