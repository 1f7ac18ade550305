"""The file of a trace: whole at the end of its block, or named with what the disk said."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from joins.errors import OutputError
from netsim.trace import COLUMNS, Trace, pack_row


def test_the_disk_takes_a_trace_beside_what_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, forced = tmp_path / "trace.parquet", threading.Event()
    monkeypatch.setattr(os, "fsync", lambda descriptor: forced.wait(60))
    with Trace(["a", "out"], path) as trace:
        trace.record(pack_row(0, 0, 1, *[7] * (len(COLUMNS) - 3)))
        trace.close()
        assert not path.exists()  # and yet it has returned
        forced.set()
    assert pq.read_table(path)["done_ns"].to_pylist() == [7]


def test_a_disk_that_is_full_when_a_trace_is_forced_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    path = tmp_path / "trace.parquet"
    message = f"cannot write to {path}: No space left"
    with pytest.raises(OutputError, match=message), Trace(["a", "out"], path) as trace:
        trace.close()
    assert not list(tmp_path.iterdir())


def test_a_trace_that_is_not_closed_leaves_no_file(tmp_path: Path) -> None:
    with Trace(["a", "out"], tmp_path / "trace.parquet"):
        pass
    assert not list(tmp_path.iterdir())
