"""Live runs are exactly right in whatever order messages meet, and whatever process is lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from actors.hosting import saved_run
from scenarios.worlds.drawing import draw_worlds
from tests.actors.meshes import use_threads
from tests.properties.families import examples_of
from topologies import TOPOLOGIES

_FRAMES_OF_ANY_RUN = 2
"""A run is not over when its driver has received this little: a process killed then is lost."""

_FRAMES_OF_MOST_RUNS = 40


@pytest.mark.parametrize("name", list(TOPOLOGIES))
def test_whatever_claims_exactness_is_exact_live(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_threads(monkeypatch)
    for drawn in draw_worlds(TOPOLOGIES[name], examples_of(TOPOLOGIES[name], 12), exact=True):
        world = replace(drawn, faults=[])  # which are of virtual time
        folder = tmp_path / str(world.seed)
        folder.mkdir()
        report = world.run(
            folder,
            pairs=True,
            backend="ray",
            clock="live",
            processes=1 + world.seed % 3,
            feeding=world.feeding | {"rate_tps": None},  # else tuples come a few in a real second
        )
        assert report.verdict.exact
        assert report.verdict.passed is not False
        assert report.outcome.in_flight == 0
        assert report.outcome.digest is None


@pytest.mark.parametrize("name", list(TOPOLOGIES))
def test_whatever_claims_exactness_is_exact_live_when_processes_are_lost(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved_run, "_PAUSE_FACTOR", 0)  # a snapshot whenever one is due
    snapshots = 0
    for drawn in draw_worlds(TOPOLOGIES[name], examples_of(TOPOLOGIES[name], 5), exact=True):
        world = replace(drawn, faults=[])
        folder = tmp_path / str(world.seed)
        folder.mkdir()
        rng = np.random.default_rng(world.seed)
        kills = [
            (int(rng.integers(frames)), int(rng.integers(3)))
            for frames in (_FRAMES_OF_ANY_RUN, _FRAMES_OF_MOST_RUNS)
        ]
        use_threads(monkeypatch, kills)
        report = world.run(
            folder,
            pairs=True,
            backend="ray",
            clock="live",
            recovery={"interval": 1},
            processes=1 + world.seed % 3,
            feeding=world.feeding | {"rate_tps": None},
        )
        assert report.verdict.exact
        assert report.verdict.passed is not False
        assert report.outcome.in_flight == 0
        assert report.outcome.recovered
        assert report.outcome.recovered.crashes
        snapshots += report.outcome.recovered.snapshots
    assert snapshots
