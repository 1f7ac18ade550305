"""What executors write: pairs or counts, whole or not at all, and late tuples apart."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from actors.results import Late, Output
from joins.matches import Matches
from spark_bridge.hosted.stage import write_results

MATCHES = Matches(
    stream=1,
    probe_id=np.array([7, 9]),
    count=np.array([2, 1]),
    fingerprint=np.array([3, 2**64 - 1], np.uint64),
    match_id=np.array([4, 5, 6]),
)
EMITTED = [
    Output(MATCHES, np.zeros(2, np.int64), "joiner"),
    Late(stream=0, ids=np.array([8]), ts=np.array([1]), watermark=2, span=(0, 0)),
]


@pytest.mark.parametrize(
    ("pairs", "rows"),
    [
        (True, [(1, 7, 4), (1, 7, 5), (1, 9, 6), (0, 8, None)]),
        (False, [(1, 7, 2, 3), (1, 9, 1, -1), (0, 8, None, None)]),
    ],
)
def test_a_trigger_that_runs_again_leaves_its_results_once(
    tmp_path: Path, pairs: bool, rows: list[tuple[int | None, ...]]
) -> None:
    path = tmp_path / "000001-0-0.parquet"
    for _ in range(2):
        write_results(EMITTED, path, pairs=pairs)
    assert [tuple(row.values()) for row in pq.read_table(path).to_pylist()] == rows
    assert list(tmp_path.iterdir()) == [path]


def test_a_trigger_that_finds_nothing_leaves_no_file(tmp_path: Path) -> None:
    write_results(["what an actor tells of itself"], tmp_path / "000001-0-0.parquet", pairs=True)
    assert not list(tmp_path.iterdir())


LOADED = """
import sys
from pathlib import Path
import numpy as np
from actors.results import Late, Output
from joins.matches import Matches
from spark_bridge.hosted.stage import write_results
ids = np.arange(3)
matches = Matches(stream=0, probe_id=ids, count=ids, fingerprint=ids.view(np.uint64), match_id=ids)
late = Late(stream=0, ids=ids, ts=ids, watermark=9, span=(0, 0))
write_results([Output(matches, ids, "joiner"), late], Path(sys.argv[1]), pairs=True)
print(*{"pandas", "networkx", "pyarrow.compute"}.intersection(sys.modules))
"""


def test_a_worker_loads_no_module_that_it_can_do_without(tmp_path: Path) -> None:
    """What its first trigger would wait for."""
    command = [sys.executable, "-c", LOADED, os.fspath(tmp_path / "found.parquet")]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == []
    assert pq.read_table(tmp_path / "found.parquet").num_rows == 6
