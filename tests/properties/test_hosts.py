"""Where actors live, and what happens to them between messages, changes nothing of a run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st

from actors import state
from actors.hosting import ray_processes
from actors.hosting.inline import InlineHost
from actors.hosting.ray_processes import RayProcesses
from actors.protocol import ActorSpec, Wiring
from scenarios import run as running
from tests.actors.meshes import use_threads
from tests.properties.jobs import RandomJob, on_jobs
from topologies import TOPOLOGIES

NAMES = list(TOPOLOGIES)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


class RestoringHost(InlineHost):
    """Replaces every actor by a new one, restored from its snapshot on disk, at each message."""

    def __init__(
        self,
        specs: Mapping[str, ActorSpec],
        wiring: Wiring,
        seed: int,
        *,
        path: Path,
    ) -> None:
        super().__init__(specs, wiring, seed, serialise=True)
        self._specs = specs
        self._path = path

    def submit(
        self, ticket: int, actor: str, sender: str, port: str, handle: Any, now: int
    ) -> None:
        state.save(self.cells[actor].actor.snapshot(), self._path)
        self.cells[actor].actor = self._specs[actor].build()
        self.cells[actor].actor.restore(state.load(self._path))
        super().submit(ticket, actor, sender, port, handle, now)


def check_equal_to_inline(job: RandomJob, data: st.DataObject, directory: Path) -> None:
    processes = data.draw(st.integers(1, 3))
    inline = job.run(directory, pairs=True)
    pairs = (directory / "results.parquet").read_bytes()
    elsewhere = job.run(directory, pairs=True, backend="ray", processes=processes)
    assert elsewhere.outcome == inline.outcome
    assert elsewhere.verdict == inline.verdict
    assert (directory / "results.parquet").read_bytes() == pairs


class KeptProcesses(RayProcesses):
    """Keeps Ray's processes from run to run: starting them takes seconds."""

    kept: ClassVar[list[Any]] = []

    def _start(self, count: int) -> list[Any]:
        self.kept.extend(super()._start(count - len(self.kept)))
        return self.kept[:count]

    def _end(self) -> None:
        pass


def test_ray_has_the_digest_the_pairs_and_the_verdict_of_inline(
    ray_running: None, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_processes, "RayProcesses", KeptProcesses)

    @on_jobs("spo_join", examples=20)
    def check(job: RandomJob, data: st.DataObject) -> None:
        check_equal_to_inline(job, data, directory)

    check()
    for process in KeptProcesses.kept:
        ray_processes.ray.kill(process)


@pytest.mark.parametrize("name", NAMES)
def test_other_processes_have_the_digest_the_pairs_and_the_verdict_of_inline(
    name: str, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_threads(monkeypatch)

    @on_jobs(name, examples=10)
    def check(job: RandomJob, data: st.DataObject) -> None:
        check_equal_to_inline(job, data, directory)

    check()


@pytest.mark.parametrize("hardship", ["restored from disk at every message", "shipped and frozen"])
@pytest.mark.parametrize("name", NAMES)
def test_hardships_that_another_process_would_bring_change_nothing(
    name: str, hardship: str, directory: Path
) -> None:
    """State outside snapshots, or payloads changed or kept by reference, would be found here."""
    hosts = {
        "restored from disk at every message": partial(RestoringHost, path=directory / "state.npz"),
        "shipped and frozen": partial(InlineHost, serialise=True),
    }

    @on_jobs(name, examples=30 if name == "spo_join" else 10)
    def check(job: RandomJob, data: st.DataObject) -> None:
        plain = job.run(directory)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(running, "InlineHost", hosts[hardship])
            hardened = job.run(directory)
        assert hardened.outcome == plain.outcome
        assert hardened.verdict == plain.verdict

    check()
