"""Processes that work is given to, started by a script without a guard."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from scenarios.subprocesses import process_pool

SCRIPT = """
import sys
print("begun", file=sys.stderr)

import joinsim as js
from joinsim._calls import of_query
from scenarios.subprocesses import process_pool
from topologies.window_join import SplitJoinTopology

class Mine(SplitJoinTopology):
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


def test_ctrl_c_at_a_terminal_is_for_the_process_that_started_the_others() -> None:
    with process_pool(1) as pool:
        pool.submit(signal.raise_signal, signal.SIGINT).result()
        assert pool.submit(abs, -1).result() == 1
        mask = pool.submit(signal.pthread_sigmask, signal.SIG_BLOCK, ()).result()
    assert mask == {signal.SIGINT}
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


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
