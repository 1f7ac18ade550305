"""The verdict on a run, from the checks over its results and its trace.

What a run says it dropped as late is checked against when its tuples arrived. A watermark is at
most the latest event time that has arrived, less the lag. A tuple may be late if it is older than
that when it arrives. A joiner's watermark may be further behind, so it may take a tuple that was
late by this rule; it may not drop one that was not.

Of an approximate run there is also what it says of its recall, what that was, and whether links
kept to a budget.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import prod
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from actors.feed import StreamData, open_feed
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
from actors.source import NS_PER_S, Feeding
from joins.errors import DataError
from joins.queries.query import JoinQuery
from joins.semijoins.value_sample import TupleSample
from netsim.outcome import Outcome, Recovered
from netsim.trace import TRACE_SCHEMA
from scenarios.plan import Plan
from scenarios.result_readers import LatencyHistogram
from scenarios.run_directory import TRACE
from scenarios.verdict import CheckResult, PairCounts, Verdict
from scenarios.verdict.latency_check import LatencyCheck
from scenarios.verdict.oracle_check import Expectation, PairDifferences, arrival_numbers, compare
from scenarios.verdict.trace_checks import (
    ReadTrace,
    Written,
    arrivals_of,
    check_conservation,
    check_fifo,
    check_sinks,
    check_trace,
)
from topologies.topology import Approximation

_FIGURES = (
    "real seconds, memory, what work costs, sizes of messages to others than sinks, when a "
    "message left its sender's port, percentiles, and the figures of collectors, faults and "
    "recovery are not computed a second time, nor are the columns that a query selects, nor what "
    "a raw file or a table became when it was prepared"
)

_AGAIN = "the run is judged by what it wrote, so run it again"
_CHUNK_ROWS = 8_192
_INT64 = np.iinfo(np.int64)


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
    lateness = check_lateness(plan.files, plan.feeding, directory)
    recovered = outcome.recovered
    weaker = bool(recovered and recovered.weakens)
    claims_exact = plan.topology.claims_exact(plan.parameters)
    approximation = plan.topology.approximation(plan.query, plan.parameters)
    found = compare(
        plan,
        directory,
        pairs_directory,
        late=lateness.late,
        again=weaker,
        ahead=ahead,
        approximation=approximation,
        latencies=latencies,
    )
    numbers = arrival_numbers(found.offenders, plan.files, plan.feeding.disorder)
    offenders = [
        replace(one, arrivals_ms=arrivals_of(numbers[one.probe_stream, one.probe_id], path))
        for one in found.offenders
    ]
    offenders += [one for one in found.strays if 0 <= one.probe_stream < len(plan.files)]
    verdict = Verdict(
        claims_exact=claims_exact and not weaker,
        **{count.name: getattr(found, count.name) for count in fields(PairCounts)},
        late=lateness.claimed,
        offenders=offenders,
    )
    bound = {name: str(value) for name, value in plan.config.bind.items()}
    verdict.checks = [
        check_reading(plan.config.query, bound, plan.query),
        _check_files(plan, directory, found.odd_rows),
        _oracle(verdict),
        _rows(found),
        _pairs(found),
        _window_bounds(verdict),
        check_conservation(outcome, trace),
        check_fifo(trace),
        check_trace(
            outcome,
            trace,
            sum(file.tuples for file in plan.files),
            own=not all(graph.specs[source].is_ours for source in graph.sources),
        ),
        _sinks(plan, directory, outcome, trace, found, lateness),
        latencies.check(),
        lateness.check(
            plan.query,
            plan.feeding,
            answered=found.answered_late,
            exact=verdict.claims_exact,
        ),
        CheckResult(name="figures", passed=None, detail=_FIGURES),
    ]
    if recovered:
        verdict.checks.append(_recovery(verdict, recovered, claims_exact=claims_exact))
        verdict.as_promised = verdict.checks[-1].passed is True
    if approximation is None:
        return verdict, found.latencies, None
    approximated = _approximated(plan, approximation, directory, outcome, verdict, trace)
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


def _check_files(plan: Plan, directory: Path, odd_rows: int) -> CheckResult:
    """Check that there is no other file of results, and that figures are possible.

    *odd_rows* are those of reports that no actor can have sent, see
    `scenarios.result_readers.Summaries`.
    """
    expected = _result_files(plan, directory)
    others = set(directory.glob("probes-*")) - expected.keys()
    for path in expected:
        if path.is_dir():
            others |= set(path.iterdir()) - set(part_files(path))
    collectors = pq.read_table(collectors_path(directory))
    negative = sum(any(figure < 0 for figure in row.values()) for row in collectors.to_pylist())
    wrong = []
    if others:
        names = ", ".join(sorted(str(path.relative_to(directory)) for path in others))
        wrong.append(f"the run does not write {names}")
    if odd_rows:
        wrong.append(f"{odd_rows:,} rows have a sender that is no actor, or a negative latency")
    if negative:
        wrong.append(f"{negative:,} rows of collectors have negative figures")
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


def _recovery(verdict: Verdict, recovered: Recovered, *, claims_exact: bool) -> CheckResult:
    """Check what the guarantee promises of a system that claims exactness.

    Without recovery an actor forgets what it knew, also how many tuples it has seen: a window that
    counts them is then too long for a while, and a result may come from two actors. So pairs may
    be missing, expired or duplicate; a pair that does not satisfy the query is no crash's fault.
    """
    detail = (
        f"{recovered.guarantee.replace('_', ' ')}: {recovered.crashes:,} crashes, "
        f"{recovered.restarts:,} restarts, {recovered.snapshots:,} snapshots; "
        f"{verdict.missing:,} missing, {verdict.duplicate:,} duplicate, "
        f"{verdict.spurious:,} spurious"
    )
    if verdict.inconsistent:
        detail += f"; {verdict.inconsistent:,} tuples reported with other pairs than are listed"
    passed: bool | None = None
    if not recovered.crashes or not claims_exact:
        pass
    elif recovered.guarantee == "exactly_once":
        passed = verdict.exact
    elif recovered.guarantee == "at_least_once":
        passed = not (verdict.missing or verdict.spurious or verdict.inconsistent)
    elif verdict.wrong or verdict.inconsistent:
        passed = False
    elif not verdict.exact:
        detail += "; nothing is promised but that every pair satisfies the query"
    return CheckResult(name="recovery", passed=passed, detail=detail)


def _sinks(
    plan: Plan,
    directory: Path,
    outcome: Outcome,
    trace: ReadTrace,
    found: PairDifferences,
    lateness: Lateness,
) -> CheckResult:
    graph = plan.graph()
    sinks = {name for name, spec in graph.specs.items() if spec.actor is Sink}
    written = Written(
        by_sender=found.by_sender,
        pairs=found.reported,
        late=lateness.claimed,
        collectors=pq.read_table(collectors_path(directory)).num_rows,
        streams=max(2, len(plan.files)),
        ours=all(spec.is_ours for spec in graph.specs.values()),
    )
    return check_sinks(outcome, trace, sinks, list(graph), written)


def _rows(found: PairDifferences) -> CheckResult:
    detail = "every row is of a tuple that may have pairs"
    if found.stray_rows:
        detail = (
            f"{found.stray_rows:,} rows are of no tuple that may have pairs, and claim "
            f"{found.invented:,}"
        )
        if found.strays:
            first = found.strays[0]
            matches = ", ".join(map(str, np.atleast_1d(first.match_id)))
            detail += f": the first, tuple {first.probe_id} of stream {first.probe_stream}"
            detail += f" with {matches}"
    return CheckResult(name="rows", passed=not found.stray_rows, detail=detail)


def _pairs(found: PairDifferences) -> CheckResult:
    others, passed = found.inconsistent, True if found.listed else None
    if others:
        passed = False
        detail = f"{others:,} tuples were reported with other pairs than a replay lists"
        if found.listed:
            detail = f"{others:,} tuples have other pairs on disk than were reported"
    elif found.listed:
        detail = "read back from disk: each tuple has those that were reported"
    else:
        detail = "not written: their counts and fingerprints alone were compared"
    return CheckResult(name="pairs", passed=passed, detail=detail)


def _window_bounds(verdict: Verdict) -> CheckResult:
    detail = f"{verdict.expired:,} of {verdict.produced:,} pairs lie outside the window"
    judged = verdict.produced > 0 and verdict.claims_exact
    return CheckResult(
        name="window bounds", passed=verdict.expired == 0 if judged else None, detail=detail
    )


@dataclass(frozen=True, kw_only=True)
class Lateness:
    """The tuples that a run says were late.

    Attributes
    ----------
    claimed
        Rows of ``late.parquet``.
    late
        Per stream the tuples that may have been late, int64, ascending: the rest were lost.
    unknown, repeated, unjustified
        Rows of tuples that do not exist; that say again what another said; and of tuples that no
        watermark had passed, or with another event time or watermark than there was.
    behind
        Tuples that arrived behind the watermark.
    """

    claimed: int
    late: tuple[np.ndarray, ...]
    unknown: int = 0
    repeated: int = 0
    unjustified: int = 0
    behind: int = 0

    def check(
        self, query: JoinQuery, feeding: Feeding, *, answered: int, exact: bool = True
    ) -> CheckResult:
        """Return what is wrong; *answered* late tuples were also joined.

        Where a run does not claim to be *exact*, a tuple may be late at one replica and joined at
        another, or come again after a crash, and be late then, or late twice.
        """
        wrong = self.unknown or self.unjustified
        if exact:
            wrong = wrong or self.repeated or answered
        if query.interval is None and not feeding.disorder and not self.claimed:
            return CheckResult(name="watermarks", passed=None, detail="this run had none")
        return CheckResult(
            name="watermarks",
            passed=not wrong,
            detail=(
                f"{self.behind:,} tuples arrived behind the watermark, {self.claimed:,} dropped as "
                f"late: {self.unjustified:,} without cause, {self.repeated:,} twice, "
                f"{self.unknown:,} that do not exist, {answered:,} answered all the same"
            ),
        )


def check_lateness(files: tuple[StreamData, ...], feeding: Feeding, directory: Path) -> Lateness:
    """Compare every row of the run's ``late.parquet`` with the arrivals."""
    table = pq.read_table(late_path(directory))
    stream, ids, ts, watermark = (
        table[name].to_numpy() for name in ("stream", "id", "ts", "watermark")
    )
    claims = []
    known = repeated = 0
    for place, file in enumerate(files):
        mine = np.flatnonzero((stream == place) & (ids >= 0) & (ids < file.tuples))
        distinct, first = np.unique(ids[mine], return_index=True)
        known += len(mine)
        repeated += len(mine) - len(distinct)
        claims.append(_Claims(distinct, ts[mine][first], watermark[mine][first]))
    behind = 0
    if feeding.disorder or known:
        behind = _mark_justified(files, feeding, claims)
    late = tuple(claim.id[claim.justified] for claim in claims)
    return Lateness(
        claimed=len(ids),
        late=late,
        unknown=len(ids) - known,
        repeated=repeated,
        unjustified=known - repeated - sum(map(len, late)),
        behind=behind,
    )


