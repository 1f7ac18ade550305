"""What a person sees in the terminal: what will run, how far it is, and one readable summary."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from netsim import kernel
from scenarios.config import RunConfig
from scenarios.run import Plan, Report
from scenarios.run_json import latency_ms, versions
from spark_bridge.prepared import REJECTED, PreparedStream
from topologies import Topology
from topologies.topology import ActorGraph

_PASSED = {True: ("PASS", "bold green"), False: ("FAIL", "bold red"), None: ("UNKNOWN", "yellow")}


class Terminal:
    """Writes to the terminal; *quiet* keeps stdout for JSON and shows progress alone, on stderr."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._out = Console(quiet=quiet, highlight=False, soft_wrap=True)
        self._progress_console = Console(stderr=True, highlight=False)

    def _progress(self) -> Progress:
        return Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[state]}"),
            TimeElapsedColumn(),
            console=self._progress_console,
            transient=True,
        )

    @contextmanager
    def preparing(self) -> Iterator[_Stages]:
        """Show the stages of data preparation."""
        with self._progress() as progress:
            yield _Stages(progress, self._progress_console)

    @contextmanager
    def running(self, plan: Plan) -> Iterator[_Display]:
        """Show how far the run is."""
        total = sum(min(s.rows, plan.config.rows or s.rows) for s in plan.streams)
        with self._progress() as progress:
            yield _Display(progress, self._progress_console, total)

    def opening(self, plan: Plan) -> None:
        """Say before the first event what will run: seed, versions, every option."""
        config = plan.config
        self._out.print(
            Text.assemble(
                (config.name, "bold"),
                f"  {plan.topology.name}  seed {config.seed}  {config.backend}",
                f" ({config.processes} processes)" if config.backend == "ray" else "",
            )
        )
        self._out.print("  " + " ".join(str(plan.query).split()), style="dim")
        for stream in plan.streams:
            rows = min(stream.rows, config.rows or stream.rows)
            self._out.print(
                f"  stream {stream.name}: {rows:,} of {stream.rows:,} tuples, "
                f"{stream.rejected:,} rejected  {stream.path}",
                style="dim",
            )
            self._remarks(stream, style="dim")
        for title, values in (
            ("parameters", vars(plan.parameters)),
            ("feeding", config.feeding.model_dump()),
            ("network", config.network.model_dump()),
            ("versions", versions()),
        ):
            told = "  ".join(f"{k}={v}" for k, v in values.items() if v not in (None, ()))
            self._out.print(f"  {title}: {told}", style="dim")

    def closing(self, report: Report, replay: str) -> None:
        """Say what came out: figures, verdict, where things are, how to replay."""
        outcome, verdict = report.outcome, report.verdict
        virtual_seconds = outcome.virtual_ns / 1e9
        rate = outcome.tuples / virtual_seconds if virtual_seconds else 0
        told = {k: "-" if v is None else f"{v:,.3g}" for k, v in latency_ms(report).items()}
        figures = Table.grid(padding=(0, 2))
        figures.add_row("tuples", f"{outcome.tuples:,} in {virtual_seconds:,.4g} virtual seconds")
        figures.add_row("throughput", f"{rate:,.0f} tuples/s (virtual)")
        figures.add_row(
            "latency", "  ".join(f"{k} {v}" for k, v in told.items()) + "  ms (virtual)"
        )
        figures.add_row("network", f"{outcome.messages:,} messages, {_bytes(outcome.nbytes)}")
        figures.add_row("wall time", f"{report.wall_seconds:,.2f} s")
        figures.add_row("peak memory", _bytes(report.memory_bytes))
        self._out.print(figures)
        checks = Table.grid(padding=(0, 2))
        for check in verdict.checks:
            word, style = _PASSED[check.passed]
            checks.add_row(Text(word, style), check.name, check.detail)
        self._out.print(checks)
        for offender in verdict.offenders:
            arrivals = "  ".join(f"{a} {ms:.3f}" for a, ms in offender.arrivals_ms.items())
            self._out.print(
                f"  {offender.kind}: stream {offender.probe_stream} tuple {offender.probe_id} with "
                f"{offender.match_id}; it reached (ms) {arrivals}"
            )
        word, style = _PASSED[verdict.passed]
        kind = "exact" if verdict.exact and verdict.tested else "not exact"
        self._out.print(
            Text.assemble(
                ("verdict ", "bold"), (f"{word} ({kind})", style), f"  digest {outcome.digest}"
            )
        )
        self._out.print(f"{report.directory / 'report.html'}")
        self._out.print(f"replay: {replay}\n")

    def compared(self, reports: list[Report], *, equal: bool) -> None:
        """Say whether runs of one configuration on several backends were one and the same."""
        table = Table("backend", "verdict", "digest", "wall time", title=None)
        for report in reports:
            word, style = _PASSED[report.verdict.passed]
            table.add_row(
                report.plan.config.backend,
                Text(word, style),
                report.outcome.digest,
                f"{report.wall_seconds:.2f} s",
            )
        self._out.print(table)
        self._out.print(
            Text("digests equal", "bold green") if equal else Text("DIGESTS DIFFER", "bold red")
        )

    def catalog(self, scenarios: list[RunConfig], topologies: list[Topology]) -> None:
        """List scenarios and topologies."""
        table = Table("scenario", "figure", "topology", "what it is")
        for scenario in scenarios:
            table.add_row(scenario.name, scenario.figure or "", scenario.topology, scenario.title)
        self._out.print(table)
        table = Table("topology", "exact", "what it is", "paper")
        for topology in topologies:
            exact = "yes" if topology.exact else "no claim"
            table.add_row(topology.name, exact, topology.title, topology.paper)
        self._out.print(table)

    def topology(self, topology: Topology, graph: ActorGraph) -> None:
        """Show a topology's operators, their PEs, and what each sends to whom."""
        tree = Tree(Text(topology.title, "bold"))
        pes: dict[str, list[str]] = {}
        for name, role in graph.nodes(data="role"):
            pes.setdefault(role, []).append(name)
        for role, names in pes.items():
            branch = tree.add(Text.assemble((role, "bold cyan"), f"  {_listed(names)}"))
            targets: dict[str, list[str]] = {}
            for name in names:
                for port, receivers in graph.wiring[name].items():
                    known = targets.setdefault(port, [])
                    known += [receiver for receiver in receivers if receiver not in known]
            for port, reached in targets.items():
                branch.add(Text.assemble(f"{port} -> ", (_listed(reached), "green")))
        self._out.print(tree)
        self._out.print(f"{len(graph)} actors on {len(set(graph.placement.values()))} sites")
        self._out.print(f"from: {topology.paper}")

    def prepared(self, stream: PreparedStream) -> None:
        """Say what a prepared stream holds."""
        self._out.print(
            f"stream {stream.name}: {stream.rows:,} tuples in {stream.path}, "
            f"{stream.rejected:,} rejected"
        )
        self._remarks(stream)

    def _remarks(self, stream: PreparedStream, *, style: str | None = None) -> None:
        """Say what was decided about a stream's rows, and why some of them are not in it."""
        for note in stream.notes:
            self._out.print(f"    {note}", style=style)
        if stream.rejected:
            reasons = ", ".join(
                f"{count:,} x {reason}" for reason, count in stream.rejected_reasons.items()
            )
            self._out.print(
                f"    rejected: {reasons}; the rows are in {stream.path.with_name(REJECTED)}",
                style=style,
            )

    def wrote(self, path: Path) -> None:
        """Say what was written."""
        self._out.print(f"wrote {path}")


