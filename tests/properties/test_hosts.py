"""Where actors live, and what happens to them between messages, changes nothing of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from actors.hosting import ray_processes
from actors.hosting.processes import Label
from actors.hosting.ray_cluster import ray
from scenarios.run import simulate
from scenarios.run_directory import clear_results, read_results
from scenarios.worlds import World
from scenarios.worlds.drawing import draw_worlds
from tests.actors.meshes import use_threads
from tests.properties.families import examples_of
from topologies import TOPOLOGIES

NAMES = list(TOPOLOGIES)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


def check_equal_to_inline(world: World, directory: Path) -> None:
    if world.lossy:
        return  # without a transport it runs inline alone
    inline = world.plan(directory, pairs=True)
    elsewhere = inline.with_settings(backend="ray", processes=1 + world.seed % 3)
    found = []
    for plan in (inline, elsewhere):
        clear_results(directory)
        outcome = simulate(plan, directory, pairs=True).outcome
        found.append((outcome, read_results(directory)))
    assert found[0] == found[1]


def reuse_processes(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Have runs share Ray's processes, whatever their labels: starting them takes seconds."""
    started: list[Any] = []
    start = ray_processes._start

    def start_missing(run: str, labels: Sequence[Label], cores: float) -> tuple[str, list[Any]]:
        started.extend(start(run, labels[len(started) :], cores)[1])
        return run, started[: len(labels)]

    monkeypatch.setattr(ray_processes, "_start", start_missing)
    monkeypatch.setattr(ray_processes, "_end", lambda processes: None)
    return started


def test_ray_has_the_digest_and_the_results_of_inline(
    ray_running: None, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = reuse_processes(monkeypatch)

    for world in draw_worlds(TOPOLOGIES["spo_join"], 20):
        check_equal_to_inline(world, directory)
    for process in started:
        ray.kill(process)


@pytest.mark.parametrize("name", NAMES)
def test_other_processes_have_the_digest_and_the_results_of_inline(
    name: str, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_threads(monkeypatch)
    for world in draw_worlds(TOPOLOGIES[name], examples_of(TOPOLOGIES[name], 10)):
        check_equal_to_inline(world, directory)
