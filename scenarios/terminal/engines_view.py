"""A comparison of engines in the terminal."""

from __future__ import annotations

from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scenarios.engines.comparison import EngineComparison
from scenarios.terminal.words import PASSED, in_bytes, in_ms

_FIGURES = (
    "tuples/s", "steady", "wall s", "p50 ms", "p95 ms", "p99 ms", "shuffled", "memory", "pairs"
)  # fmt: skip


def show_engines(out: Console, comparison: EngineComparison, directory: Path, replay: str) -> None:
    """Print one table of all engines, fastest first, and why some have no figures."""
    table = Table("engine", "version", "equal", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for title in _FIGURES:
        table.add_column(title, justify="right", no_wrap=True)
    for name in comparison.measured:
        table.add_row(name, comparison.versions[name], *_cells(comparison, name))
    for without, names in (
        (Text("failed", "bold red"), comparison.failed),
        (Text("cannot"), comparison.refused),
        (Text("not run"), comparison.waiting),
    ):
        for name in names:
            version = comparison.versions.get(name, "-")
            table.add_row(name, version, without, *["-"] * len(_FIGURES))
    out.print(table)
    out.print(
        f"{comparison.rows:,} tuples; the oracle expects {comparison.expected.pairs:,} pairs, "
        f"checksum {comparison.expected.checksum:016x}. tuples/s is wall time without an engine's "
        "own start; steady leaves out the first trigger",
        style="dim",
    )
    for name, one in comparison.measured.items():
        if one.note:
            out.print(Text.assemble((name, "bold"), f"  {one.note}"))
    for name, why in comparison.refused.items():
        out.print(Text.assemble((name, "bold"), f"  cannot: {why}"))
    for name, why in comparison.failed.items():
        out.print(Text.assemble((name, "bold red"), f"  failed: {why}"))
    word, style = PASSED[comparison.passed]
    unanswered = len(comparison.failed) + len(comparison.waiting)
    but = f" ({unanswered} without an answer)" if unanswered else ""
    out.print(Text.assemble("all pairs equal: ", (word, style), but))
    out.print(f"{directory / 'compare.html'}")
    out.print(f"replay: {replay}\n")


def _cells(comparison: EngineComparison, name: str) -> list[str | Text]:
    one = comparison.measured[name]
    _, style = PASSED[comparison.equals(name)]
    latency = [(one.latency_ms or {}).get(p) for p in ("p50", "p95", "p99")]
    return [
        Text("equal" if comparison.equals(name) else "DIFFERS", style),
        f"{comparison.throughput_tps(name):,.0f}",
        "-" if one.steady_tps is None else f"{one.steady_tps:,.0f}",
        f"{one.wall_seconds:,.2f}",
        *("-" if ms is None else in_ms(ms) for ms in latency),
        "-" if one.shuffled_bytes is None else in_bytes(one.shuffled_bytes),
        "-" if one.memory_bytes is None else in_bytes(one.memory_bytes),
        f"{one.totals.pairs:,}",
    ]
