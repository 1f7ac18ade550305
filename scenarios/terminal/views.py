"""Prints the result of each command."""

from __future__ import annotations

import shlex
import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from joins.work import NO_WORK, Step
from netsim.cost import COSTS, CostProfile, load_profile
from netsim.trace import TIMES
from scenarios.config import RunConfig
from scenarios.formatting import (
    NO_VALUE,
    VERDICT_WORDS,
    TableCell,
    TextTable,
    by_reason,
    format_digits,
    format_many,
    format_value,
    format_values,
)
from scenarios.machine import versions
from scenarios.plan import Plan
from scenarios.report.result_tables import (
    HOLDS_WORDS,
    advice_table,
    changes_table,
    chart_table,
    checks_table,
    comparison_table,
    engine_notes,
    engines_table,
    format_network,
    holds_word,
    left_out_table,
    mark_kind,
    measured_table,
    offenders_table,
    verdict_cell,
)
from scenarios.report.run_summary import summary_rows
from scenarios.run import FinishedRun
from scenarios.terminal.printing import STYLES, keep_together, print_table, print_wrapped, styled
from spark_bridge.prepared import REJECTED, PreparedStream
from topologies import Topology
from topologies.actor_graph import ActorGraph, abbreviated
from topologies.parameters import describe

if TYPE_CHECKING:
    from scenarios.advice import CandidateRanking
    from scenarios.calibration.fit import Calibrated
    from scenarios.calibration.live_runs import LivePrediction
    from scenarios.engines.comparison import EngineRanking
    from scenarios.many_runs import SystemRanking
    from scenarios.planners import Proposal
    from scenarios.study.findings import Findings
    from scenarios.study.reproduction import ReproducedPaper
    from scenarios.study.study import Study
    from scenarios.trace_difference import Difference
    from scenarios.worlds.fuzzing import Fuzzed, Replayed


def _profile(config: RunConfig) -> str:
    """Return the cost profile's name, and that it is of another machine where it is."""
    if config.profile != "default":
        return config.profile
    return "default, which is not this machine's (joinsim calibrate measures one)"


def _processes(config: RunConfig) -> str:
    if config.processes == "each":
        return "a process for each actor"
    return format_many(config.processes, "process", "processes")


def show_plan(out: Console, plan: Plan) -> None:
    """Print before the first event what will run: seed, versions, every option."""
    config = plan.config
    out.print(
        Text.assemble(
            (config.name, "bold"),
            f"  {plan.topology.name}  seed {config.seed}  {config.backend}",
            " live" if config.clock == "live" else "",
            f" ({_processes(config)})" if config.backend == "ray" else "",
        )
    )
    print_wrapped(out, "  " + plan.query_line, "dim")
    show_streams(out, plan)
    for title, values in (
        ("parameters", format_values(plan.parameters)),
        ("feeding", format_values(config.feeding)),
        ("network", format_network(config.network) if config.clock == "virtual" else {}),
        ("versions", versions()),
    ):
        listed = keep_together(f"{k}={v}" for k, v in values.items() if v not in (None, ()))
        if listed:
            print_wrapped(out, f"  {title}: {listed}", "dim")
    for note in plan.notes:
        print_wrapped(out, f"  note: {note}")
    for assumption in plan.assumptions:
        print_wrapped(out, f"  {assumption}", "dim")
    for warning in plan.warnings:
        print_wrapped(out, f"  warning: {warning}", "yellow")


def show_streams(out: Console, plan: Plan) -> None:
    """Print what is read of each stream, its times, and what was decided about its rows."""
    for stream, rows in zip(plan.streams, plan.rows, strict=True):
        print_wrapped(
            out,
            f"  stream {stream.name}: {rows:,} of {format_many(stream.rows, 'tuple')}, "
            f"{stream.rejected:,} rejected  {stream.path}",
            "dim",
        )
        if stream.time is not None:
            in_order = "in its order" if stream.delays is None else "in an order of arrival"
            print_wrapped(out, f"    event time from {stream.time}, fed {in_order}", "dim")
        _print_remarks(out, stream, style="dim")


