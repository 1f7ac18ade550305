"""The page of a run, and how every page is made: a template of this folder, filled.

Pages need nothing but themselves, in light and dark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from actors.whole_files import write_text
from scenarios.formatting import VERDICT_WORDS, format_bytes, format_count, format_duration
from scenarios.report.colours import COLOURS
from scenarios.report.load import NEAR
from scenarios.report.picture import pictures_json, vega_script
from scenarios.report.result_tables import checks_table, offenders_table
from scenarios.report.run_pictures import MESSAGES_MAX, run_pictures
from scenarios.report.summary import describe_verdict, settings_tables
from scenarios.report.table import TextTable
from scenarios.run import Report
from scenarios.run_json import summary

_TEMPLATES = Path(__file__).parent / "templates"


def fill_page(path: Path, template: str, **context: Any) -> Path:
    """Fill *template* with *context*, write it to *path*, and return that.

    Raise :exc:`OutputError` when the file cannot be written.
    """
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "bytes": format_bytes,
        "count": format_count,
        "duration": format_duration,
        "pictures_json": pictures_json,
        "table": lambda table: Markup(table.html()),
    }
    environment.globals["vega_script"] = vega_script
    page = environment.get_template(template).render(colours=COLOURS, **context)
    write_text(path, page)
    return path


def write_report(report: Report, path: Path, replay: str) -> None:
    """Write the page of a run to *path*; *replay* is the command that repeats the run.

    Raise :exc:`OutputError` when the file cannot be written.
    """
    figures = run_pictures(report)
    report.clock.lap("report")
    run = summary(report)
    fill_page(
        path,
        "report.html",
        run=run,
        word=VERDICT_WORDS[report.verdict.passed],
        verdict=describe_verdict(report.verdict),
        checks=checks_table(report.verdict),
        offenders=offenders_table(report) if report.verdict.offenders else None,
        remarks=[*report.plan.notes, *report.plan.warnings, *report.plan.assumptions],
        figures=figures,
        near_saturation=NEAR,
        messages_max=MESSAGES_MAX,
        streams=_streams_table(run["streams"]),
        settings=settings_tables(report),
        wall=report.clock,
        replay=replay,
    )
    report.clock.lap("report")


def _streams_table(streams: Sequence[Mapping[str, Any]]) -> TextTable:
    rows = [
        (one["name"], one["path"], format_count(one["rows"]), format_count(one["rejected"]))
        for one in streams
    ]
    columns = ("stream", "prepared at", "tuples read", "rows rejected")
    return TextTable(columns=columns, rows=rows, text_columns=2)
