"""What calls return is a few lines of text at Python's prompt, and tables in a notebook."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import joinsim as js
from scenarios.planners import Proposal

QUERY = "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '5' ON '20')"
STREAMS = {"T": {"x": np.arange(100) % 7}}
CHAIN = "SELECT * FROM A, B, C WHERE A.x = B.x AND B.x = C.x WINDOW AS (SLIDE INTERVAL '1' ON '20')"
CALLS: dict[str, Callable[[], Any]] = {
    "fastest exact: nested_loop": lambda: js.compare(QUERY, STREAMS, topologies=["nested_loop"]),
    "custom: 4 runs": lambda: js.sweep(
        QUERY,
        STREAMS,
        over={"topology": ["split_join", "scale_join"], "pes": [1, 2]},
        processes=1,
    ),
    "semijoin-planning: 6 runs": lambda: js.scenario("semijoin-planning", scale="smoke").run(),
    "pim-band: 2 runs": lambda: js.sweep(
        "pim-band",
        scale="smoke",
        survey={"of": "window join speed"},
        over={"survey.index": ["b_plus_tree", "pim_tree"]},
        measures=["tuples_s.median"],
        processes=1,
    ),
    "all pairs equal: PASS": lambda: js.compare_engines(QUERY, STREAMS, engines="duckdb"),
    "nested_loop is best": lambda: js.advise(
        QUERY, STREAMS, topologies=["nested_loop"], engines="", seeds=1
    ),
    "execution time, s a second: ": lambda: js.plan(
        CHAIN, dict.fromkeys("ABC", STREAMS["T"]), simulate=False
    ),
}


@pytest.mark.parametrize("said", CALLS)
def test_what_comes_of_several_runs_shows_itself(said: str, tmp_path: Path) -> None:
    several = CALLS[said]()
    assert said in repr(several)
    assert "object at" not in repr(several)
    shown = several._repr_html_()
    assert shown.startswith("<p>")
    assert "</table>" in shown
    if not isinstance(several, Proposal):
        page = several.report(tmp_path / "page.html")
        assert page == tmp_path / "page.html"
        assert page.read_text().startswith("<!doctype html>")
        assert "<svg" in several.figure(tmp_path / "figure.svg").read_text()
        assert (tmp_path / "figure.svg.csv").stat().st_size > 0
        assert several.summary["replay"] == several.replay


def test_engines_are_shown_and_listed(spark: object) -> None:
    stream = {"name": "T", "synthetic": {"rows": 60, "fields": {"x": "uniform(1, 9)"}}}
    scenario = js.Scenario({"query": QUERY, "streams": [stream], "topology": "nested_loop"})
    compared = scenario.compare_engines("duckdb")
    assert "all pairs equal: PASS" in repr(compared)
    (row,) = compared.table.to_pylist()
    assert (row["engine"], row["equal"], compared.passed) == ("duckdb", True, True)
    assert "duckdb" in compared._repr_html_()
    compared.refused["flink"], compared.failed["polars"] = "it is not installed", "it ended"
    assert repr(compared).splitlines()[-2:] == [
        "polars failed: it ended",
        "flink did not run: it is not installed",
    ]
