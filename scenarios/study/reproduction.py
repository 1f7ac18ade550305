"""A paper as its studies: its statements, the claims that test them, and what came of each.

A claim is a statement of its paper; where several claims test one, as by simulation and by this
machine's clock, all but the first name it (``states``). What no claim tests is listed in
``not_compared.toml``, with the reason. Reproductions on disk become one Markdown document of all
statements and claims.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from pydantic import BaseModel

from joins.errors import suggest
from scenarios import scenario_files
from scenarios.formatting import TextTable, format_many, format_value
from scenarios.machine import describe_machine, versions
from scenarios.report.result_tables import reproduction_table
from scenarios.run_directory import UNFINISHED, WrittenResult, read_json
from scenarios.scenario_files import ConfigError, validate
from scenarios.study.findings import Findings
from scenarios.study.judging import ClaimOutcome, Finding
from scenarios.study.section import StudySection
from scenarios.study.study import load_study
from topologies.assumptions import ASSUMPTIONS, Assumption

RECORD = "reproduce.json"
PAPERS = {
    "spo": "SPO-Join: Efficient Stream Inequality Join",
    "pim": "Parallel Index-based Stream Join on a Multicore CPU",
    "panjoin": "PanJoin: A Partition-based Adaptive Stream Join",
    "oij": "PPOIJ: Shared-Nothing Parallel Patterns for Efficient Online Interval Joins",
    "semijoin": "Distributed stream join query processing with semijoins",
}
"""What the names of a paper's scenarios begin with, to the paper's title."""

_NOT_COMPARED = Path(__file__).with_name("not_compared.toml")

_OUT = re.compile(r" --out ('[^']*'|\S+)")
"""Where a command wrote to: a directory of another machine is of no use to a reader."""


def find_studies(paper: str) -> list[str]:
    """Return the names of the studies of *paper*, one of `PAPERS`.

    Raise :exc:`ConfigError` naming the papers there are.
    """
    if paper not in PAPERS:
        raise ConfigError(f"no paper is called {paper!r}: {suggest(paper, PAPERS)}")
    names = [name for name in scenario_files.catalog() if name.startswith(f"{paper}-")]
    return list(filter(scenario_files.is_study, names))


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A statement of a paper, and what came of it."""

    where: str
    text: str
    paper: float | None = None
    """Figure, table or section; its words; its number, where it has one."""
    study: str = ""
    claims: tuple[str, ...] = ()
    """Which claims test it, in their words; none where it is not tested."""
    outcome: ClaimOutcome
    """It holds where all claims that were judged hold, and fails where one does."""
    why: str
    """Why it fails, where that is known, or why it cannot be compared."""


class ClaimCounts(NamedTuple):
    """How many claims or statements were tested, and what came of them."""

    tested: int
    hold: int
    fail_with_reason: int
    fail_without_reason: int
    undecided: int
    not_comparable: int

    @classmethod
    def of(cls, judged: Iterable[Finding | Statement]) -> ClaimCounts:
        """Return how often there is each outcome among what was *judged*."""
        outcomes = [one.outcome for one in judged]
        counts = [outcomes.count(one) for one in get_args(ClaimOutcome)]  # in the fields' order
        return cls(len(outcomes) - counts[-1], *counts)

    @property
    def statements(self) -> str:
        """The counts of statements, in words."""
        made = self.tested + self.not_comparable
        return f"{made} statements, {self.tested} tested: {self._words('fail', '')}"

    def __str__(self) -> str:
        """Return the counts of claims, in words."""
        fails = "fails" if self.fail_with_reason == 1 else "fail"
        is_ = "is " if self.not_comparable == 1 else "are "
        return f"{self.tested} claims tested: {self._words(fails, is_)}"

    def _words(self, fails: str, is_: str) -> str:
        undecided = f", {self.undecided} undecided" if self.undecided else ""
        return (
            f"{self.hold} hold, {self.fail_with_reason} {fails} with a reason, "
            f"{self.fail_without_reason} fail without{undecided}; {self.not_comparable} "
            f"{is_}not comparable."
        )


@cache
def untested_statements(paper: str) -> tuple[Statement, ...]:
    """Return the statements of *paper* that no claim tests."""
    listed = tomllib.loads(_NOT_COMPARED.read_text(encoding="utf-8")).get(paper, ())
    return tuple(Statement(**one, outcome="not comparable") for one in listed)


def statements_of_study(
    name: str, figure: str, section: StudySection, judged: Sequence[Finding]
) -> list[Statement]:
    """Return the statements that a study's claims test, given what came of them.

    A claim without anything in *judged* was not tested: at this scale, say.
    """
    statements = []
    for place, first in enumerate(section.claims):
        if first.states:
            continue
        same = [first, *(claim for claim in section.claims if claim.states == first.text)]
        if any(other.text == first.text for other in section.claims[:place]):
            same = [first]  # those that name a text mean the first claim of it
        about = [one for one in judged if any(one.claim is claim for claim in same)]
        outcome, why = _outcome(about)
        statements.append(
            Statement(
                where=figure,
                text=first.text,
                paper=next((claim.paper for claim in same if claim.paper is not None), None),
                study=name,
                claims=tuple(claim.text for claim in same),
                outcome=outcome,
                why=why,
            )
        )
    return statements


