"""Results as tables, the same in the terminal, on pages and in notebooks; and settings of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import isnan
from typing import TYPE_CHECKING, Any

from netsim.cost import COSTS, load_profile
from netsim.network import PRESETS
from scenarios.formatting import (
    NO_VALUE,
    VERDICT_WORDS,
    TableCell,
    TextTable,
    by_reason,
    format_bit_rate,
    format_bytes,
    format_count,
    format_duration,
    format_ms,
    format_value,
    format_values,
)
from scenarios.machine import versions

if TYPE_CHECKING:
    from scenarios.advice import CandidateRanking
    from scenarios.config import FaultConfig, NetworkConfig
    from scenarios.engines.comparison import EngineRanking
    from scenarios.many_runs import RunResult, SystemRanking
    from scenarios.run import FinishedRun
    from scenarios.study.findings import Findings
    from scenarios.study.study import Chart
    from scenarios.survey import Kind
    from scenarios.verdict import Verdict

HOLDS_WORDS: dict[bool | None, str] = {True: "holds", False: "does not hold", None: "unknown"}
"""Words for whether a claim holds; None where numbers are missing."""
UNDECIDED = "undecided"
"""Word for a claim of which some of the values within an interval would hold, and some not."""

_PERCENTILES = ("p50", "p95", "p99")
_RUN_KEYS = (
    "seed", "backend", "processes", "silence", "encrypt", "sink", "measured", "pairs", "rows"
)  # fmt: skip
"""Keys of a run that are in no section of their own."""


def verdict_cell(passed: bool | None) -> TableCell:
    """Return the word for a verdict, in its colour."""
    return TableCell(VERDICT_WORDS[passed], VERDICT_WORDS[passed])


def checks_table(verdict: Verdict) -> TextTable:
    """Return what each check of a run came to."""
    rows = [(check.name, verdict_cell(check.passed), check.detail) for check in verdict.checks]
    return TextTable(columns=("check", "", "finding"), rows=rows)


def offenders_table(finished: FinishedRun) -> TextTable:
    """Return some of the pairs that are wrong, and when their tuples reached each PE."""
    streams = finished.plan.query.streams
    rows = []
    for one in finished.verdict.offenders:
        arrivals = sorted(one.arrivals_ms.items(), key=lambda arrival: arrival[1])
        reached = ", ".join(f"{actor} {ms:.3f}" for actor, ms in arrivals) or "no PE"
        pair = (str(one.probe_id), str(one.match_id))
        rows.append([one.kind, streams[one.probe_stream], *pair, reached])
    columns = ("kind", "stream", "tuple", "match", "reached (ms)")
    return TextTable(columns=columns, rows=rows)


def comparison_table(comparison: SystemRanking) -> TextTable:
    """Return the figures of each system, the fastest first."""
    rows: list[list[str | TableCell]] = []
    for label, result in comparison.results.items():
        if result.failure:
            rows.append([label, TableCell(f"failed: {result.failure}", "FAIL")])
            continue
        run = result.record
        rows.append(
            [
                label,
                TableCell(_exactness(result), VERDICT_WORDS[result.passed]),
                format_count(run["throughput_tps"]),
                *(format_ms(run["latency_ms"][p]) for p in _PERCENTILES),
                format_count(run["network"]["messages"]),
                format_bytes(run["network"]["bytes"]),
                format_bytes(run["state_bytes"].get("total")),
                format_count(run["kernel_seconds"].get("total"), 3),
                format_count(run["verdict"]["produced"]),
            ]
        )
    columns = (
        "system", "exact", "tuples/s", "p50 ms", "p95 ms", "p99 ms", "messages", "network",
        "state", "kernel s", "pairs",
    )  # fmt: skip
    return TextTable(columns=columns, rows=rows, text_columns=2)


GOAL_COLUMNS = {
    "throughput": "tuples/s", "latency": "p95 ms", "bytes": "bytes a tuple",
    "memory": "bytes of state",
}  # fmt: skip
"""What a column of figures by a goal is called."""


def advice_table(advice: CandidateRanking) -> TextTable:
    """Return the candidates that an advice shows, the best first, and over how many tuples."""
    from scenarios.advice import format_estimate

    several, priced = len(advice.goals) > 1, bool(advice.prices)
    rows: list[list[str | TableCell]] = []
    for one in advice.shown:
        keeps = NO_VALUE if one.keeps_up is None else "yes" if one.keeps_up else "no"
        row: list[str | TableCell] = [one.label, keeps, format_count(one.rows)]
        row += [format_estimate(one.estimate(goal)) for goal in GOAL_COLUMNS]
        row += [str(one.machines), str(one.cores), str(one.pes)]
        row += [format_value(advice.price(one))] * priced
        row += ["yes" if one.label in advice.front else "no"] * several
        rows.append(row)
    columns = ["system", "keeps up", "tuples", *GOAL_COLUMNS.values(), "machines", "cores", "PEs"]
    columns += ["price of 10^9 tuples"] * priced + ["best trade-off"] * several
    return TextTable(columns=tuple(columns), rows=rows, text_columns=2)


def changes_table(advice: CandidateRanking) -> TextTable:
    """Return what each system would come to with a change, and which would be best."""
    from scenarios.topology_search import GOALS

    labels = list(dict.fromkeys(label for one in advice.changes for label in one.values))
    rows = [
        [
            one.what,
            f"{one.goal}, {GOALS[one.goal].unit}",
            one.winner,
            *(format_value(one.values.get(label)) for label in labels),
        ]
        for one in advice.changes
    ]
    columns = ("change", "by", "best", *labels)
    return TextTable(title="What would change it", columns=columns, rows=rows, text_columns=3)


def measured_table(advice: CandidateRanking) -> TextTable:
    """Return what real engines did with the query; without rows where none ran."""
    title = "Real engines, measured on this machine, not in virtual time"
    if advice.engines is None:
        return TextTable(title=title, columns=(), rows=())
    table = engines_table(advice.engines)
    columns = ("engine", "equal", "tuples/s", "wall s", "start s", "memory")
    chosen = table.chosen([table.columns.index(name) for name in columns])
    return replace(chosen, title=title, rows=chosen.rows[: len(advice.engines.measured)])


def left_out_table(advice: CandidateRanking) -> TextTable:
    """Return what an advice has no figures of: no time was left, it failed, or it cannot run."""
    engines = advice.engines
    notes = engine_notes(engines).rows if engines else []
    notes = [row for row in notes if engines and row[0] not in engines.waiting]  # had no time
    rows = [
        *(("no time", what) for what in advice.spent.left_out),
        *(("given up", what) for what in advice.spent.given_up),
        *(("failed", what) for what in advice.spent.failed),
        *notes,
        *((", ".join(who), why) for why, who in by_reason(advice.refused).items()),
    ]
    return TextTable(title="Left out", columns=(), rows=rows)


_EXACTNESS: dict[bool | None, str] = {True: "exact", False: "not exact", None: "not tested"}


def _exactness(result: RunResult) -> str:
    """Return whether a run was exact, and if not by how much."""
    if result.is_exact is not False:
        return _EXACTNESS[result.is_exact]
    verdict, kinds = result.record["verdict"], ("missing", "duplicate", "expired", "wrong")
    errors = ", ".join(f"{verdict[kind]:,} {kind}" for kind in kinds if verdict[kind])
    return errors if result.claims_exact else f"{errors} (no claim)"


def engines_table(comparison: EngineRanking) -> TextTable:
    """Return the figures of each engine, the fastest first, and those that have none."""
    rows: list[list[str | TableCell]] = []
    for name, one in comparison.measured.items():
        equal = comparison.equals(name)
        rows.append(
            [
                name,
                comparison.versions[name],
                TableCell("equal" if equal else "DIFFERS", VERDICT_WORDS[equal]),
                format_count(comparison.throughput_tps(name)),
                format_count(one.steady_tps),
                format_count(one.wall_seconds, 2),
                format_count(one.start_seconds, 2),
                *(format_ms((one.latency_ms or {}).get(p)) for p in _PERCENTILES),
                format_bytes(one.shuffled_bytes),
                format_bytes(one.memory_bytes),
                format_count(one.totals.pairs),
            ]
        )
    for word, names in (
        (TableCell("failed", "FAIL"), comparison.failed),
        ("cannot", comparison.refused),
        ("not run", comparison.waiting),
    ):
        rows += [
            [name, comparison.versions.get(name, NO_VALUE), word, *[NO_VALUE] * 10]
            for name in names
        ]
    columns = (
        "engine", "version", "equal", "tuples/s", "steady", "wall s", "start s", "p50 ms", "p95 ms",
        "p99 ms", "shuffled", "memory", "pairs",
    )  # fmt: skip
    return TextTable(columns=columns, rows=rows, text_columns=3)


def engine_notes(comparison: EngineRanking) -> TextTable:
    """Return what a reader should know of each engine: notes, and why some have no figures."""
    rows: list[list[str | TableCell]] = [
        [name, one.note] for name, one in comparison.measured.items() if one.note
    ]
    rows += [[name, f"cannot: {why}"] for name, why in comparison.refused.items()]
    rows += [[name, TableCell(f"failed: {why}", "FAIL")] for name, why in comparison.failed.items()]
    rows += [[name, "not run: the comparison was stopped before"] for name in comparison.waiting]
    return TextTable(columns=(), rows=rows)


def mark_kind(kind: Kind) -> str:
    """Return what follows a name whose values were not simulated."""
    return "" if kind == "simulated" else f" [{kind}]"


def chart_table(findings: Findings, chart: Chart) -> TextTable:
    """Return a study's chart: a row per x, a column per variant and per figure of the paper."""
    values = {
        name + mark_kind(chart.curve(name).kind): [
            NO_VALUE if value is None else str(value) for value in curve
        ]
        for name, curve in findings.curves(chart).items()
    }
    for paper, theirs, ours in findings.paper(chart):
        values[" / ".join(paper.of)] = [
            (NO_VALUE if our is None else str(our))
            + ("" if isnan(their) else f" (paper {format_value(their)})")
            for our, their in zip(ours, theirs, strict=True)
        ]
    names = [chart.axis.name(place) for place in chart.axis.places]
    title = ", ".join(part for part in (chart.panel.name, chart.label) if part)
    rows = list(zip(names, *values.values(), strict=True))
    return TextTable(title=title, columns=(chart.axis.label, *values), rows=rows, text_columns=1)


