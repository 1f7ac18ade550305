"""Every topology of the registry that claims exactness, on random runs, against the oracle."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st

from tests.properties.jobs import RandomJob, on_jobs
from topologies import TOPOLOGIES

EXACT = [name for name, topology in TOPOLOGIES.items() if topology.exact]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


@pytest.mark.parametrize("name", EXACT)
def test_the_answer_is_exactly_right(name: str, directory: Path) -> None:
    @on_jobs(name, examples=150, exact=True)
    def check(job: RandomJob, data: st.DataObject) -> None:
        verdict = job.run(directory).verdict
        assert verdict.exact, (verdict, job)
        assert all(check.passed is not False for check in verdict.checks), verdict.checks

    check()


@pytest.mark.parametrize("name", list(TOPOLOGIES))
def test_pairs_written_are_the_pairs_counted_and_change_nothing(name: str, directory: Path) -> None:
    @on_jobs(name, examples=25)
    def check(job: RandomJob, data: st.DataObject) -> None:
        counted = job.run(directory)
        written = job.run(directory, pairs=True)
        pairs = pq.read_table(directory / "results.parquet")
        assert counted.outcome.digest == written.outcome.digest
        assert pairs.num_rows == counted.verdict.produced
        assert counted.verdict == written.verdict

    check()
