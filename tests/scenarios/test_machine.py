"""Processes that work is given to, started by a script without a guard; and measured memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from scenarios import machine
from scenarios.machine import chain, chase, measure_memory

SCRIPT = """
import sys
print("begun", file=sys.stderr)

import joinsim as js
from joinsim._calls import of_query
from scenarios.machine import process_pool
from topologies.window_join import SplitJoin

class Mine(SplitJoin):
    name = "mine"

data = {"T": {"x": list(range(50))}}
query = "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '5' ON '20')"
with process_pool(2) as pool:
    print(*pool.map(abs, [-1, 2, -3]))
swept = js.sweep(query, data, over={"pes": [1, 2]}, topology="split_join", processes=2)
print(swept.points.num_rows)
compared = of_query(query, data, Mine).compare_engines(["inline", "duckdb"]).summary
print(*(one["engine"] for one in compared["engines"]))
print(compared["refused"][0]["reason"])
print(__file__, __spec__)
"""


def test_a_script_runs_once_whatever_it_starts(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    ended = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert ended.stderr.splitlines() == ["begun"]
    results, points, engines, refusal, origin = ended.stdout.splitlines()
    assert results == "1 2 3"
    assert points == "2"
    assert engines == "duckdb"
    assert "does not know the class Mine of your script: define it in a module" in refusal
    assert origin == f"{script} None"


def test_a_chain_visits_every_line_once() -> None:
    following = chain(1 << 14)
    place, seen = 0, set()
    for _ in range(len(following) // 8):
        seen.add(place)
        place = int(following[place])
    assert place == 0
    assert seen == set(range(0, len(following), 8))
    assert chase(following, 3) == following[following[following[0]]]


def test_memory_is_measured_at_every_size() -> None:
    memory = measure_memory(sizes=(1 << 14, 1 << 22), cores=2)
    assert memory.sizes == (1 << 14, 1 << 22)
    assert memory.cores == 2
    assert np.all(np.array([memory.wait_ps, memory.read_ps]) > 0)


def test_what_cores_take_from_each_other_is_relative_to_one_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read_ps(chains: list[np.ndarray]) -> int:
        if len(chains) == 1:
            return 1_000
        return 2_500 if chains[0] is not chains[1] else 990  # less than alone is noise

    monkeypatch.setattr(machine, "_read_ps", read_ps)
    memory = measure_memory(sizes=(1 << 14,), cores=2)
    assert (memory.read_ps, memory.apart_percents, memory.same_percents) == (
        (1_000,), (250,), (100,),
    )  # fmt: skip
