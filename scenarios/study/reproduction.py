"""A paper as its studies: its statements, the claims that test them, and what came of each.

A claim is a statement of its paper; where several claims test one, as by simulation and by this
machine's clock, all but the first name it (``states``). What no claim tests is listed in
``not_compared.toml``, with the reason.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from joins.errors import suggest
from scenarios import scenario_files
from scenarios.config import Section
from scenarios.formatting import format_value
from scenarios.machine import describe_machine
from scenarios.run_directory import write_json
from scenarios.run_json import versions
from scenarios.scenario_files import STUDY, ConfigError
from scenarios.study.findings import Findings
from scenarios.study.judging import Finding, Outcome
from scenarios.study.section import StudySection
from scenarios.study.study import load_study

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


def find_studies(paper: str) -> list[str]:
    """Return the names of the studies of *paper*, one of `PAPERS`.

    Raise :exc:`ConfigError` naming the papers there are.
    """
    if paper not in PAPERS:
        raise ConfigError(f"no paper is called {paper!r}: {suggest(paper, PAPERS)}")
    names = [name for name in scenario_files.catalog() if name.startswith(f"{paper}-")]
    return [name for name in names if STUDY in scenario_files.read(name)]


class NotCompared(Section):
    """A statement of a paper that no claim tests.

    Attributes
    ----------
    where
        Figure, table or section.
    text, paper
        The statement, and its number where it has one.
    why
        Why there is nothing to compare it with.
    """

    where: Annotated[str, Field(min_length=1)]
    text: Annotated[str, Field(min_length=1)]
    paper: float | None = None
    why: Annotated[str, Field(min_length=1)]


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A statement of a paper, and what came of it.

    Attributes
    ----------
    where, text, paper
        Figure, table or section; its words; its number, where it has one.
    study, claims
        Which claims test it, in their words; none where it is not compared.
    outcome
        It holds where all claims that were judged hold, and fails where one does.
    why
        Why it fails, where that is known, or why it is not compared.
    """

    where: str
    text: str
    paper: float | None
    study: str = ""
    claims: tuple[str, ...] = ()
    outcome: Outcome
    why: str


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
        unknown = outcomes.count("not comparable")
        return cls(
            tested=len(outcomes) - unknown,
            hold=outcomes.count("holds"),
            fail_with_reason=outcomes.count("fails with a reason"),
            fail_without_reason=outcomes.count("fails"),
            undecided=outcomes.count("undecided"),
            not_comparable=unknown,
        )

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
def not_compared(paper: str) -> tuple[NotCompared, ...]:
    """Return the statements of *paper* that no claim tests."""
    listed = tomllib.loads(_NOT_COMPARED.read_text(encoding="utf-8"))
    return tuple(NotCompared.model_validate(one) for one in listed.get(paper, ()))


def statements_of_paper(paper: str) -> list[Statement]:
    """Return what *paper* states and no claim tests."""
    return [Statement(**dict(one), outcome="not comparable") for one in not_compared(paper)]


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


def _outcome(judged: Sequence[Finding]) -> tuple[Outcome, str]:
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
class Reproduced:
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
        findings = self.findings
        return [self._record(one, findings) for one in findings.claims] if findings else []

    @property
    def statements(self) -> list[Statement]:
        """What the paper states of it; of a study that stopped as of one that tested nothing."""
        findings = self.findings
        study = findings.study if findings else load_study(self.name)
        assert study is not None  # whose name this is
        judged = findings.claims if findings else []
        return statements_of_study(self.name, self.figure, study.section, judged)

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

    def _record(self, finding: Finding, findings: Findings) -> dict[str, Any]:
        claim = finding.claim
        (chart,) = (one for one in findings.study.charts if one.panel.name == finding.panel)
        numbers = findings.study.section.numbers(claim, chart.panel)
        reported = [numbers[place] for place in chart.axis.places if place in numbers]
        theirs = f"; {', '.join(map(format_value, reported))} reported" if reported else ""
        return (
            {"study": self.name, "figure": self.figure}
            | finding.as_json()
            | {
                "stated": claim.stated + theirs,
                "measured": f"{' / '.join(claim.of)}: {finding.detail}",
            }
        )


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """All studies of a paper at a scale."""

    paper: str
    scale: str
    studies: tuple[Reproduced, ...]

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
        return tested + statements_of_paper(self.paper)

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
                }
                for study in self.studies
            ],
            "claims": self.claim_records,
            "machine": describe_machine(),
            "versions": versions(),
            "replay": replay,
        }

    def write_json(self, directory: Path, replay: str) -> None:
        """Write ``reproduce.json``."""
        write_json(directory / RECORD, self.as_json(replay))