def show_run(out: Console, finished: FinishedRun, replay: str) -> None:
    """Print what came out: figures, verdict, where things are, how to replay."""
    verdict, digest = finished.verdict, finished.outcome.digest
    print_table(out, TextTable(columns=(), rows=summary_rows(finished)))
    print_table(out, checks_table(verdict))
    if verdict.offenders:
        print_table(out, offenders_table(finished))
    if finished.price_note:
        print_wrapped(out, f"note: {finished.price_note}")
    kind = "exact" if verdict.exact else "not exact"
    if not verdict.tested:
        kind = "no pair was expected and none came out"
    word = VERDICT_WORDS[verdict.passed]
    out.print(
        Text.assemble(
            ("verdict ", "bold"),
            (f"{word} ({kind})", STYLES[word]),
            f"  digest {digest}" if digest else "",
        )
    )
    _show_files(out, finished.directory / "report.html", replay)


def show_backends(out: Console, runs: Sequence[FinishedRun], *, equal: bool) -> None:
    """Print whether runs of one configuration on several backends were one and the same."""
    rows = [
        (
            finished.plan.config.backend,
            verdict_cell(finished.verdict.passed),
            finished.outcome.digest or "",
            f"{finished.clock.seconds:.2f} s",
        )
        for finished in runs
    ]
    columns = ("backend", "verdict", "digest", "wall time")
    print_table(out, TextTable(columns=columns, rows=rows, text_columns=3))
    out.print(Text("digests equal", "bold green") if equal else Text("DIGESTS DIFFER", "bold red"))


def show_comparison(out: Console, comparison: SystemRanking, directory: Path, replay: str) -> None:
    """Print one table of all systems, fastest first, and what they cannot do."""
    print_table(out, comparison_table(comparison))
    base = comparison.base
    time = "of this machine"
    if base.clock == "virtual":
        time = f"virtual time, at the costs of the profile {_profile(base)}"
    print_wrapped(
        out,
        f"tuples/s and ms are {time}; kernel s is real time spent inside the operators; state is "
        "what they store at the end",
        "dim",
    )
    for why, labels in by_reason(comparison.refused).items():
        print_wrapped(out, f"  cannot: {why}", head=", ".join(labels))
    if comparison.fastest:
        out.print(Text.assemble("fastest exact: ", (comparison.fastest, "bold green")))
    _show_files(out, directory / "compare.html", replay)


def show_advice(out: Console, advice: CandidateRanking, directory: Path, replay: str) -> None:
    """Print the ranking, why the first is first, what would change that, and how to run it."""
    print_wrapped(out, str(advice.statistics), "dim")
    print_table(out, advice_table(advice))
    print_wrapped(out, advice.note, "dim")
    out.print(Text.assemble(("best: ", "bold"), (advice.winner.label, "bold green")))
    print_wrapped(out, advice.why)
    for table in (changes_table(advice), measured_table(advice)):
        if table.rows:
            print_table(out, table)
    for row in left_out_table(advice).rows:
        what, why = (cell if isinstance(cell, str) else cell.text for cell in row)
        print_wrapped(out, f"{what}: {why}", "dim")
    for way, line in advice.reproduce(directory).items():
        out.print(Text(f"{way}: {line}"))
    _show_files(out, directory / "advice.html", replay)


def show_engines(out: Console, comparison: EngineRanking, directory: Path, replay: str) -> None:
    """Print one table of all engines, fastest first, and why some have no figures."""
    from scenarios.engines.comparison import IN_THE_CLOCK

    print_table(out, engines_table(comparison))
    print_wrapped(
        out,
        f"{format_many(comparison.rows, 'tuple')}; the oracle expects "
        f"{format_many(comparison.expected.pairs, 'pair')}, "
        f"checksum {comparison.expected.checksum:016x}. {IN_THE_CLOCK}",
        "dim",
    )
    for name, note in engine_notes(comparison).rows:
        print_wrapped(out, str(styled(note)), head=f"{name}  ")
    word = VERDICT_WORDS[comparison.passed]
    unanswered = len(comparison.failed) + len(comparison.waiting)
    but = f" ({unanswered} without an answer)" if unanswered else ""
    out.print(Text.assemble("all pairs equal: ", (word, STYLES[word]), but))
    _show_files(out, directory / "compare.html", replay)


