"""The verdict on a run, from the checks over its results and its trace.

Of an approximate run it also says what share of the results it gave, and whether links kept to a
budget.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from actors.feed import StreamData
from actors.protocol import HEADER_BYTES, NS_PER_S
from actors.result_files import (
    COLLECTORS_SCHEMA,
    LATE_SCHEMA,
    SUMMARY_SCHEMA,
    collectors_path,
    late_path,
    pairs_path,
    pairs_schema,
    part_files,
    summary_path,
)
from actors.results import Sink
from joins.errors import DataError
from joins.semijoins.value_sample import TupleSample
from netsim.outcome import Outcome, Recovered
from netsim.trace import TRACE_SCHEMA
from scenarios.formatting import format_many
from scenarios.plan import Plan
from scenarios.result_readers import LatencyHistogram
from scenarios.run_directory import TRACE
from scenarios.verdict import CheckResult, Verdict
from scenarios.verdict.arrival_checks import (
    RECOVERING,
    LatencyCheck,
    LatenessCheck,
    with_arrivals,
)
from scenarios.verdict.expectation import Expectation
from scenarios.verdict.oracle_check import PairComparison
from scenarios.verdict.trace_checks import (
    ReadTrace,
    check_conservation,
    check_fifo,
    check_trace,
)
from topologies.topology import Approximation

_FIGURES = (
    "real seconds, memory, what work costs, sizes of messages to others than sinks, when a "
    "message left its sender's port, percentiles, and the figures of collectors, faults and "
    "recovery are not computed a second time, nor are the columns that a query selects, nor what "
    "a raw file or a table became when it was prepared"
)

_ROW_BYTES, _ID_BYTES = 16, 8
"""A row of a report has a tuple's id and its number of matches, or a late tuple's id and time; then
there are the ids of each result."""
_COLLECTOR_BYTES = 8 * len(COLLECTORS_SCHEMA)

_AGAIN = "the run is judged by what it wrote, so run it again"


@dataclass(frozen=True, kw_only=True)
class Approximated:
    """An approximate run's figures."""

    stated_recall: float | None
    standard_error: float | None
    """The share of the results that it says it gave, from those alone; None where it gave none."""
    recall: float | None
    """What that share was; None where no result was expected."""
    link: str
    link_bytes_ps: float
    """The busiest link, by its two sites, and its bytes a second on average over the run."""
    byte_budget: int | None
    """Most that any link may carry; None for any."""
    exact: bool
    """Whether exactly the results of what is kept were promised."""

    def checks(self, verdict: Verdict) -> list[CheckResult]:
        """Return that the results are those of what is kept, and that links kept to the budget."""
        stated = (
            "nothing was found to state a recall from"
            if self.stated_recall is None or self.standard_error is None
            else f"recall {self.stated_recall:.3f} ± {self.standard_error:.3f} stated"
        )
        true = "" if self.recall is None else f", {self.recall:.3f} true"
        too_many = verdict.spurious + verdict.duplicate
        passed: bool | None = not (verdict.off_sample or too_many)
        if not verdict.tested or (verdict.off_sample and not too_many and not self.exact):
            passed = None
        detail = (
            f"{stated}{true}; {format_many(too_many, 'result')} too many, "
            f"{format_many(verdict.off_sample, 'tuple')} without just the results of what is kept"
        )
        if not verdict.adds_up:
            passed = False
            detail += "; these counts do not add up, nor does the recall"
        found = [CheckResult(name="sample", passed=passed, detail=detail)]
        if self.byte_budget is not None:
            sent = f"{self.link_bytes_ps:,.0f} of {self.byte_budget:,} bytes a second"
            detail = f"busiest link {self.link}: {sent}"
            within = self.link_bytes_ps <= self.byte_budget
            found.append(CheckResult(name="byte budget", passed=within, detail=detail))
        return found


