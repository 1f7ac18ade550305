"""A study in the terminal: what will run, and what came out beside what the paper says."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from scenarios.study.config import Study
from scenarios.study.findings import Findings
from scenarios.study.table import chart_table

_HOLDS = {
    True: ("holds", "bold green"),
    False: ("does not hold", "bold red"),
    None: ("unknown", "yellow"),
}


def show_study(out: Console, study: Study) -> None:
    """Say before the first run what will be run."""
    base = study.base
    out.print(
        Text.assemble(
            (base.name, "bold"),
            f"  {base.figure or ''}  {len(study.points)} runs, {study.scale} scale, seed "
            f"{base.seed}, {base.backend}",
        )
    )
    out.print(f"  {base.title}", style="dim")


def show_findings(out: Console, findings: Findings, directory: Path, replay: str) -> None:
    """Print a table per panel, the claims, and how exact the answers were."""
    for chart in findings.study.charts:
        told = chart_table(findings, chart)
        title = ", ".join(part for part in (told["panel"], told["measure"]) if part)
        table = Table(told["axis"], title=title, title_justify="left")
        for name, _ in told["columns"]:
            table.add_column(name, justify="right")
        for place, x in enumerate(told["x"]):
            table.add_row(x, *(values[place] for _, values in told["columns"]))
        out.print(table)
    for finding in findings.claims:
        word, style = _HOLDS[finding.holds]
        where = f" [{finding.panel}]" if finding.panel else ""
        out.print(
            Text.assemble((f"{word:<14}", style), f"{finding.claim.text}{where}: {finding.detail}")
        )
        if finding.claim.why and finding.holds is False:
            out.print(Text(f"{'':<14}{finding.claim.why}", "dim"))
    _show_verdicts(out, findings)
    out.print(f"{directory / 'study.html'}")
    out.print(f"replay: {replay}\n")


def _show_verdicts(out: Console, findings: Findings) -> None:
    results = findings.results
    claiming = [result for result in results.values() if result.claims_exact and result.record]
    exact = sum(result.record["verdict"]["exact"] for result in claiming)
    told = f": {exact} of {len(claiming)} that claim to be exact are" if claiming else ""
    out.print(f"{len(results)} runs{told}", style="bold red" if exact < len(claiming) else None)
    for point in findings.study.points:
        result = results[point.number]
        if result.failure:
            out.print(f"  point {point.number} ({point.label}) failed: {result.failure}")
        elif result.passed is False:
            out.print(f"  point {point.number} ({point.label}) failed its checks")