def show_study(out: Console, study: Study) -> None:
    """Print before the first run what will be run."""
    base = study.base
    out.print(
        Text.assemble(
            (base.name, "bold"),
            f"  {base.figure}" if base.figure else "",
            f"  {format_many(len(study.points), 'run')}, {study.scale} scale, {study.seeds}, "
            f"{base.backend}",
        )
    )
    for remark in [base.title, *study.remarks, *study.assumptions]:
        print_wrapped(out, f"  {remark}", "dim")


def show_findings(out: Console, findings: Findings, directory: Path, replay: str) -> None:
    """Print a table per panel, the claims, and how exact the answers were."""
    for chart in findings.study.charts:
        print_table(out, chart_table(findings, chart))
    if findings.seeds_remark:
        print_wrapped(out, findings.seeds_remark, "dim")
    for finding in findings.claims:
        style = STYLES[VERDICT_WORDS[finding.holds]]
        where = f" [{finding.panel}]" if finding.panel else ""
        statement = f"{finding.claim.text} ({finding.claim.stated}){where}{mark_kind(finding.kind)}"
        word = f"{holds_word(finding.holds, undecided=finding.undecided):<14}"
        print_wrapped(out, f"{statement}: {finding.detail}", head=word, head_style=style)
        if finding.why:
            print_wrapped(out, finding.why, "dim", head=" " * len(word))
    results = findings.results
    claims = [one.is_exact for one in results.values() if one.claims_exact]
    tested = [exact for exact in claims if exact is not None]
    share = f": {sum(tested)} of {len(tested)} that claim to be exact are" if tested else ""
    runs = format_many(len(results), "run")
    out.print(f"{runs}{share}", style=None if all(tested) else "bold red")
    for point in findings.study.points:
        result = results[point.number]
        if result.failure:
            failed = f"  point {point.number} ({point.label}) failed: {result.failure}"
            print_wrapped(out, failed)
        elif result.passed is False:
            out.print(f"  point {point.number} ({point.label}) failed its checks")
    _show_files(out, directory / "study.html", replay)


def show_reproduction(
    out: Console, reproduction: ReproducedPaper, directory: Path, replay: str
) -> None:
    """Print how many claims of each study hold, those that do not, and what went wrong."""
    from scenarios.study.reproduction import ClaimCounts

    rows = [
        (study.figure or study.name, study.name, *map(str, ClaimCounts.of(study.claims)))
        for study in reproduction.studies
    ]
    columns = (
        "figure", "study", "claims tested", "hold", "fail with a reason", "fail without",
        "undecided", "not comparable",
    )  # fmt: skip
    print_table(
        out, TextTable(title=reproduction.title, columns=columns, rows=rows, text_columns=2)
    )
    for claim in reproduction.claim_records:
        if claim["holds"] is False:
            word = f"{HOLDS_WORDS[False]}  "
            where = f"{claim['figure'] or claim['study']}, {claim['text']} ({claim['stated']})"
            statement = f"{where}: {claim['measured']}"
            print_wrapped(out, statement, head=word, head_style=STYLES["FAIL"])
            print_wrapped(out, claim["why"] or "no reason is known", "dim", head=" " * len(word))
    for study in reproduction.studies:
        for mistake in study.mistakes:
            print_wrapped(out, f"{study.name}: {mistake}", STYLES["FAIL"])
    print_wrapped(out, str(ClaimCounts.of(reproduction.claims)))
    print_wrapped(out, ClaimCounts.of(reproduction.statements).statements)
    out.print(f"{directory / 'reproduction.md'}")
    _show_files(out, directory / "reproduce.html", replay)


def show_proposal(out: Console, proposal: Proposal) -> None:
    """Print a plan, the tables that explain it, and what it was estimated to cost and did."""
    for line in proposal.plan:
        out.print(line, style="bold")
    for part in proposal.tables:
        print_table(out, part)
    print_table(out, proposal.costs_table)