def judge(
    plan: Plan,
    directory: Path,
    outcome: Outcome,
    pairs_directory: Callable[[], Path],
    ahead: Expectation | None,
) -> tuple[Verdict, LatencyHistogram, Approximated | None]:
    """Return the verdict on the run in *directory*, and the latencies of its tuples in ns.

    The third part is what an approximate run says of its recall; None where nothing is left out on
    purpose.

    A topology that claims exactness fails when a pair differs; of one that does not it is then
    unknown whether it is right.
    *pairs_directory* is called when pairs are needed that the run did not write. *ahead* is what
    the oracle has begun to work out.

    Raise :exc:`joins.errors.DataError` naming a file of results that cannot be judged.
    """
    # Here, as `scenarios.run` imports it while the run goes on.
    from scenarios.verdict.second_reading import check_reading

    path = directory / TRACE
    _require_files(plan, directory)
    collectors = pq.read_table(collectors_path(directory))
    graph = plan.graph()
    latencies = LatencyCheck(plan)
    trace = ReadTrace(
        path,
        wiring=graph.wiring,
        placement=graph.placement,
        network=plan.network if plan.config.clock == "virtual" else None,
        widest=prod(max(1.0, f.factor) for f in plan.config.faults if f.kind == "bandwidth"),
        watch=latencies.add_rows,
    )
    lateness = LatenessCheck(plan, directory)
    recovered = outcome.recovered
    weaker = bool(recovered and recovered.weakens)
    claims_exact = plan.topology.claims_exact(plan.parameters)
    approximation = plan.topology.approximation(plan.query, plan.parameters)
    verdict = Verdict(claims_exact=claims_exact and not weaker, late=lateness.claimed)
    found = PairComparison(
        plan,
        directory,
        pairs_directory,
        verdict,
        late=lateness.late,
        again=weaker,
        ahead=ahead,
        approximation=approximation,
        latency_check=latencies,
    )
    verdict.offenders = with_arrivals(verdict.offenders, plan, path)
    verdict.offenders += [one for one in found.strays if 0 <= one.probe_stream < len(plan.files)]
    bound = {name: str(value) for name, value in plan.config.bind.items()}
    verdict.checks = [
        check_reading(plan.config.query, bound, plan.query),
        _check_files(plan, directory, collectors, found.odd_rows),
        _oracle(verdict),
        _rows(verdict, found),
        _pairs(verdict, found),
        _window_bounds(verdict),
        check_conservation(outcome, trace),
        check_fifo(trace),
        check_trace(
            outcome,
            trace,
            sum(file.tuples for file in plan.files),
            own=not all(graph.specs[source].is_ours for source in graph.sources),
        ),
        _sinks(plan, outcome, trace, found, lateness.claimed, collectors.num_rows),
        latencies.check(),
        lateness.check(answered=found.answered_late, exact=verdict.claims_exact),
        CheckResult(name="figures", passed=None, detail=_FIGURES),
    ]
    if recovered:
        # A link without a transport doubles messages, too.
        copies = 0 if outcome.doubled else found.most_copies
        verdict.checks.append(
            _recovery(verdict, recovered, claims_exact=claims_exact, copies=copies)
        )
        verdict.as_promised = verdict.checks[-1].passed is True
    if approximation is None:
        return verdict, found.latencies, None
    approximated = _measure_approximation(plan, approximation, directory, outcome, verdict, trace)
    sampled = approximated.checks(verdict)
    verdict.checks += sampled
    verdict.as_promised |= sampled[0].passed is True
    return verdict, found.latencies, approximated


def _require_files(plan: Plan, directory: Path) -> None:
    """Raise :exc:`DataError` naming a file of results that is missing or not as it was written."""
    for path, schema in _result_files(plan, directory).items():
        parts = part_files(path)
        if not parts:
            raise DataError(f"{path} has no parts: {_AGAIN}")
        for part in parts:
            _require_file(part, schema)
    _require_file(directory / TRACE, TRACE_SCHEMA)
    for path in (late_path(directory), collectors_path(directory)):
        table = pq.read_table(path)
        for name in table.column_names:
            if table[name].null_count:
                raise DataError(f"{path}: column {name} has missing values; {_AGAIN}")


