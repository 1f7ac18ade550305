"""Live runs are exactly right in whatever order messages meet, and whatever process is lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from actors.hosting.live import recovery
from scenarios.worlds.drawing import draw_worlds
from tests.actors.meshes import use_threads
from topologies import TOPOLOGIES


@pytest.mark.parametrize("name", list(TOPOLOGIES))
def test_whatever_claims_exactness_is_exact_live(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_threads(monkeypatch)
    for drawn in draw_worlds(TOPOLOGIES[name], 12, exact=True):
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
    monkeypatch.setattr(recovery, "_MOST_OF_THE_TIME", 0)  # a snapshot whenever one is due
    losses = snapshots = 0
    for drawn in draw_worlds(TOPOLOGIES[name], 5, exact=True):
        world = replace(drawn, faults=[])
        folder = tmp_path / str(world.seed)
        folder.mkdir()
        rng = np.random.default_rng(world.seed)
        kills = [(int(rng.integers(40)), int(rng.integers(3))) for _ in range(2)]
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
        losses += report.outcome.recovered.crashes
        snapshots += report.outcome.recovered.snapshots
    assert losses
    assert snapshots
