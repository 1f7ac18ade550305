"""A single run in the terminal: before it starts, and when it is done."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from scenarios.plan import Plan
from scenarios.run import Report
from scenarios.run_json import collectors, latency_ms, versions
from scenarios.terminal.catalog_view import remarks
from scenarios.terminal.words import PASSED, in_bytes


def opening(out: Console, plan: Plan) -> None:
    """Say before the first event what will run: seed, versions, every option."""
    config = plan.config
    out.print(
        Text.assemble(
            (config.name, "bold"),
            f"  {plan.topology.name}  seed {config.seed}  {config.backend}",
            " live" if config.clock == "live" else "",
            f" ({config.processes} processes)" if config.backend == "ray" else "",
        )
    )
    out.print("  " + " ".join(str(plan.query).split()), style="dim")
    for stream in plan.streams:
        rows = min(stream.rows, config.rows or stream.rows)
        out.print(
            f"  stream {stream.name}: {rows:,} of {stream.rows:,} tuples, "
            f"{stream.rejected:,} rejected  {stream.path}",
            style="dim",
        )
        remarks(out, stream, style="dim")
    for title, values in (
        ("parameters", vars(plan.parameters)),
        ("feeding", config.feeding.model_dump()),
        ("network", config.network.model_dump() if config.clock == "virtual" else {}),
        ("versions", versions()),
    ):
        told = "  ".join(f"{k}={v}" for k, v in values.items() if v not in (None, ()))
        if told:
            out.print(f"  {title}: {told}", style="dim")
    for note in plan.notes:
        out.print(f"  note: {note}")
    for warning in plan.warnings:
        out.print(f"  warning: {warning}", style="yellow")


def closing(out: Console, report: Report, replay: str) -> None:
    """Say what came out: figures, verdict, where things are, how to replay."""
    outcome, verdict = report.outcome, report.verdict
    seconds, clock = outcome.virtual_ns / 1e9, report.plan.config.clock
    rate = outcome.tuples / seconds if seconds else 0
    told = {k: "-" if v is None else f"{v:,.3g}" for k, v in latency_ms(report).items()}
    figures = Table.grid(padding=(0, 2))
    figures.add_row("tuples", f"{outcome.tuples:,} in {seconds:,.4g} {clock} seconds")
    figures.add_row("throughput", f"{rate:,.0f} tuples/s ({clock})")
    figures.add_row("latency", "  ".join(f"{k} {v}" for k, v in told.items()) + f"  ms ({clock})")
    figures.add_row("network", f"{outcome.messages:,} messages, {in_bytes(outcome.nbytes)}")
    collected = collectors(report)
    if collected["delay_ms"]:
        figures.add_row(
            "collectors",
            f"at most {collected['most_tuples']:,} tuples waited in one of them, each tuple "
            f"{collected['delay_ms']:,.3g} ms on average, at most {collected['longest_ms']:,.3g}",
        )
    figures.add_row("wall time", f"{report.wall_seconds:,.2f} s")
    figures.add_row("peak memory", in_bytes(report.memory_bytes))
    out.print(figures)
    checks = Table.grid(padding=(0, 2))
    for check in verdict.checks:
        word, style = PASSED[check.passed]
        checks.add_row(Text(word, style), check.name, check.detail)
    out.print(checks)
    for offender in verdict.offenders:
        arrivals = "  ".join(f"{a} {ms:.3f}" for a, ms in offender.arrivals_ms.items())
        out.print(
            f"  {offender.kind}: stream {offender.probe_stream} tuple {offender.probe_id} with "
            f"{offender.match_id}; it reached (ms) {arrivals}"
        )
    word, style = PASSED[verdict.passed]
    kind = "exact" if verdict.exact and verdict.tested else "not exact"
    out.print(
        Text.assemble(
            ("verdict ", "bold"),
            (f"{word} ({kind})", style),
            f"  digest {outcome.digest}" if outcome.digest else "",
        )
    )
    out.print(f"{report.directory / 'report.html'}")
    out.print(f"replay: {replay}\n")


def backends_compared(out: Console, reports: list[Report], *, equal: bool) -> None:
    """Say whether runs of one configuration on several backends were one and the same."""
    table = Table("backend", "verdict", "digest", "wall time", title=None)
    for report in reports:
        word, style = PASSED[report.verdict.passed]
        table.add_row(
            report.plan.config.backend,
            Text(word, style),
            report.outcome.digest,
            f"{report.wall_seconds:.2f} s",
        )
    out.print(table)
    out.print(Text("digests equal", "bold green") if equal else Text("DIGESTS DIFFER", "bold red"))