def _check_files(plan: Plan, directory: Path, collectors: pa.Table, odd_rows: int) -> CheckResult:
    """Check that there is no other file of results, and that figures are possible.

    *odd_rows* are those of reports that no actor can have sent, see
    `scenarios.result_readers.Summaries`.
    """
    expected = _result_files(plan, directory)
    others = set(directory.glob("probes-*")) - expected.keys()
    for path in expected:
        if path.is_dir():
            others |= set(path.iterdir()) - set(part_files(path))
    negative = sum(any(figure < 0 for figure in row.values()) for row in collectors.to_pylist())
    wrong = []
    if others:
        names = ", ".join(sorted(str(path.relative_to(directory)) for path in others))
        wrong.append(f"the run does not write {names}")
    if odd_rows:
        rows = format_many(odd_rows, "row has", "rows have")
        wrong.append(f"{rows} a sender that is no actor, or a negative latency")
    if negative:
        rows = format_many(negative, "row of collectors has", "rows of collectors have")
        wrong.append(f"{rows} negative figures")
    detail = "they are those that a run writes, and no sender, latency or collector is impossible"
    return CheckResult(name="files", passed=not wrong, detail="; ".join(wrong) or detail)


def _result_files(plan: Plan, directory: Path) -> dict[Path, pa.Schema]:
    streams = plan.query.streams
    files = {summary_path(directory, stream): SUMMARY_SCHEMA for stream in range(len(streams))}
    files |= {late_path(directory): LATE_SCHEMA, collectors_path(directory): COLLECTORS_SCHEMA}
    return files | ({pairs_path(directory): pairs_schema(streams)} if plan.config.pairs else {})


def _require_file(path: Path, schema: pa.Schema) -> None:
    """Raise :exc:`DataError` where *path* is no file with the columns of *schema*."""
    if not path.is_file():
        raise DataError(f"{path} is missing: {_AGAIN}")
    try:
        found = pq.read_schema(path)
    except pa.ArrowInvalid as error:
        raise DataError(f"{path} is damaged ({error}): {_AGAIN}") from None
    if found.names != schema.names:
        names = ", ".join(schema.names)
        raise DataError(f"{path} has columns {', '.join(found.names)}, not {names}: {_AGAIN}")
    for column, written in zip(found, schema, strict=True):
        if column.type != written.type:
            raise DataError(
                f"{path}: column {column.name} is {column.type}, not {written.type}; {_AGAIN}"
            )


def _oracle(verdict: Verdict) -> CheckResult:
    detail = (
        f"{verdict.expected:,} expected, {verdict.produced:,} produced: {verdict.missing:,} "
        f"missing, {verdict.duplicate:,} duplicate, {verdict.spurious:,} spurious"
    )
    if not verdict.tested:
        return CheckResult(name="oracle", passed=None, detail="no pair was expected, none produced")
    if verdict.exact and not verdict.adds_up:
        detail += ", which does not add up"
        return CheckResult(name="oracle", passed=False, detail=detail)
    if not verdict.claims_exact and not verdict.exact:
        detail += "; the run does not claim to be exact, so this alone is neither right nor wrong"
        return CheckResult(name="oracle", passed=None, detail=detail)
    return CheckResult(name="oracle", passed=verdict.exact, detail=detail)