def _outcome(judged: Sequence[Finding]) -> tuple[ClaimOutcome, str]:
    """Return what came of a statement, and why it fails or cannot be compared."""
    outcomes = [one.outcome for one in judged]
    about = [one for one in judged if one.holds is False] or judged
    whys = "; ".join(dict.fromkeys(one.why for one in about if one.why))
    if "fails" in outcomes or "fails with a reason" in outcomes:
        return "fails" if "fails" in outcomes else "fails with a reason", whys
    if "undecided" in outcomes or "holds" in outcomes:
        return "undecided" if "undecided" in outcomes else "holds", ""
    return "not comparable", whys or "it is judged at another scale"


@dataclass(frozen=True, kw_only=True)
class ReproducedStudy:
    """One study of a paper: what came out, or why nothing did; *replay* repeats it alone."""

    name: str
    title: str
    figure: str
    replay: str
    findings: Findings | None = None
    failure: str = ""

    @property
    def claims(self) -> list[Finding]:
        """Every claim in every panel that it is about."""
        return self.findings.claims if self.findings else []

    @property
    def claim_records(self) -> list[dict[str, Any]]:
        """The claims with stable keys, each beside what the paper reports, where it does."""
        return [
            {"study": self.name, "figure": self.figure}
            | one.as_json()
            | {"stated": one.stated, "measured": one.measured}
            for one in self.claims
        ]

    @property
    def statements(self) -> list[Statement]:
        """What the paper states of it; of a study that stopped as of one that tested nothing."""
        study = self.findings.study if self.findings else load_study(self.name)
        assert study is not None  # whose name this is
        return statements_of_study(self.name, self.figure, study.section, self.claims)

    @property
    def mistakes(self) -> list[str]:
        """What went wrong: why the study failed, or those of its runs that did."""
        if self.findings is None:
            return [self.failure]
        return [
            f"point {point.number} ({point.label}): {result.failure or 'failed its checks'}"
            for point in self.findings.study.points
            if (result := self.findings.results[point.number]).failure or result.passed is False
        ]

    @property
    def stopped(self) -> bool:
        """Whether it, or one of its runs, ended without a verdict."""
        findings = self.findings
        return findings is None or any(one.failure for one in findings.results.values())


@dataclass(frozen=True, kw_only=True)
class ReproducedPaper(WrittenResult):
    """All studies of a paper at a scale."""

    file = RECORD

    paper: str
    scale: str
    studies: tuple[ReproducedStudy, ...]

    @property
    def title(self) -> str:
        """The paper's."""
        return PAPERS[self.paper]

    @property
    def claims(self) -> list[Finding]:
        """The claims of all studies."""
        return [claim for study in self.studies for claim in study.claims]

    @property
    def claim_records(self) -> list[dict[str, Any]]:
        """The claims of all studies, as `reproduce.json` has them."""
        return [record for study in self.studies for record in study.claim_records]

    @property
    def statements(self) -> list[Statement]:
        """What the paper states: what claims test, and what nothing here can be compared with."""
        tested = [statement for study in self.studies for statement in study.statements]
        return [*tested, *untested_statements(self.paper)]

    @property
    def assumptions(self) -> dict[Assumption, list[ReproducedStudy]]:
        """What any of the studies assumes, with those that do."""
        studies: dict[Assumption, list[ReproducedStudy]] = {}
        for study in self.studies:
            for one in study.findings.study.assumptions if study.findings else []:
                studies.setdefault(one, []).append(study)
        return {one: studies[one] for one in ASSUMPTIONS if one in studies}

    @property
    def assumption_records(self) -> list[dict[str, Any]]:
        """The assumptions, as `reproduce.json` has them, with their figures."""
        return [
            {"text": str(one), "in": list(dict.fromkeys(by.figure or by.name for by in studies))}
            for one, studies in self.assumptions.items()
        ]

    @property
    def passed(self) -> bool | None:
        """Whether every claim holds or has a reason not to, and every run passed its checks.

        None where no claim was tested.
        """
        counts = ClaimCounts.of(self.claims)
        if counts.fail_without_reason or any(study.mistakes for study in self.studies):
            return False
        return True if counts.tested else None

    def as_json(self, replay: str) -> dict[str, Any]:
        """Return it as one JSON object with stable keys."""
        statements = self.statements
        counts = ClaimCounts.of(statements)._asdict()
        return {
            "paper": self.paper,
            "title": self.title,
            "scale": self.scale,
            "counts": ClaimCounts.of(self.claims)._asdict(),
            "statement_counts": {"statements": len(statements)} | counts,
            "statements": [asdict(statement) for statement in statements],
            "studies": [
                {
                    "name": study.name,
                    "title": study.title,
                    "figure": study.figure,
                    "mistakes": study.mistakes,
                    "date": study.findings.date if study.findings else "",
                    "turns": study.findings.study.turns if study.findings else 1,
                }
                for study in self.studies
            ],
            "claims": self.claim_records,
            "assumptions": self.assumption_records,
            "machine": describe_machine(),
            "versions": versions(),
            "replay": replay,
        }


