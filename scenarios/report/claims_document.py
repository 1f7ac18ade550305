"""The papers' statements and claims as one Markdown document, from reproductions on disk."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scenarios.formatting import TextTable, format_value
from scenarios.report.result_tables import reproduction_table
from scenarios.run_directory import UNFINISHED, read_json
from scenarios.scenario_files import ConfigError
from scenarios.study.reproduction import PAPERS, RECORD, ClaimCounts

_OUT = re.compile(r" --out ('[^']*'|\S+)")
"""Where a command wrote to: a directory of another machine is of no use to a reader."""

_COUNTS = tuple(field.replace("_", " ") for field in ClaimCounts._fields)


def read_reproductions(directories: Sequence[Path]) -> list[dict[str, Any]]:
    """Return the records of finished reproductions, in the papers' order.

    Raise :exc:`ConfigError` naming a directory that is none, or has not finished, or two of one
    paper.
    """
    records: dict[str, dict[str, Any]] = {}
    for directory in directories:
        path = directory / RECORD
        if not path.is_file():
            raise ConfigError(f"{directory} is no reproduction: there is no {path}")
        if (directory / UNFINISHED).exists():
            raise ConfigError(f"{directory} has not finished: run joinsim reproduce again")
        record = read_json(path)
        if record["paper"] in records:
            raise ConfigError(f"{directory}: there is another reproduction of {record['paper']}")
        records[record["paper"]] = record
    return [records[paper] for paper in PAPERS if paper in records]


def claims_document(records: Sequence[Mapping[str, Any]]) -> str:
    """Return every claim beside what was measured, a table a paper, and the counts first."""
    parts = [
        "# Which claims of the papers hold here",
        "Every claim that is tested, with the paper's own number where it has one, and what came "
        "out here. Values are simulated (virtual time and counted work) unless they are marked as "
        "measured (this machine's clock) or derived (estimated from a run). What is measured is "
        "the mean of three turns with its 95 % interval (one turn at smoke scale); a claim that "
        "the interval leaves open is undecided. A reason is given where something was run to "
        "find it, and names that. Written by `joinsim claims`.",
        "What the papers state: a statement is tested by one claim or by several, as by "
        "simulation and by the clock, and holds where all of them do. What is not comparable is "
        "listed with the reason at the end of each paper's part.",
        _counts_table(records, "statement_counts", ("statements", *_COUNTS)).markdown(),
        "The claims, each in every panel that it is about:",
        _counts_table(records, "counts", _COUNTS).markdown(),
    ]
    for record in records:
        claims = reproduction_table(record["claims"], "here")
        parts += [f"## {record['title']}", _made(record), claims.markdown()]
        untested = _untested_table(record)
        if untested.rows:
            parts += ["Not comparable:", untested.markdown()]
        parts += went_wrong({study["name"]: study["mistakes"] for study in record["studies"]})
    return "\n\n".join(parts) + "\n"


def went_wrong(mistakes: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a part of a document that lists the *mistakes* of studies; nothing without any."""
    lines = [f"- {study}: {one}" for study, found in mistakes.items() for one in found]
    return ["\n".join(["What went wrong:", "", *lines])] if lines else []


def _made(record: Mapping[str, Any]) -> str:
    machine = record["machine"]
    days = sorted({study["date"] for study in record["studies"] if study["date"]})
    when = " to ".join(dict.fromkeys([days[0], days[-1]])) if days else "no study ran"
    return (
        f"`{_OUT.sub('', record['replay'])}`, {when}, on {machine['processor']}, "
        f"{machine['cores']} cores, {machine['system']}, joinsim {record['versions']['joinsim']}."
    )


def _counts_table(
    records: Sequence[Mapping[str, Any]], key: str, columns: Sequence[str]
) -> TextTable:
    """Return a line of counts for each paper, and their sums."""
    rows = [(record["paper"], record["scale"], *record[key].values()) for record in records]
    totals = [sum(column) for column in zip(*(row[2:] for row in rows), strict=True)]
    cells = [[str(cell) for cell in row] for row in [*rows, ("all", "", *totals)]]
    return TextTable(columns=("paper", "scale", *columns), rows=cells, text_columns=2)


def _untested_table(record: Mapping[str, Any]) -> TextTable:
    """Return the statements of a paper that no claim was judged of, with the reasons."""
    rows = [
        (
            statement["where"] or statement["study"],
            statement["text"],
            "" if statement["paper"] is None else format_value(statement["paper"]),
            statement["why"],
        )
        for statement in record["statements"]
        if statement["outcome"] == "not comparable"
    ]
    return TextTable(
        columns=("figure or section", "statement", "in the paper", "reason"), rows=rows
    )
