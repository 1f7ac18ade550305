"""The verdict on a run, from the checks over its results and its trace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from netsim.outcome import Outcome, Recovered
from scenarios.plan import Plan
from scenarios.result_readers import LatencyHistogram
from scenarios.run_directory import TRACE
from scenarios.verdict import CheckResult, PairCounts, Verdict
from scenarios.verdict.expectation import Expectation
from scenarios.verdict.file_checks import (
    arrivals_of,
    check_conservation,
    check_fifo,
    check_files,
    require_files,
)
from scenarios.verdict.lateness import check_lateness
from scenarios.verdict.oracle_check import PairDifferences, arrival_numbers, compare

_FIGURES = (
    "latencies, throughput, bytes and memory are not computed a second time, nor is what a raw "
    "file became when it was prepared"
)


def judge(
    plan: Plan,
    directory: Path,
    outcome: Outcome,
    pairs_directory: Callable[[], Path],
    ahead: Expectation | None,
) -> tuple[Verdict, LatencyHistogram]:
    """Return the verdict on the run in *directory*, and the latencies of its tuples in ns.

    A topology that claims exactness fails when a pair differs; of one that does not it is then
    unknown whether it is right.
    *pairs_directory* is called when pairs are needed that the run did not write. *ahead* is what
    the oracle has begun to work out.

    Raise :exc:`joins.errors.DataError` naming a file of results that cannot be judged.
    """
    # Here, as `scenarios.run` imports it while the run goes on.
    from scenarios.verdict.second_reading import check_reading

    trace = directory / TRACE
    require_files(plan, directory)
    lateness = check_lateness(plan.files, plan.feeding, directory)
    recovered = outcome.recovered
    weaker = bool(recovered and recovered.weakens)
    claims_exact = plan.topology.claims_exact(plan.parameters)
    found = compare(plan, directory, pairs_directory, late=lateness.late, again=weaker, ahead=ahead)
    numbers = arrival_numbers(found.offenders, plan.files, plan.feeding.disorder)
    offenders = [
        replace(one, arrivals_ms=arrivals_of(numbers[one.probe_stream, one.probe_id], trace))
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
        check_files(plan, directory, found.odd_rows),
        _oracle(verdict),
        _rows(found),
        _pairs(found),
        _window_bounds(verdict),
        check_conservation(outcome, trace),
        check_fifo(trace),
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
    return verdict, found.latencies


def _oracle(verdict: Verdict) -> CheckResult:
    detail = (
        f"{verdict.expected:,} expected, {verdict.produced:,} produced: {verdict.missing:,} "
        f"missing, {verdict.duplicate:,} duplicate, {verdict.spurious:,} spurious"
    )
    if not verdict.tested:
        return CheckResult(name="oracle", passed=None, detail="no pair was expected, none produced")
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
