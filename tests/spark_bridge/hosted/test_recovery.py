"""A hosted query that is killed goes on without a pair missing or doubled."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from joins.errors import DataError
from spark_bridge.hosted.host import run_hosted
from tests.spark_bridge.hosted.hosted_jobs import SELF, WINDOW, hosted, pairs_by_numpy, to_be_killed
from tests.waiting import read_line

ROOT = Path(__file__).parents[3]


@contextmanager
def running_until(folder: Path, reached: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run the query in a process of its own until *reached* is there; give it and its JVM."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.spark_bridge.hosted.hosted_jobs", str(folder)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        jvm = int(read_line(process))
        deadline = time.monotonic() + 300
        while not reached.exists():
            assert process.poll() is None, "it ended too early"
            assert time.monotonic() < deadline
            time.sleep(0.002)
        yield process, jvm
    finally:
        process.kill()
        process.wait(60)


def kill_when(folder: Path, reached: Path) -> None:
    with running_until(folder, reached) as (_, jvm):
        os.kill(jvm, signal.SIGKILL)


def test_killed_within_and_between_triggers(spark: Any, tmp_path: Path) -> None:
    query, files = to_be_killed(tmp_path)
    log = tmp_path / "run" / "checkpoint" / "spark"
    written = tmp_path / "run" / "found" / "000002-1-0.parquet"
    kill_when(tmp_path, written)  # a trigger has written some of its results
    assert not (log / "commits" / "1").exists()
    kill_when(tmp_path, log / "commits" / "3")  # a trigger has been committed
    run = run_hosted(query, tmp_path / "arrivals", tmp_path / "run", spark=spark)
    found = spark.read.parquet(str(tmp_path / "run" / "found")).collect()
    wanted = pairs_by_numpy(WINDOW, files)
    assert sorted(tuple(row) for row in found) == wanted
    assert run.totals.pairs == len(wanted) > 1000
    assert sum(rows for rows, _ in run.triggers) < 600, "it went on, and did not begin anew"


def test_what_is_missing_of_a_shard_is_named(spark: Any, tmp_path: Path) -> None:
    query, _ = hosted("nested_loop", SELF, tmp_path, rows=100, run_rows=50)
    last = max((tmp_path / "arrivals").iterdir())
    last = last.rename(tmp_path / last.name)
    run_hosted(query, tmp_path / "arrivals", tmp_path / "before", spark=spark)
    last.rename(tmp_path / "arrivals" / last.name)
    # Under another name, so that no worker has the shard at hand.
    run = shutil.copytree(tmp_path / "before", tmp_path / "run")
    (kept,) = (run / "checkpoint" / "kept").iterdir()
    kept.unlink()
    with pytest.raises(DataError, match=rf"^{kept} is missing, .*put it back, or delete {run}"):
        run_hosted(query, tmp_path / "arrivals", run, spark=spark)


def test_an_interrupt_leaves_no_process(tmp_path: Path) -> None:
    begun = tmp_path / "run" / "checkpoint" / "spark" / "offsets" / "0"
    with running_until(tmp_path, begun) as (process, jvm):
        process.send_signal(signal.SIGINT)
        assert process.wait(60) != 0
        assert not Path(f"/proc/{jvm}").exists()
