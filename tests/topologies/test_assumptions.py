"""What is assumed of a run is said, with its source, and only of the runs that rest on it."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from scenarios.plan import make_parameters
from scenarios.study.study import load_study
from scenarios.surveys.survey import AnySurvey
from topologies import find_topology
from topologies.assumptions import ASSUMPTIONS, assumptions_of


def names(topology: str, profile: str = "default", **values: object) -> set[str]:
    parameters = make_parameters(find_topology(topology), values)
    return {one.name for one in assumptions_of(topology, profile, parameters)}


def test_every_run_assumes_messages_and_caches() -> None:
    assert names("hash_join") == {"messages", "caches"}
    assert names("hash_join", "mine.toml") == {"caches"}


@pytest.mark.parametrize(
    ("topology", "profile", "values", "more"),
    [
        ("ibwj", "shared_memory", {}, {"messages in shared memory"}),
        ("ibwj", "mine", {"threads": 8}, {"atomic operations", "memory of threads"}),
        (
            "ibwj",
            "mine",
            {"threads": 16, "cores": 8},
            {"atomic operations", "memory of threads", "hyper-threads"},
        ),
        ("panjoin", "rdma", {}, {"messages by remote memory access"}),
        ("scale_oij", "mine", {}, {"atomic operations", "contention"}),
        ("hash_join", "multicore", {}, {"messages within a machine"}),
        (
            "panjoin",
            "mine",
            {"device": "accelerator", "results": "manager"},
            {"the board", "power", "eight cores"},
        ),
        ("panjoin", "mine", {"threads": 2}, {"threads of a worker"}),
        ("spo_join", "mine", {"threads": 2}, {"segments by threads"}),
        ("semijoin", "mine", {"replan_every": 10}, {"choosing a plan"}),
    ],
)
def test_what_a_variant_assumes_is_named(
    topology: str, profile: str, values: dict[str, object], more: set[str]
) -> None:
    assert names(topology, profile, **values) == {"caches"} | more


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
    ("study", "assumed"),
    [
        ("pim-fig11d", {"caches", "atomic operations", "hyper-threads", "memory of threads"}),
        ("pim-fig09b", {"caches"}),
        ("semijoin-table3", {"messages"}),
    ],
)
def test_a_study_lists_what_its_surveys_assume(study: str, assumed: set[str]) -> None:
    read = load_study(study, scale="smoke")
    assert read is not None
    surveyed = [point for point in read.points if point.config.survey]
    assert surveyed
    assert {one.name for one in replace(read, points=tuple(surveyed)).assumptions} == assumed


def test_surveys_assume_what_is_listed() -> None:
    known = {one.name for one in ASSUMPTIONS}
    for kind in get_args(get_args(AnySurvey)[0]):
        assert set(kind.assumed) <= known