def _recovery(
    verdict: Verdict, recovered: Recovered, *, claims_exact: bool, copies: int
) -> CheckResult:
    """Check what the guarantee promises of a system that claims exactness.

    The pair that came most often came *copies* times. Each time that the actors went back it may
    have come once more.

    Without recovery an actor forgets what it knew, also how many tuples it has seen: a window that
    counts them is then too long for a while, and a result may come from two actors. So pairs may
    be missing, expired or duplicate; a pair that does not satisfy the query is no crash's fault.
    """
    counts = [
        format_many(recovered.crashes, "crash", "crashes"),
        format_many(recovered.restarts, "restart"),
    ]
    if recovered.guarantee != "none":  # which takes no snapshots
        counts.append(format_many(recovered.snapshots, "snapshot"))
    detail = (
        f"{recovered.guarantee.replace('_', ' ')}: {', '.join(counts)}; "
        f"{verdict.missing:,} missing, {verdict.duplicate:,} duplicate, "
        f"{verdict.spurious:,} spurious"
    )
    if recovered.marker_lost:
        detail += "; a marker was lost, and no snapshot came after that"
    if verdict.inconsistent:
        tuples = format_many(verdict.inconsistent, "tuple")
        detail += f"; {tuples} reported with other pairs than are listed"
    passed: bool | None = None
    if not recovered.crashes or not claims_exact:
        pass
    elif recovered.guarantee == "exactly_once":
        passed = verdict.exact
    elif recovered.guarantee == "at_least_once":
        passed = not (verdict.missing or verdict.spurious or verdict.inconsistent)
        if copies > 1 + recovered.restarts:
            passed = False
            detail += f"; a pair came {copies:,} times, more often than restarts explain"
    elif verdict.wrong or verdict.inconsistent:
        passed = False
    elif not verdict.exact:
        detail += "; nothing is promised but that every pair satisfies the query"
    return CheckResult(name="recovery", passed=passed, detail=detail)


def _sinks(
    plan: Plan,
    outcome: Outcome,
    trace: ReadTrace,
    found: PairComparison,
    late: int,
    collectors: int,
) -> CheckResult:
    """Check that what sinks received is what is in the files, in rows by sender and in bytes.

    The files have so many *late* tuples, and rows of *collectors*. They do not say who sent a late
    tuple, or what a collector did: where tuples were late, a sender may have sent more rows than
    the files have of it. An actor of the user's own may send sinks messages of other sizes, and
    emit results itself.
    """
    graph = plan.graph()
    specs = graph.specs
    ours = all(spec.is_ours for spec in specs.values())
    to_sinks = [channel for channel in trace.received if specs[channel[1]].actor is Sink]
    messages = sum(trace.received[channel] for channel in to_sinks)
    if outcome.recovered or not messages:
        why = RECOVERING if messages else "nothing reached a sink"
        return CheckResult(name="sinks", passed=None, detail=why)
    sent: Counter[str] = Counter()
    for channel in to_sinks:
        sent[channel[0]] += trace.rows[channel]
    in_files = dict(zip(graph, found.by_sender.tolist(), strict=True))
    wrong = [
        f"{sender} sent {format_many(sent[sender], 'row')}, and the files have {count:,} of it"
        for sender, count in in_files.items()
        if (count > sent[sender] and ours) or (count < sent[sender] and not late)
    ]
    reports = sum(in_files.values()) + late
    if not wrong and (sent.total() > reports or (sent.total() < reports and ours)):
        rows = format_many(sent.total(), "row")
        wrong.append(f"sinks received {rows}, and the files have {reports:,}")
    nbytes = sum(trace.nbytes[channel] for channel in to_sinks)
    ids_of_results = max(2, len(plan.files)) * found.reported
    due = messages * HEADER_BYTES + _ROW_BYTES * reports
    due += _ID_BYTES * ids_of_results + _COLLECTOR_BYTES * collectors
    if ours and nbytes != due:
        wrong.append(f"sinks received {nbytes:,} bytes, and what the files have takes {due:,}")
    brought = format_many(messages, "message")
    detail = f"the files have what {brought} brought, by rows of each sender"
    detail += " and by bytes" if ours else "; own actors may send messages of other sizes"
    return CheckResult(name="sinks", passed=not wrong, detail="; ".join(wrong[:3]) or detail)