class _Claims:
    """The tuples of a stream that are said to have been late; *justified* marks those that were."""

    def __init__(self, id_: np.ndarray, ts: np.ndarray, watermark: np.ndarray) -> None:
        self.id, self.ts, self.watermark = id_, ts, watermark
        self.justified = np.zeros(len(id_), np.bool_)

    def mark(self, ids: np.ndarray, ts: np.ndarray, passed: np.ndarray) -> None:
        """Compare claims about *ids* with their event times, and the watermark each came behind."""
        tuples = np.flatnonzero(np.isin(ids, self.id))
        place = np.searchsorted(self.id, ids[tuples])
        claimed = self.watermark[place]
        self.justified[place] = (
            (self.ts[place] == ts[tuples]) & (ts[tuples] < claimed) & (claimed <= passed[tuples])
        )


def _mark_justified(files: tuple[StreamData, ...], feeding: Feeding, claims: list[_Claims]) -> int:
    """Mark the claims that may be true; return how many tuples arrived behind the watermark."""
    feed = open_feed(files, feeding.disorder)
    latest, behind, begin = int(_INT64.min), 0, 0
    while (arrivals := feed.take(_CHUNK_ROWS)) is not None:
        ts = np.empty(len(arrivals), np.int64)
        for part, seq in zip(arrivals.parts, arrivals.seq, strict=True):
            ts[seq - begin] = part.ts
        before = np.maximum.accumulate(np.concatenate([[latest], ts]))
        # A watermark before the beginning of time passes nothing.
        watermark = np.maximum(before, _INT64.min + feeding.lag_ns) - feeding.lag_ns
        if not feeding.watermarks:
            watermark[:] = _INT64.min
        for part, seq, claim in zip(arrivals.parts, arrivals.seq, claims, strict=True):
            passed = watermark[seq - begin]
            behind += int((part.ts < passed).sum())
            claim.mark(part.id, part.ts, passed)
        latest, begin = int(before[-1]), begin + len(ts)
    return behind


