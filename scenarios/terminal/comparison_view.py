"""A comparison of systems in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scenarios.comparison.compare import Comparison
from scenarios.many_runs import Result
from scenarios.terminal.words import PASSED, in_bytes, in_ms

_FIGURES = (
    "tuples/s", "p50 ms", "p95 ms", "p99 ms", "messages", "network", "state", "kernel s", "pairs"
)  # fmt: skip


def show_comparison(out: Console, comparison: Comparison, directory: Path, replay: str) -> None:
    """Print one table of all systems, fastest first, and what they cannot do."""
    table = Table("system", "exact", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for title in _FIGURES:
        table.add_column(title, justify="right", no_wrap=True)
    for label, result in comparison.results.items():
        table.add_row(label, *_cells(result))
    out.print(table)
    out.print(
        "tuples/s and ms are virtual time; kernel s is real time spent inside the operators; state "
        "is what they hold at the end",
        style="dim",
    )
    for label, why in comparison.refused.items():
        out.print(Text.assemble((label, "bold"), f"  cannot: {why}"))
    if comparison.fastest:
        out.print(Text.assemble("fastest exact: ", (comparison.fastest, "bold green")))
    out.print(f"{directory / 'compare.html'}")
    out.print(f"replay: {replay}\n")


def exact_told(verdict: dict[str, Any], *, claims: bool) -> str:
    """Say whether a run was exact, and if not by how much."""
    if not (verdict["expected"] or verdict["produced"]):
        return "not tested"
    if verdict["exact"]:
        return "exact"
    kinds = ("missing", "duplicate", "expired", "wrong")
    told = ", ".join(f"{verdict[kind]:,} {kind}" for kind in kinds if verdict[kind])
    return told if claims else f"{told} (no claim)"


def _cells(result: Result) -> list[str | Text]:
    if result.failure:
        return [Text(f"failed: {result.failure}", "bold red")]
    run = result.record
    _, style = PASSED[result.passed]
    latency = [run["latency_ms"][p] for p in ("p50", "p95", "p99")]
    state, kernel = run["state_bytes"].get("total"), run["kernel_seconds"].get("total")
    return [
        Text(exact_told(run["verdict"], claims=result.claims_exact), style),
        f"{run['throughput_tps']:,.0f}",
        *("-" if ms is None else in_ms(ms) for ms in latency),
        f"{run['network']['messages']:,}",
        in_bytes(run["network"]["bytes"]),
        "-" if state is None else in_bytes(state),
        "-" if kernel is None else f"{kernel:,.3f}",
        f"{run['verdict']['produced']:,}",
    ]