def _rows(verdict: Verdict, found: PairComparison) -> CheckResult:
    detail = "every row is of a tuple that may have pairs"
    if found.stray_rows:
        detail = (
            f"{format_many(found.stray_rows, 'row is', 'rows are')} of no tuple that may have "
            f"pairs, with {format_many(verdict.invented, 'pair')}"
        )
        if found.strays:
            first = found.strays[0]
            matches = ", ".join(map(str, np.atleast_1d(first.match_id)))
            detail += f": the first, tuple {first.probe_id} of stream {first.probe_stream}"
            detail += f", matches {matches}"
    return CheckResult(name="rows", passed=not found.stray_rows, detail=detail)


def _pairs(verdict: Verdict, found: PairComparison) -> CheckResult:
    others, passed = verdict.inconsistent, True if found.listed else None
    if others:
        passed = False
        reported = format_many(others, "tuple was reported", "tuples were reported")
        detail = f"{reported} with other pairs than a replay lists"
        if found.listed:
            on_disk = format_many(others, "tuple has", "tuples have")
            detail = f"{on_disk} other pairs on disk than were reported"
    elif found.listed:
        detail = "read back from disk: each tuple has those that were reported"
    else:
        detail = "not written: their counts and fingerprints alone were compared"
    return CheckResult(name="pairs", passed=passed, detail=detail)


def _window_bounds(verdict: Verdict) -> CheckResult:
    lie = "lies" if verdict.expired == 1 else "lie"
    detail = (
        f"{verdict.expired:,} of {format_many(verdict.produced, 'pair')} {lie} outside the window"
    )
    judged = verdict.produced > 0 and verdict.claims_exact
    return CheckResult(
        name="window bounds", passed=verdict.expired == 0 if judged else None, detail=detail
    )


def _measure_approximation(
    plan: Plan,
    approximation: Approximation,
    directory: Path,
    outcome: Outcome,
    verdict: Verdict,
    trace: ReadTrace,
) -> Approximated:
    """Return the figures of the approximate run in *directory*."""
    stated, error = _stated_recall(approximation.kept, plan.files, directory)
    recovered = outcome.recovered
    link, nbytes = _busiest_link(trace, plan.graph().placement)
    return Approximated(
        stated_recall=stated,
        standard_error=error,
        recall=verdict.right / verdict.expected if verdict.expected else None,
        link=link,
        link_bytes_ps=nbytes * NS_PER_S / max(outcome.virtual_ns, 1),
        byte_budget=approximation.byte_budget,
        exact=approximation.exact and not (recovered and recovered.weakens),
    )


def _stated_recall(
    kept: Sequence[TupleSample], files: Sequence[StreamData], directory: Path
) -> tuple[float | None, float | None]:
    """Return the recall and its standard error as estimated from the results; None of none."""
    found = [
        _results_by_value(tuples, file, summary_path(directory, stream))
        for stream, (tuples, file) in enumerate(zip(kept, files, strict=True))
    ]
    values, of = np.unique(np.concatenate([values for values, _ in found]), return_inverse=True)
    results = np.bincount(of, np.concatenate([counts for _, counts in found]), len(values))
    return kept[0].values.recall(values, results) if results.any() else (None, None)


def _results_by_value(
    kept: TupleSample, file: StreamData, summary: Path
) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of a stream's probing tuples, and how many results each had."""
    table = pq.read_table(summary, columns=["probe_id", "count"])
    columns = [batch.fields[kept.field] for batch in file.batches()]
    values = np.concatenate([np.empty(0), *columns])
    probe_id, count = table["probe_id"].to_numpy(), table["count"].to_numpy()
    known = (probe_id >= 0) & (probe_id < len(values))
    return values[probe_id[known]], count[known]


def _busiest_link(trace: ReadTrace, placement: Mapping[str, str]) -> tuple[str, int]:
    """Return the two sites between which most bytes went, and how many."""
    carried: Counter[str] = Counter()
    for channel, nbytes in trace.nbytes.items():
        ends = {placement[actor] for actor in channel}
        if len(ends) == 2:
            carried[" - ".join(sorted(ends))] += nbytes
    return max(carried.items(), key=lambda item: item[1], default=("none", 0))