def claims_table(findings: Findings) -> TextTable:
    """Return each claim of the paper, whether it holds, and the numbers it is judged by."""
    rows: list[list[str | TableCell]] = []
    for finding in findings.claims:
        claim = finding.claim
        where = f" ({finding.panel})" if finding.panel else ""
        rows.append(
            [
                TableCell(
                    holds_word(finding.holds, undecided=finding.undecided),
                    VERDICT_WORDS[finding.holds],
                ),
                claim.text + where + mark_kind(finding.kind),
                claim.stated,
                TableCell(finding.measured, note=finding.why),
            ]
        )
    return TextTable(columns=("", "claim", "which says", "here"), rows=rows)


def holds_word(holds: bool | None, *, undecided: bool, unknown: str = HOLDS_WORDS[None]) -> str:
    """Return the word for whether a claim holds, *unknown* where there is nothing to compare."""
    if undecided:
        return UNDECIDED
    return unknown if holds is None else HOLDS_WORDS[holds]


def reproduction_table(claims: Sequence[Mapping[str, Any]], here: str = "measured") -> TextTable:
    """Return each claim of a paper, its number, what was measured *here*, and what came of it.

    *claims* are records of `scenarios.study.reproduction.ReproducedPaper.claim_records`.
    """
    rows = []
    for claim in claims:
        holds, where = claim["holds"], f" ({claim['panel']})" if claim["panel"] else ""
        word = holds_word(holds, undecided=claim["undecided"], unknown="not comparable")
        rows.append(
            (
                claim["figure"] or claim["study"],
                claim["text"] + where + mark_kind(claim["kind"]),
                claim["stated"],
                claim["measured"],
                TableCell(word, VERDICT_WORDS[holds]),
                claim["why"],
            )
        )
    columns = ("figure", "claim", "in the paper", here, "", "reason")
    return TextTable(columns=columns, rows=rows)


