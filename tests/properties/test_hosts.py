"""Where actors live, and what happens to them between messages, changes nothing of a run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from actors import state
from actors.hosting.inline import InlineHost
from actors.protocol import ActorSpec, Wiring
from scenarios import simulation
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


@pytest.mark.parametrize("name", NAMES)
def test_ray_has_the_digest_the_pairs_and_the_verdict_of_inline(
    name: str, ray_running: None, directory: Path
) -> None:
    # Every example starts processes anew, which takes seconds: one system stands for the host, and
    # of the others a few runs show that their payloads travel.
    @on_jobs(name, examples=20 if name == "spo_join" else 5)
    def check(job: RandomJob, data: st.DataObject) -> None:
        processes = data.draw(st.integers(1, 3))
        inline = job.run(directory, pairs=True)
        pairs = (directory / "results.parquet").read_bytes()
        on_ray = job.run(directory, pairs=True, backend="ray", processes=processes)
        assert on_ray.outcome == inline.outcome
        assert on_ray.verdict == inline.verdict
        assert (directory / "results.parquet").read_bytes() == pairs

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
            patch.setattr(simulation, "InlineHost", hosts[hardship])
            hardened = job.run(directory)
        assert hardened.outcome == plain.outcome
        assert hardened.verdict == plain.verdict

    check()
