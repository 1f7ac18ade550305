"""The verdict on a run, from the checks over its results and its trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path

from actors.feed import StreamData
from actors.source import Feeding
from joins.queries.query import JoinQuery
from netsim.outcome import Outcome, Recovered
from scenarios.results import Histogram
from scenarios.verdict.expectation import Expectation
from scenarios.verdict.lateness import check_lateness
from scenarios.verdict.oracle_check import Comparison, compare
from scenarios.verdict.trace_checks import arrivals_of, check_conservation, check_fifo
from scenarios.verdict.verdict import OFFENDERS_NAMED, Check, Offender, PairCounts, Verdict


def judge(
    *,
    query: JoinQuery,
    text: str,
    bound: Mapping[str, str],
    files: tuple[StreamData, ...],
    feeding: Feeding,
    directory: Path,
    outcome: Outcome,
    claims_exact: bool,
    listed: bool,
    pairs_directory: Callable[[], Path],
    ahead: Expectation | None = None,
) -> tuple[Verdict, Histogram]:
    """Return the verdict on the run in *directory*, and the latencies of its tuples in ns.

    *query* is what was run, *text* what a person wrote, with the names that are *bound* to values.
    A topology that claims exactness fails when a pair differs; one that does not is measured.
    *listed* is whether the run wrote its pairs; *pairs_directory* is called when pairs are needed
    that it did not write. *ahead* is what the oracle has begun to work out.
    """
    # Here, as `scenarios.run` imports it while the run goes on.
    from scenarios.verdict.second_reading import check_reading

    trace = directory / "trace.parquet"
    lateness = check_lateness(files, feeding, directory)
    recovered = outcome.recovered
    weaker = bool(recovered and recovered.crashes and recovered.guarantee != "exactly_once")
    found = compare(
        query,
        files,
        directory,
        pairs_directory,
        listed=listed,
        late=lateness.late,
        disorder=feeding.disorder,
        examples=OFFENDERS_NAMED,
        again=weaker,
        ahead=ahead,
    )
    verdict = Verdict(
        claims_exact=claims_exact and not weaker,
        **{count.name: getattr(found, count.name) for count in fields(PairCounts)},
        late=lateness.claimed,
        offenders=[
            Offender(
                kind=kind,
                probe_stream=stream,
                probe_id=probe_id,
                match_id=matches if len(matches) > 1 else matches[0],
                arrivals_ms=arrivals_of(seq, trace) if seq >= 0 else {},
            )
            for kind, stream, probe_id, matches, seq in found.examples
            if 0 <= stream < len(files)
        ],
    )
    verdict.checks = [
        check_reading(text, bound, query),
        _oracle(verdict),
        _rows(found),
        _pairs(found),
        _window_bounds(verdict),
        check_conservation(outcome, trace),
        check_fifo(trace),
        lateness.check(query, feeding, answered=found.answered_late, exact=verdict.claims_exact),
        Check(name="figures", passed=None, detail="latencies are not computed a second time"),
    ]
    if recovered:
        verdict.checks.append(_recovery(verdict, recovered, claims_exact=claims_exact))
    return verdict, found.latencies


def _oracle(verdict: Verdict) -> Check:
    detail = (
        f"{verdict.expected:,} expected, {verdict.produced:,} produced: {verdict.missing:,} "
        f"missing, {verdict.duplicate:,} duplicate, {verdict.spurious:,} spurious"
    )
    if not verdict.tested:
        return Check(name="oracle", passed=None, detail="no pair was expected, none produced")
    if not verdict.claims_exact:
        return Check(name="oracle", passed=None, detail=f"{detail} (no claim to exactness)")
    return Check(name="oracle", passed=verdict.exact, detail=detail)


def _recovery(verdict: Verdict, recovered: Recovered, *, claims_exact: bool) -> Check:
    """Check what the guarantee promises of a system that claims exactness."""
    detail = (
        f"{recovered.guarantee.replace('_', ' ')}: {recovered.crashes:,} crashes, "
        f"{recovered.restarts:,} restarts, {recovered.snapshots:,} snapshots; "
        f"{verdict.missing:,} missing, {verdict.duplicate:,} duplicate, "
        f"{verdict.spurious:,} spurious"
    )
    passed = None
    if recovered.crashes and claims_exact and recovered.guarantee != "none":
        at_least_once = not (verdict.missing or verdict.spurious)
        passed = at_least_once if recovered.guarantee == "at_least_once" else verdict.exact
    return Check(name="recovery", passed=passed, detail=detail)


def _rows(found: Comparison) -> Check:
    detail = "every row is of a tuple that may have pairs"
    if found.stray_rows:
        detail = (
            f"{found.stray_rows:,} rows are of no tuple that may have pairs, and claim "
            f"{found.invented:,}"
        )
        named = [e for e in found.examples if e[4] < 0]
        if named:
            _, stream, probe_id, matches, _ = named[0]
            listed = ", ".join(map(str, matches))
            detail += f": the first, tuple {probe_id} of stream {stream} with {listed}"
    return Check(name="rows", passed=not found.stray_rows, detail=detail)


def _pairs(found: Comparison) -> Check:
    if not found.listed:
        return Check(
            name="pairs",
            passed=None,
            detail="not written: their counts and fingerprints alone were compared",
        )
    return Check(
        name="pairs",
        passed=not found.inconsistent,
        detail=(
            "read back from disk: each tuple has those that were reported"
            if not found.inconsistent
            else f"{found.inconsistent:,} tuples have other pairs on disk than were reported"
        ),
    )


def _window_bounds(verdict: Verdict) -> Check:
    detail = f"{verdict.expired:,} of {verdict.produced:,} pairs lie outside the window"
    judged = verdict.produced > 0 and verdict.claims_exact
    return Check(
        name="window bounds", passed=verdict.expired == 0 if judged else None, detail=detail
    )
