"""Live runs are exactly right whatever the order in which messages happen to meet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

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