def points_table(findings: Findings) -> TextTable:
    """Return what each run of a study came to."""
    rows: list[list[str | TableCell]] = []
    for point in findings.study.points:
        result = findings.results[point.number]
        name = [f"{point.number}", point.label]
        record, mark = result.record, VERDICT_WORDS[result.passed]
        if result.failure:
            rows.append([*name, TableCell(f"failed: {result.failure}", "FAIL")])
        elif "verdict" not in record:
            rows.append([*name, TableCell(mark, mark), record["checked"]])
        else:
            rows.append(
                [
                    *name,
                    TableCell(
                        _EXACTNESS[result.is_exact]
                        + ("" if result.claims_exact else " (no claim)"),
                        mark,
                    ),
                    format_count(record["verdict"]["produced"]),
                    format_count(record["throughput_tps"]),
                    format_count(record["wall_seconds"], 2),
                ]
            )
    columns = ("point", "run", "verdict", "pairs", "tuples/s", "wall s")
    return TextTable(columns=columns, rows=rows, text_columns=3)


def settings_tables(finished: FinishedRun) -> list[TextTable]:
    """Return everything that was set for a run, by title."""
    config = finished.plan.config
    # Of the whole configuration only the silence is a quantity; its schema takes long to make.
    run = {key: getattr(config, key) for key in _RUN_KEYS}
    run |= {"silence": format_duration(config.silence), "rows": config.rows or "all"}
    feeding = format_values(config.feeding)
    if config.feeding.rate_tps is None:
        feeding["rate_tps"] = "as fast as the system takes them"
    titles: dict[str, dict[str, Any]] = {"Run": run}
    if config.bind:
        titles["Placeholders"] = config.bind
    titles |= {"Parameters": format_values(finished.plan.parameters), "Feeding": feeding}
    if config.recovery:
        titles["Recovery"] = format_values(config.recovery)
    if config.clock == "virtual":
        profile = load_profile(config.profile)
        costs = [(name, getattr(profile, name)) for name in ("name", *COSTS)]
        titles["Network"] = _network(config.network)
        if config.faults:
            titles["Faults"] = {
                f"{place}. {fault.kind}": _fault(fault)
                for place, fault in enumerate(config.faults, 1)
            }
        titles["Cost profile"] = {k: f"{v:,} ps" if isinstance(v, int) else v for k, v in costs}
    else:  # of the network only the inboxes are not the machine's own
        titles["Network"] = {"inbox_messages": config.network.inbox_messages}
    titles["Versions"] = versions()
    return [
        TextTable(
            title=title, columns=(), rows=[(key, _setting(value)) for key, value in values.items()]
        )
        for title, values in titles.items()
    ]


def _network(network: NetworkConfig) -> dict[str, Any]:
    link = PRESETS[network.preset]
    mean, rate = format_duration(link.latency.mean_ns), format_bit_rate(link.bandwidth_bps)
    preset = f"{network.preset} ({link.latency.kind} {mean}, {rate})"
    return format_network(network) | {"preset": preset}


def format_network(network: NetworkConfig) -> dict[str, Any]:
    """Return the values of a network, quantities with their units, each link by its two sites."""
    values = format_values(network)
    del values["links"]
    for one in network.links:
        differs = one.model_dump(exclude={"a", "b"}, exclude_none=True)
        values[f"{one.a} - {one.b}"] = _listed(one, differs)
    return values


def _fault(fault: FaultConfig) -> str:
    """Return what is set of a fault beside its kind."""
    names = fault.model_dump(exclude={"kind"}, exclude_defaults=True)
    return _listed(fault, names) or "all the time"


def _listed(section: Any, names: Iterable[str]) -> str:
    """Return some values of a section of a configuration in one line."""
    values = format_values(section)
    return ", ".join(f"{name} {_setting(values[name])}" for name in names)


def _setting(value: Any) -> str:
    if value is None:
        return "by default"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
