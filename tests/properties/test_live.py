"""Live runs are exactly right whatever the order in which messages happen to meet."""

from __future__ import annotations

from pathlib import Path

import pytest

from joinsim._random_runs import RandomJob, on_jobs
from tests.actors.meshes import use_threads
from topologies import TOPOLOGIES


@pytest.mark.parametrize("name", list(TOPOLOGIES))
def test_whatever_claims_exactness_is_exact_live(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_threads(monkeypatch)

    @on_jobs(name, examples=12, exact=True)
    def check(job: RandomJob, folder: Path) -> None:
        report = job.run(
            folder,
            pairs=True,
            backend="ray",
            clock="live",
            processes=1 + job.seed % 3,
            feeding=job.feeding | {"rate_tps": None},  # else tuples come a few in a real second
        )
        assert report.verdict.exact
        assert report.verdict.passed is not False
        assert report.outcome.in_flight == 0
        assert report.outcome.digest is None

    check()
