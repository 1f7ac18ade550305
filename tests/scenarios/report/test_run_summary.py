"""A run in words: its figures, and what batches and saturation do to it at a known load."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import joinsim as js
from scenarios.formatting import TableCell, TextTable
from scenarios.report.result_tables import checks_table, offenders_table
from scenarios.report.run_summary import (
    RunLoad,
    measure_load,
    summary_html,
    summary_rows,
    summary_text,
)
from scenarios.run import FinishedRun
from scenarios.terminal.views import show_streams
from scenarios.verdict import CheckResult
from tests.scenarios.toy_run import failed_verdict, toy_config, toy_report


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    return toy_report(tmp_path_factory.mktemp("run"), [range(900)])


def test_the_main_figures_of_a_run_are_named(report: FinishedRun) -> None:
    rows = dict(summary_rows(report))
    assert list(rows) == ["tuples", "throughput", "latency", "network", "wall time", "peak memory"]
    assert rows["tuples"].startswith("900 in ")
    assert rows["throughput"].endswith("tuples/s (virtual)")
    assert [rows["latency"].count(p) for p in ("p50 ", "p99 ", "max ")] == [1, 1, 1]
    assert rows["network"].startswith(f"{report.outcome.messages:,} messages, ")
    assert rows["peak memory"] == "123 MB"


def test_a_summary_has_the_verdict_and_every_main_figure(report: FinishedRun) -> None:
    text, html = summary_text(report), summary_html(report)
    expected = f"Exactly the {report.verdict.expected:,} expected pairs came out, each once."
    assert f"PASS: {expected}" in text
    assert f"<b>PASS</b>: {expected}" in html
    for name, value in summary_rows(report):
        assert any(line.split("  ", 1)[0] == name and value in line for line in text.split("\n"))
        assert f"<tr><th>{name}</th><td>{value}</td></tr>" in html


def test_a_failed_run_says_so(report: FinishedRun) -> None:
    failed = replace(report, verdict=failed_verdict())
    assert "FAIL: 5 pairs were expected, 4 came out: 1 missing." in summary_text(failed)
    (row,) = offenders_table(failed).rows
    assert row == ["missing", "T", "77", "41", "router 1.250, joiner.1 2.500"]


def test_names_are_text_and_never_markup(report: FinishedRun) -> None:
    verdict = failed_verdict()
    verdict.checks.append(CheckResult(name="<b>odd</b>", passed=None, detail="a & b"))
    config = toy_config().model_copy(update={"name": "<i>mine</i>"})
    odd = replace(report, verdict=verdict, plan=replace(report.plan, config=config))
    assert "<i>" not in summary_html(odd)
    html = checks_table(odd.verdict).html()
    assert "<b>" not in html
    assert "&lt;b&gt;odd" in html
    assert '<td class="word UNKNOWN">UNKNOWN</td>' in html
    assert "a &amp; b" in html


def test_a_short_row_fills_its_table() -> None:
    table = TextTable(
        columns=("a", "b", "c", "d"), rows=[["x", TableCell("failed", "FAIL")]], text_columns=1
    )
    assert '<td class="word FAIL" colspan="3">failed</td>' in table.html()
    assert table.html().count('class="number"') == 3  # the headings of all but the first
    table = TextTable(columns=("a", "b", "c"), rows=[["x", "all the rest"]], text_columns=1)
    assert '<td colspan="2">all the rest</td>' in table.html()


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("scenarios.report.result_pages", ["vl_convert", "scipy.optimize", "rich"]),
        ("scenarios.report.run_pages", ["vl_convert", "scipy.optimize", "rich"]),
        ("scenarios.terminal.views", ["vl_convert", "scipy.optimize", "jinja2", "ray"]),
    ],
)
def test_libraries_that_take_long_to_load_wait_until_they_are_needed(
    module: str, unwanted: list[str], tmp_path: Path
) -> None:
    program = f"import sys, {module}; print(*[m for m in {unwanted} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


QUERY = "SELECT * FROM A, B WHERE A.x = B.x WINDOW AS (SLIDE INTERVAL '1' ON '20')"
ROWS = 400


def load_of(**feeding: int) -> RunLoad | None:
    streams = {name: {"x": np.arange(ROWS) % 7} for name in ("A", "B")}
    run = js.run(QUERY, streams, topology="hash_join", pes=2, feeding=feeding, pairs=False)
    return measure_load(run.finished)


def test_a_tuple_waits_half_of_what_its_batch_takes_to_fill() -> None:
    """At 1,000 a second, a batch of 100 leaves as its last tuple comes into being, 100 ms on."""
    load = load_of(rate_tps=1_000, batch_rows=100)
    assert load is not None
    assert load.batching_ms == pytest.approx(50, rel=0.02)
    assert load.median_ms is not None
    assert load.median_ms > load.batching_ms * 0.9
    assert load.busy < 0.1
    assert "SATURATION" not in load.saturation


def test_a_tuple_alone_waits_for_none() -> None:
    load = load_of(rate_tps=1_000, batch_rows=1)
    assert load is not None
    assert load.batching_ms == 0
    assert load.median_ms is not None
    assert load.median_ms < 1


def test_a_rate_beyond_what_the_system_takes_is_named() -> None:
    load = load_of(rate_tps=10_000_000, batch_rows=1)
    assert load is not None
    assert load.saturation.startswith("BEYOND SATURATION: fed 10,000,000 tuples/s, it takes ")


def test_without_a_rate_there_is_nothing_to_say() -> None:
    assert load_of(batch_rows=50) is None


def test_a_run_of_one_tuple_is_counted_in_the_singular() -> None:
    query = "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '1' ON '2')"
    tables = {"T": {"time": [5], "x": [1]}}
    finished = js.run(query, tables, time="time", topology="nested_loop").finished
    shown = StringIO()
    show_streams(Console(file=shown, width=200), finished.plan)
    assert "stream T: 1 of 1 tuple, 0 rejected" in shown.getvalue()
    assert "event time from time, fed in its order" in shown.getvalue()
    details = [check.detail for check in finished.verdict.checks]
    for said in (*details, *map(str, dict(summary_rows(finished)).values())):
        assert not re.search(r"\b1 (tuple|pair|message|channel|row|actor)s\b", said)
