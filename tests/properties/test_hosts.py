"""Where actors live, and what happens to them between messages, changes nothing of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from actors.hosting import ray_processes
from actors.hosting.processes import Label
from actors.hosting.ray_cluster import ray
from actors.hosting.ray_processes import RayProcesses
from joinsim._random_runs import RandomJob, on_jobs
from tests.actors.meshes import use_threads
from topologies import TOPOLOGIES

NAMES = list(TOPOLOGIES)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


def check_equal_to_inline(job: RandomJob, directory: Path, processes: int) -> None:
    inline = job.run(directory, pairs=True)
    pairs = (directory / "results.parquet").read_bytes()
    elsewhere = job.run(directory, pairs=True, backend="ray", processes=processes)
    assert elsewhere.outcome == inline.outcome
    assert elsewhere.verdict == inline.verdict
    assert (directory / "results.parquet").read_bytes() == pairs


class KeptProcesses(RayProcesses):
    """Keeps Ray's processes from run to run: starting them takes seconds."""

    kept: ClassVar[list[Any]] = []

    def _start(self, labels: Sequence[Label], cores: float) -> list[Any]:
        self.kept.extend(super()._start(labels[len(self.kept) :], cores))
        return self.kept[: len(labels)]

    def _end(self) -> None:
        pass


def test_ray_has_the_digest_the_pairs_and_the_verdict_of_inline(
    ray_running: None, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_processes, "RayProcesses", KeptProcesses)

    @on_jobs("spo_join", examples=20)
    def check(job: RandomJob, directory: Path) -> None:
        check_equal_to_inline(job, directory, processes=1 + job.seed % 3)

    check()
    for process in KeptProcesses.kept:
        ray.kill(process)


@pytest.mark.parametrize("name", NAMES)
def test_other_processes_have_the_digest_the_pairs_and_the_verdict_of_inline(
    name: str, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_threads(monkeypatch)

    @on_jobs(name, examples=10)
    def check(job: RandomJob, directory: Path) -> None:
        check_equal_to_inline(job, directory, processes=1 + job.seed % 3)

    check()
