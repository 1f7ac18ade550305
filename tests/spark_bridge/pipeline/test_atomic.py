"""A stream is there whole or not at all, whatever happens to the run that builds it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from joins.errors import DataError
from spark_bridge import prepared
from spark_bridge.pipeline import pipeline
from spark_bridge.pipeline.pipeline import PREPARE_STAGES, prepare
from spark_bridge.pipeline.raw_source import RawSource
from spark_bridge.prepared import load_stream
from tests.spark_bridge.helpers import prepare_one, tuples, write_parquet
from tests.waiting import read_line

ROOT = Path(__file__).parents[3]


def raw(folder: Path, rows: int = 10) -> Path:
    return write_parquet(folder / "raw.parquet", {"ts": range(rows), "v": range(rows)})


def in_the_open(out: Path) -> list[str]:
    """Return what a person sees in the folder, and every hidden thing but the lock."""
    return sorted(entry.name for entry in out.iterdir() if entry.name != ".R.lock")


def test_a_second_run_starts_nothing(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, out = raw(tmp_path), tmp_path / "out"
    first = prepare_one(out, spark, paths=[file], fields=["v"])
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}

    def refuse(*_: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(pipeline, "spark_session", refuse)
    source = RawSource(name="R", paths=[file], fields=["v"])
    stages: list[str] = []
    (again,) = prepare(
        source, out, segment_rows=1000, progress=lambda stage, *_: stages.append(stage)
    )
    assert again == first
    assert stages == ["R: inspect", "R: done"]
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before


def test_a_change_of_options_or_bytes_replaces_the_stream(spark: Any, tmp_path: Path) -> None:
    file, out = raw(tmp_path), tmp_path / "out"
    for changed, rows in (({}, 10), ({"rows": 7}, 7)):
        stream = prepare_one(out, spark, paths=[file], fields=["v"], **changed)
        assert tuples(stream)["id"].to_pylist() == list(range(rows))
    raw(tmp_path, rows=5)
    stream = prepare_one(out, spark, paths=[file], fields=["v"], rows=7)
    assert tuples(stream)["id"].to_pylist() == list(range(5))
    assert in_the_open(out) == ["R"]


def test_a_failure_at_any_stage_leaves_the_old_stream_and_no_rubbish(
    spark: Any, tmp_path: Path
) -> None:
    file, out = raw(tmp_path), tmp_path / "out"
    old = prepare_one(out, spark, paths=[file], fields=["v"])
    changed = RawSource(name="R", paths=[file], fields=["v"], rows=3)
    for stage in PREPARE_STAGES[2:-1]:

        def fail(said: str, *_: int, at: str = f"R: {stage}") -> None:
            if said == at:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            prepare(changed, out, spark=spark, segment_rows=1000, progress=fail)
        assert load_stream(out / "R") == old, stage
        assert tuples(old).num_rows == 10, stage
        assert in_the_open(out) == ["R"], stage


def test_a_file_that_changes_under_way_is_noticed(spark: Any, tmp_path: Path) -> None:
    file, out = raw(tmp_path), tmp_path / "out"

    def disturb(stage: str, *_: int) -> None:
        if stage == "R: write":
            raw(tmp_path)

    with pytest.raises(DataError, match=r"raw.parquet changed while it was being read"):
        prepare(RawSource(name="R", paths=[file]), out, spark=spark, progress=disturb)
    assert in_the_open(out) == []


def test_a_killed_run_leaves_no_half_stream_and_the_next_one_cleans_up(
    spark: Any, tmp_path: Path
) -> None:
    file, out = raw(tmp_path), tmp_path / "out"
    script = textwrap.dedent(
        f"""
        import time
        from spark_bridge.pipeline.pipeline import prepare
        from spark_bridge.pipeline.raw_source import RawSource

        def wait(stage, done, total):
            if stage == "R: check":  # everything is written, nothing is published
                print("now", flush=True)
                time.sleep(600)

        source = RawSource(name="R", paths=[{str(file)!r}], fields=["v"])
        prepare(source, {str(out)!r}, progress=wait)
        """
    )
    run = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},  # a killed Spark leaves its folder there
    )
    assert read_line(run) == "now\n"
    children = _children(run.pid)
    os.kill(run.pid, signal.SIGKILL)
    run.wait(60)
    assert children, "Spark's JVM ran beside it"
    left = in_the_open(out)
    assert len(left) == 1
    assert left[0].startswith(".R.building-")
    with pytest.raises(DataError, match="is not a prepared stream"):
        load_stream(out / "R")
    stream = prepare_one(out, spark, paths=[file], fields=["v"])
    assert stream.rows == 10
    assert in_the_open(out) == ["R"]
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in children) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()], "the JVM outlived it"


def _children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in listed.split()]


@pytest.mark.parametrize("can_swap", [True, False])
def test_publishing_replaces_a_folder_with_and_without_an_atomic_swap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_swap: bool
) -> None:
    if not can_swap:
        monkeypatch.setattr(prepared, "_exchange", lambda *_: False)
    for value in ("one", "two"):
        with prepared.building(tmp_path, "R") as folder:
            (folder / "stream").mkdir()
            (folder / "stream" / "x").write_text(value)
            prepared.publish(folder / "stream", tmp_path / "R")
        assert (tmp_path / "R" / "x").read_text() == value
        assert in_the_open(tmp_path) == ["R"]


def test_a_run_that_died_between_two_renames_is_recovered(tmp_path: Path) -> None:
    (tmp_path / ".R.old").mkdir()
    (tmp_path / ".R.old" / "x").write_text("old")
    with prepared.building(tmp_path, "R"):
        assert (tmp_path / "R" / "x").read_text() == "old"
    assert in_the_open(tmp_path) == ["R"]


def test_two_processes_do_not_build_one_stream_at_a_time(tmp_path: Path) -> None:
    script = textwrap.dedent(
        f"""
        from pathlib import Path
        from spark_bridge.prepared import building
        with building(Path({str(tmp_path)!r}), "R") as folder:
            print("in", flush=True)
        """
    )
    with prepared.building(tmp_path, "R") as folder:
        other = subprocess.Popen(
            [sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        time.sleep(1)
        assert other.poll() is None, "it waits"
        assert folder.exists(), "and does not take ours for rubbish"
    assert other.communicate(timeout=20)[0] == "in\n"


def test_several_streams_share_one_session_and_come_back_in_order(
    spark: Any, tmp_path: Path
) -> None:
    file = write_parquet(tmp_path / "raw.parquet", {"ts": np.arange(6)})
    sources = [
        RawSource(name=name, paths=[file], where=f"ts % 2 = {rest}")
        for name, rest in (("S", 1), ("R", 0))
    ]
    heard: list[tuple[int, int]] = []
    streams = prepare(
        sources, tmp_path / "out", spark=spark, progress=lambda _, *count: heard.append(count)
    )
    assert [stream.name for stream in streams] == ["S", "R"]
    assert [tuples(stream)["ts"].to_pylist() for stream in streams] == [[1, 3, 5], [0, 2, 4]]
    assert all(0 <= done <= total == 2 * (len(PREPARE_STAGES) - 1) for done, total in heard)
    assert heard[-1][0] == heard[-1][1]