class _Stages:
    """Stages of preparation: a line each, plain where there is no terminal to redraw."""

    def __init__(self, progress: Progress, console: Console) -> None:
        self._progress = progress
        self._console = console
        self._task: TaskID | None = None
        self._stage = ""

    def __call__(self, stage: str, done: int, total: int) -> None:
        if self._task is None:
            self._task = self._progress.add_task(stage, total=total or None, state="")
        self._progress.update(self._task, description=stage, completed=done, total=total or None)
        if stage != self._stage and not self._console.is_terminal:
            print(f"{stage} ...", file=sys.stderr)
        self._stage = stage


class _Display:
    """One live line: tuples, virtual time, speed, time left."""

    def __init__(self, progress: Progress, console: Console, total: int) -> None:
        self._progress = progress
        self._console = console
        self._task = progress.add_task("simulating", total=total, state="")
        self._total = total
        self._tenths = 0

    def on_run(self, at: kernel.Progress) -> None:
        """Show how far the simulation is."""
        task = self._progress.tasks[0]
        speed = at.tuples / task.elapsed if task.elapsed else 0
        left = (self._total - at.tuples) / speed if speed else 0
        state = (
            f"{at.tuples:,} of {self._total:,} tuples, {at.virtual_ns / 1e9:.3f} virtual s, "
            f"{speed:,.0f} tuples/s, {left:.0f} s left"
        )
        self._progress.update(self._task, completed=at.tuples, state=state)
        tenths = 10 * at.tuples // max(1, self._total)
        if tenths > self._tenths and not self._console.is_terminal:
            print(f"simulating: {state}", file=sys.stderr)
        self._tenths = max(tenths, self._tenths)

    def on_judge(self) -> None:
        """Show that the answer is being checked."""
        self._progress.update(self._task, description="judging", state="comparing with the oracle")


def _listed(names: list[str]) -> str:
    """Name a few PEs in full, and of many the first and the last."""
    return ", ".join(names) if len(names) <= 4 else f"{names[0]} .. {names[-1]} ({len(names)})"


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:,.3g} {unit}"
        size /= 1000
    return f"{size:,.3g} TB"