def show_topology(out: Console, topology: Topology[Any], graph: ActorGraph) -> None:
    """Show a topology's operators, their PEs, what each sends to whom, and its parameters."""
    tree = Tree(Text(topology.title, "bold"))
    for role, operator in graph.summary().items():
        branch = tree.add(Text.assemble((role, "bold cyan"), f"  {abbreviated(operator.actors)}"))
        if operator.has_results:
            branch.add("results stay here")
        for port, receivers in operator.sends.items():
            branch.add(Text.assemble(f"{port} -> ", (abbreviated(receivers), "green")))
    out.print(tree, soft_wrap=False)  # it wraps names, and does not cut them
    actors = format_many(len(graph.without_partitions()), "actor")
    out.print(f"{actors} on {format_many(len(set(graph.placement.values())), 'site')}")
    print_wrapped(out, f"from: {topology.paper}")
    rows = [(one.name, one.default, one.allowed, one.meaning) for one in describe(topology)]
    if rows:
        print_table(
            out, TextTable(columns=("parameter", "by default", "allowed", "what it is"), rows=rows)
        )


def show_prepared(out: Console, stream: PreparedStream) -> None:
    """Print what a prepared stream consists of."""
    print_wrapped(
        out,
        f"stream {stream.name}: {format_many(stream.rows, 'tuple')} in {stream.path}, "
        f"{stream.rejected:,} rejected",
    )
    _print_remarks(out, stream)


def _print_remarks(out: Console, stream: PreparedStream, *, style: str = "") -> None:
    """Print what was decided about a stream's rows, and why some of them are not in it."""
    for note in stream.notes:
        print_wrapped(out, f"    {note}", style)
    if stream.rejected:
        reasons = ", ".join(
            f"{count:,} x {reason}" for reason, count in stream.rejected_reasons.items()
        )
        rows = stream.path.with_name(REJECTED)
        print_wrapped(out, f"    rejected: {reasons}; the rows are in {rows}", style)


def show_profile(out: Console, profile: CostProfile, path: Path) -> None:
    """Print what each unit of work costs, beside the default profile."""
    default = load_profile()
    rows = []
    for name in COSTS:
        costs = [getattr(one, name) / 1000 for one in (profile, default)]
        unit = name.removesuffix("_ps").replace("_", " ")
        rows.append((unit, *(format_digits(cost, 3) for cost in costs)))
    print_table(
        out,
        TextTable(columns=("cost of one", "ns here", "ns by default"), rows=rows, text_columns=1),
    )
    out.print(f"{path}: for --set {shlex.quote(f'profile={path}')}")


def show_operators(out: Console, calibrated: Calibrated) -> None:
    """Print what each operator costs beside the transport of its messages."""
    rows = [
        (
            system,
            role,
            format_digits(cost.message_ps / 1e6, 3),
            format_digits(cost.row_ps / 1e3, 3),
            str(cost.work_percent),
        )
        for system, roles in calibrated.operators.items()
        for role, cost in roles.items()
    ]
    columns = ("system", "operator", "µs a message", "ns a tuple", "work %")
    print_table(out, TextTable(columns=columns, rows=rows, text_columns=2))
    out.print("work: of what it costs by structures and units")
    transport = calibrated.transport
    assert transport is not None
    out.print(
        f"a message within a process: {transport.local_message_ps / 1e6:,.3g} µs; to another, for "
        f"its sender: {transport.sent_message_ps / 1e6:,.3g} µs"
    )


def show_structures(out: Console, profile: CostProfile) -> None:
    """Print what a call and a tuple cost in each step, where the structure is small and large."""
    rows = []
    for name, cost in sorted(profile.structures.items()):
        of_sizes = []
        for size in (cost.sizes[0], cost.sizes[-1]):
            calls = Step(name, 1, size), Step(name, 1025, size)
            one, many = (cost.work_ps(step, NO_WORK) / 1000 for step in calls)
            of_sizes += [f"{one:,.0f}", f"{many / 1025:,.1f}"]
        rows.append(
            (name, f"{cost.sizes[0]:,}", *of_sizes[:2], f"{cost.sizes[-1]:,}", *of_sizes[2:])
        )
    columns = ("step", "size", "ns a call", "ns a tuple", "size", "ns a call", "ns a tuple")
    print_table(out, TextTable(columns=columns, rows=rows, text_columns=1))
    out.print(
        "a call of one tuple, and a tuple of a call of 1,025; the work they count comes on top"
    )


