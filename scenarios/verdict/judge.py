"""The verdict on a run, from the checks over its results and its trace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from actors.feed import StreamData
from actors.source import Feeding
from joins.queries.query import JoinQuery
from netsim.outcome import Outcome
from scenarios.results import Histogram
from scenarios.verdict.oracle_check import compare
from scenarios.verdict.trace_checks import (
    arrivals_of,
    check_conservation,
    check_fifo,
    check_watermarks,
    read_late,
)
from scenarios.verdict.verdict import OFFENDERS_NAMED, Check, Offender, Verdict


def judge(
    *,
    query: JoinQuery,
    files: tuple[StreamData, ...],
    feeding: Feeding,
    directory: Path,
    outcome: Outcome,
    claims_exact: bool,
    pairs_directory: Callable[[], Path],
) -> tuple[Verdict, Histogram]:
    """Return the verdict on the run in *directory*, and the latencies of its tuples in ns.

    A topology that claims exactness fails when a pair differs; one that does not is measured.
    *pairs_directory* is called when pairs are needed that the run did not keep.
    """
    trace = directory / "trace.parquet"
    late = read_late(directory, len(files))
    found = compare(
        query,
        files,
        directory,
        pairs_directory,
        late=late,
        disorder=feeding.disorder,
        examples=OFFENDERS_NAMED,
    )
    verdict = Verdict(
        claims_exact=claims_exact,
        expected=found.expected,
        produced=found.produced,
        missing=found.missing,
        duplicate=found.duplicate,
        expired=found.expired,
        wrong=found.wrong,
        differing_tuples=found.differing_tuples,
        late=sum(len(ids) for ids in late),
        offenders=[
            Offender(
                kind=kind,
                probe_stream=stream,
                probe_id=probe_id,
                match_id=matches if len(matches) > 1 else matches[0],
                arrivals_ms=arrivals_of(seq, trace),
            )
            for kind, stream, probe_id, matches, seq in found.examples
        ],
    )
    verdict.checks = [
        _oracle(verdict),
        _window_bounds(verdict),
        check_conservation(outcome, trace),
        check_fifo(trace),
        check_watermarks(query, files, feeding, late),
    ]
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


def _window_bounds(verdict: Verdict) -> Check:
    detail = f"{verdict.expired:,} of {verdict.produced:,} pairs lie outside the window"
    judged = verdict.produced > 0 and verdict.claims_exact
    return Check(
        name="window bounds", passed=verdict.expired == 0 if judged else None, detail=detail
    )