@dataclass(frozen=True, kw_only=True)
class Approximated:
    """An approximate run's figures.

    Attributes
    ----------
    stated_recall, standard_error
        The share of the results that it says it gave, from those alone; None where it gave none.
    recall
        What that share was; None where no result was expected.
    link, link_bytes_ps
        The busiest link, by its two sites, and its bytes a second on average over the run.
    byte_budget
        Most that any link may carry; None for any.
    exact
        Whether exactly the results of what is kept were promised.
    """

    stated_recall: float | None
    standard_error: float | None
    recall: float | None
    link: str
    link_bytes_ps: float
    byte_budget: int | None
    exact: bool

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
            f"{stated}{true}; {too_many:,} results too many, {verdict.off_sample:,} tuples without "
            "just the results of what is kept"
        )
        if not verdict.adds_up:
            passed = False
            detail += "; these counts do not add up, nor does the recall"
        found = [CheckResult(name="sample", passed=passed, detail=detail)]
        if self.byte_budget is not None:
            sent = f"{self.link_bytes_ps:,.0f} of {self.byte_budget:,} bytes a second"
            within = self.link_bytes_ps <= self.byte_budget
            found.append(
                CheckResult(
                    name="byte budget", passed=within, detail=f"busiest link {self.link}: {sent}"
                )
            )
        return found


def _approximated(
    plan: Plan,
    approximation: Approximation,
    directory: Path,
    outcome: Outcome,
    verdict: Verdict,
    trace: ReadTrace,
) -> Approximated:
    """Return the figures of the approximate run in *directory*."""
    stated, error = _stated_recall(approximation.kept, plan.files, directory)
    right = verdict.produced - verdict.duplicate - verdict.spurious
    recovered = outcome.recovered
    link, nbytes = _busiest_link(trace, plan.graph().placement)
    return Approximated(
        stated_recall=stated,
        standard_error=error,
        recall=right / verdict.expected if verdict.expected else None,
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