def show_predictions(out: Console, predictions: Sequence[LivePrediction]) -> None:
    """Print predicted beside measured, a line per system and query, and the errors' medians."""
    rows = [
        (
            one.topology,
            one.query,
            "yes" if one.exact else "NO",
            f"{one.predicted.tps:,.0f}",
            f"{one.measured.tps:,.0f}",
            f"{one.throughput_error:+.0%}",
            f"{format_value(one.predicted.ms)} ms",
            f"{format_value(one.measured.ms)} ms",
            NO_VALUE if one.latency_error is None else f"{one.latency_error:+.0%}",
        )
        for one in predictions
    ]
    columns = (
        "system", "query", "exact", "predicted/s", "measured/s", "error", "predicted p50",
        "measured p50", "error",
    )  # fmt: skip
    print_table(out, TextTable(columns=columns, rows=rows, text_columns=3))
    throughput = [abs(one.throughput_error) for one in predictions]
    latency = [abs(one.latency_error) for one in predictions if one.latency_error is not None]
    for name, errors in (("throughput", throughput), ("latency", latency)):
        if errors:
            out.print(
                f"{name}: off by {statistics.median(errors):.0%} in the median, {max(errors):.0%} "
                "at the most"
            )


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
        f"{format_many(fuzzed.worlds, 'world')} in {seconds:.0f} s, "
        f"{fuzzed.worlds / max(seconds, 1e-9):.1f} a second: "
        f"{format_many(fuzzed.tuples, 'tuple')}, {format_many(fuzzed.messages, 'message')}, "
        f"{format_many(fuzzed.pairs, 'pair')} expected "
        f"(none in {format_many(fuzzed.without_pairs, 'world')}, "
        f"{fuzzed.without_pairs / max(fuzzed.worlds, 1):.0%})"
    )
    for trial, file in zip(fuzzed.failures, fuzzed.files, strict=True):
        out.print(f"{trial.world.topology}: {trial.failure}", style="red")
        again = shlex.join(["joinsim", "replay", str(file)])
        out.print(f"  made small: {format_many(trial.world.tuples, 'tuple')}; {again}")
    failed = f"{len(fuzzed.failures):,} of {fuzzed.worlds:,} failed"
    print_table(out, TextTable(columns=(), rows=[(verdict_cell(not fuzzed.failures), failed)]))


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


def show_replayed(out: Console, replayed: Replayed) -> None:
    """Print what became of a world that was run again, beside what its file says."""
    trial = replayed.trial
    compared = {True: "as recorded", False: "NOT as recorded", None: "none was recorded"}
    rows: list[tuple[str | TableCell, str]] = [
        ("topology", trial.world.topology),
        ("tuples", f"{trial.world.tuples:,}"),
        ("recorded", replayed.recording.failure or "nothing was wrong"),
        ("now", trial.failure or "nothing is wrong"),
        ("digest", f"{trial.digest or 'none'}: {compared[replayed.same]}"),
    ]
    print_table(out, TextTable(columns=(), rows=rows))


_MESSAGE = ("sender", "receiver", "port", "seq", "nbytes", "rows")
"""What is shown of a message of a trace, beside its times."""


def show_difference(out: Console, difference: Difference) -> None:
    """Print the first row that differs, with rows around it from either run."""
    from scenarios.trace_difference import place_line, settings_lines

    for line in settings_lines(difference):
        out.print(line)
    for table in _rows_of(difference) if not difference.same else ():
        out.print()
        print_table(out, table)
    out.print(place_line(difference))


def _rows_of(difference: Difference) -> list[TextTable]:
    """Return the rows of either run; the one that differs is marked."""
    columns = ("row", *_MESSAGE, *(f"{name.removesuffix('_ns')} (ms)" for name in TIMES))
    tables = []
    for run, rows in zip(difference.runs, difference.rows, strict=True):
        lines = []
        for place, row in enumerate(rows.to_pylist(), difference.first):
            mark = "FAIL" if place == difference.row else ""
            times = [f"{row[name] / 1e6:.6f}" for name in TIMES]
            cells = [f"{place:,}", *(str(row[name]) for name in _MESSAGE), *times]
            lines.append([TableCell(cell, mark) for cell in cells])
        tables.append(TextTable(columns=columns, rows=lines, title=str(run)))
    return tables


def _show_files(out: Console, page: Path, replay: str) -> None:
    out.print(f"{page}")
    out.print(f"replay: {replay}\n")
