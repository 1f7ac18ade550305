"""``report.html``: a run on one page that needs nothing but itself."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from scenarios.report.settings import settings_tables
from scenarios.report.template import write_page
from scenarios.report.trace_analysis import STAGES
from scenarios.run import Report
from scenarios.run_json import summary
from scenarios.verdict import Verdict

_WORDS = {True: "PASS", False: "FAIL", None: "UNKNOWN"}


def write_report(report: Report, replay: str) -> None:
    """Write ``report.html`` into the run's directory; *replay* is the command that repeats it.

    Raise :exc:`OutputError` when the file cannot be written.
    """
    # Only here: the page's libraries take a second that other commands need not spend.
    from scenarios.report.figures import report_figures

    write_page(
        report.directory / "report.html",
        "report.html",
        replay=replay,
        remarks=[*report.plan.notes, *report.plan.warnings],
        run=summary(report),
        word=_WORDS[report.verdict.passed],
        told=verdict_told(report.verdict),
        words=_WORDS,
        verdict=report.verdict,
        offenders=_offenders(report),
        figures=report_figures(report),
        stages=STAGES,
        settings=settings_tables(report),
    )


def verdict_told(verdict: Verdict) -> str:
    """Say in a sentence or two what came out, against what should have."""
    wrongs = [
        (verdict.missing, "missing"),
        (verdict.duplicate, "duplicate"),
        (verdict.expired, "outside the window"),
        (verdict.wrong, "not satisfying the query"),
    ]
    if not verdict.tested:
        told = "No pair was expected and none came out: exactness was not tested."
    elif verdict.exact:
        told = f"Exactly the {verdict.expected:,} expected pairs came out, each once."
    else:
        listed = ", ".join(f"{count:,} {what}" for count, what in wrongs if count)
        told = f"{verdict.expected:,} pairs were expected, {verdict.produced:,} came out: {listed}."
    if not verdict.claims_exact:
        told += " This system makes no claim to exactness."
    failed = [check.name for check in verdict.checks if check.passed is False]
    if failed:
        told += f" Failed: {', '.join(failed)}."
    if verdict.late:
        told += f" {verdict.late:,} late tuples were dropped."
    return told


def _offenders(report: Report) -> list[dict[str, Any]]:
    streams = report.plan.query.streams
    return [
        asdict(offender)
        | {
            "stream": streams[offender.probe_stream],
            "arrivals": sorted(offender.arrivals_ms.items(), key=lambda arrival: arrival[1]),
        }
        for offender in report.verdict.offenders
    ]
