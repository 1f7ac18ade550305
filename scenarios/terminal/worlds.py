"""What a person reads of worlds that were run: counts, coverage, and what failed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from rich.console import Console

from scenarios.report.table import TableCell, TextTable
from scenarios.terminal.printing import print_table
from scenarios.worlds.fuzzing import Fuzzed, WorldTrial
from scenarios.worlds.world import Recording


def show_fuzzed(out: Console, fuzzed: Fuzzed, seconds: float) -> None:
    """Print how many worlds there were, what they covered, and those that failed."""
    title = "worlds by topology, streams of the query and windows"
    _show_coverage(out, fuzzed, fuzzed.coverage, title)
    if fuzzed.happened_in:
        title = "worlds by topology and what happened in them"
        _show_coverage(out, fuzzed, fuzzed.happened_in, title)
    features = [f"{name} {count:,}" for name, count in sorted(fuzzed.features.items())]
    out.print(f"turned on, in so many worlds: {', '.join(features)}")
    if fuzzed.happened:
        counts = [f"{kind} {count:,}" for kind, count in sorted(fuzzed.happened.items())]
        out.print(f"what happened: {', '.join(counts)}")
    out.print(
        f"{fuzzed.worlds:,} worlds in {seconds:.0f} s, {fuzzed.worlds / max(seconds, 1e-9):.1f} a "
        f"second: {fuzzed.tuples:,} tuples, {fuzzed.messages:,} messages, {fuzzed.pairs:,} pairs "
        f"expected (none in {fuzzed.without_pairs:,} worlds, "
        f"{fuzzed.without_pairs / max(fuzzed.worlds, 1):.0%})"
    )
    for trial, file in zip(fuzzed.failures, fuzzed.files, strict=True):
        _show_failure(out, trial, file)
    failed = len(fuzzed.failures)
    word = TableCell("FAIL", "FAIL") if failed else TableCell("PASS", "PASS")
    print_table(
        out, TextTable(columns=(), rows=[(word, f"{failed:,} of {fuzzed.worlds:,} failed")])
    )


def _show_coverage(
    out: Console, fuzzed: Fuzzed, counts: Counter[tuple[str, str]], title: str
) -> None:
    kinds = sorted({kind for _, kind in counts})
    rows = [
        (name, *(f"{counts[name, kind] or ''}" for kind in kinds)) for name in fuzzed.topologies
    ]
    print_table(
        out, TextTable(columns=("topology", *kinds), rows=rows, text_columns=1, title=title)
    )


def show_replayed(
    out: Console, trial: WorldTrial, recording: Recording, *, same: bool | None
) -> None:
    """Print what became of a world that was run again, beside what its file says."""
    digest = {True: "as recorded", False: "NOT as recorded", None: "none was recorded"}[same]
    rows: list[tuple[str | TableCell, str]] = [
        ("topology", trial.world.topology),
        ("tuples", f"{trial.world.tuples:,}"),
        ("recorded", recording.failure or "nothing was wrong"),
        ("now", trial.failure or "nothing is wrong"),
        ("digest", f"{trial.digest or 'none'}: {digest}"),
    ]
    print_table(out, TextTable(columns=(), rows=rows))


def _show_failure(out: Console, trial: WorldTrial, file: Path) -> None:
    out.print(f"{trial.world.topology}: {trial.failure}", style="red")
    out.print(f"  made small: {trial.world.tuples} tuples; joinsim replay {file}")
