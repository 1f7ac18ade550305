"""What is shown of PEs while a run goes on is what its trace says, and changes nothing."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import joinsim as js
from scenarios.run import simulate
from scenarios.terminal.progress import Watch, watching

QUERY = "SELECT * FROM A, B WHERE A.x = B.x WINDOW AS (SLIDE INTERVAL '1' ON '20')"


@pytest.fixture(scope="module")
def run() -> js.Run:
    streams = {name: {"x": np.arange(300) % 7} for name in ("A", "B")}
    feeding = {"rate_tps": 10_000, "batch_rows": 5}
    return js.run(QUERY, streams, topology="hash_join", pes=3, feeding=feeding, pairs=False)


def test_load_and_queue_are_those_of_the_trace(run: js.Run, tmp_path: Path) -> None:
    plan = run.finished.plan
    pes = [name for name in plan.graph(pairs=False) if name.startswith("joiner")]
    watch = Watch(pes, total=600)
    done = simulate(plan, tmp_path, pairs=False, line=watch)
    assert done.outcome.digest == run.digest
    trace = run.trace.to_pandas()
    span = trace["done_ns"].max() - trace["arrived_ns"].min()
    for name in pes:
        mine = trace[trace["receiver"] == name]
        assert watch.load[name] == pytest.approx((mine.done_ns - mine.started_ns).sum() / span)
        assert watch.queue[name] == pytest.approx((mine.started_ns - mine.arrived_ns).sum() / span)
        assert 0 < watch.load[name] < 1
    assert max(watch.behind.values()) < 20, "at the end every PE has seen nearly all tuples"


def test_the_pes_are_drawn_those_with_the_highest_load_first(run: js.Run) -> None:
    out = Console(file=StringIO(), width=100)
    with watching(out, run.finished.plan, 600) as watch:
        names = list(watch.load)
        watch.load |= {name: place / len(names) for place, name in enumerate(names)}
    file = out.file
    assert isinstance(file, StringIO)
    text = file.getvalue()
    shown = sorted(names, key=lambda name: text.index(f"│ {name} "))
    assert shown == names[::-1]
    assert "0 of 600 tuples" in text
