"""Live runs are exactly right whatever the order in which messages happen to meet."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import strategies as st

from joinsim._random_runs import RandomJob, on_jobs
from tests.actors.meshes import use_threads
from topologies import TOPOLOGIES


@pytest.mark.parametrize("name", list(TOPOLOGIES))
def test_whatever_claims_exactness_is_exact_live(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_threads(monkeypatch)

    @on_jobs(name, examples=12, exact=True)
    def check(job: RandomJob, data: st.DataObject) -> None:
        report = job.run(
            tmp_path,
            pairs=True,
            backend="ray",
            clock="live",
            processes=data.draw(st.integers(1, 3), "processes"),
            feeding=job.feeding | {"rate_tps": None},  # else tuples come a few in a real second
        )
        assert report.verdict.exact
        assert report.verdict.passed is not False
        assert report.outcome.in_flight == 0
        assert report.outcome.digest is None

    check()