class _Record(BaseModel):
    """What a document of several reproductions shows of each one's ``reproduce.json``."""

    paper: Literal[tuple(PAPERS)]  # type: ignore[valid-type]
    title: str
    scale: str
    counts: dict[str, int]
    statement_counts: dict[str, int]
    statements: list[dict[str, Any]]
    studies: list[dict[str, Any]]
    claims: list[dict[str, Any]]
    assumptions: list[dict[str, Any]]
    machine: dict[str, Any]
    versions: dict[str, str]
    replay: str


def read_reproductions(directories: Sequence[Path]) -> list[dict[str, Any]]:
    """Return the records of finished reproductions, in the papers' order.

    Raise :exc:`ConfigError` naming a directory that is none, has not finished or is damaged, or two
    of one paper.
    """
    records: dict[str, dict[str, Any]] = {}
    for directory in directories:
        path = directory / RECORD
        if not path.is_file():
            raise ConfigError(f"{directory} is no reproduction: there is no {path}")
        if (directory / UNFINISHED).exists():
            raise ConfigError(f"{directory} has not finished: run joinsim reproduce again")
        try:
            record = read_json(path)
        except (OSError, ValueError) as error:
            raise ConfigError(f"{path} cannot be read, reproduce it again: {error}") from None
        validate(_Record, record, where=f"{path} is damaged, reproduce it again")
        if record["paper"] in records:
            raise ConfigError(f"{directory}: there is another reproduction of {record['paper']}")
        records[record["paper"]] = record
    return [records[paper] for paper in PAPERS if paper in records]


def claims_document(records: Sequence[Mapping[str, Any]]) -> str:
    """Return every claim beside what was measured, a table a paper, and the counts first."""
    outcomes = tuple(field.replace("_", " ") for field in ClaimCounts._fields)
    parts = [
        "# Which claims of the papers hold here",
        "Every claim that is tested, with the paper's own number where it has one, and what came "
        "out here. Values are simulated (virtual time and counted work) unless they are marked as "
        "measured (this machine's clock) or derived (estimated from a run). What is measured is "
        "the mean of several turns with its 95 % interval; a claim that the interval leaves open "
        "is undecided. A reason is given where something was run to find it, and names that. "
        "Written by `joinsim claims`.",
        "What the papers state: a statement is tested by one claim or by several, as by "
        "simulation and by the clock, and holds where all of them do. What is not comparable is "
        "listed with the reason at the end of each paper's part.",
        _counts_table(records, "statement_counts", ("statements", *outcomes)).markdown(),
        "The claims, each in every panel that it is about:",
        _counts_table(records, "counts", outcomes).markdown(),
    ]
    for record in records:
        claims = reproduction_table(record["claims"], "here")
        parts += [f"## {record['title']}", _made(record), claims.markdown()]
        untested = _untested_table(record)
        if untested.rows:
            parts += ["Not comparable:", untested.markdown()]
        parts += what_is_assumed(record["assumptions"])
        parts += went_wrong({study["name"]: study["mistakes"] for study in record["studies"]})
    return "\n\n".join(parts) + "\n"


def went_wrong(mistakes: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a part of a document that lists the *mistakes* of studies; nothing without any."""
    lines = [f"- {study}: {one}" for study, found in mistakes.items() for one in found]
    return ["\n".join(["What went wrong:", "", *lines])] if lines else []


def what_is_assumed(assumptions: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a part of a document that lists records of *assumptions*; nothing without any."""
    lines = [f"- {one['text']} In {', '.join(one['in'])}." for one in assumptions]
    return ["\n".join(["What is assumed and not measured:", "", *lines])] if lines else []


def _made(record: Mapping[str, Any]) -> str:
    machine = record["machine"]
    days = sorted({study["date"] for study in record["studies"] if study["date"]})
    when = " to ".join(dict.fromkeys([days[0], days[-1]])) if days else "no study ran"
    turns = max((study["turns"] for study in record["studies"]), default=1)
    return (
        f"`{_OUT.sub('', record['replay'])}`, {when}, on {machine['processor']}, "
        f"{format_many(machine['cores'], 'core')}, {machine['system']}, "
        f"joinsim {record['versions']['joinsim']}; measured in {format_many(turns, 'turn')}."
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
