"""A paper as its studies: every claim with its number, what was measured, and what came of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from joins.errors import suggest
from scenarios import scenario_files
from scenarios.formatting import format_value
from scenarios.machine_record import describe_machine
from scenarios.run_directory import write_json
from scenarios.run_json import versions
from scenarios.scenario_files import STUDY, ConfigError
from scenarios.study.findings import Findings
from scenarios.study.judging import Finding
from scenarios.study.kinds import Kind
from scenarios.study.statements import (
    ClaimCounts,
    Outcome,
    Statement,
    statements_of_paper,
    statements_of_study,
)
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


def find_studies(paper: str) -> list[str]:
    """Return the names of the studies of *paper*, one of `PAPERS`.

    Raise :exc:`ConfigError` naming the papers there are.
    """
    if paper not in PAPERS:
        raise ConfigError(f"no paper is called {paper!r}: {suggest(paper, PAPERS)}")
    names = [name for name in scenario_files.catalog() if name.startswith(f"{paper}-")]
    return [name for name in names if STUDY in scenario_files.read(name)]


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
    def claims(self) -> list[Reported]:
        """Every claim in every panel that it is about."""
        findings = self.findings
        return [self._report(one, findings) for one in findings.claims] if findings else []

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

    def _report(self, finding: Finding, findings: Findings) -> Reported:
        claim = finding.claim
        (chart,) = (one for one in findings.study.charts if one.panel.name == finding.panel)
        numbers = findings.study.section.numbers(claim, chart.panel)
        reported = [numbers[place] for place in chart.axis.places if place in numbers]
        theirs = f"; {', '.join(map(format_value, reported))} reported" if reported else ""
        return Reported(
            study=self.name,
            figure=self.figure,
            panel=finding.panel,
            text=claim.text,
            stated=claim.stated + theirs,
            measured=f"{' / '.join(claim.of)}: {finding.detail}",
            paper=claim.paper,
            holds=finding.holds,
            undecided=finding.undecided,
            kind=finding.kind,
            why=finding.why,
        )


@dataclass(frozen=True, kw_only=True)
class Reported:
    """A claim of a paper beside what was measured.

    Attributes
    ----------
    study, figure, panel
        Where it belongs.
    text, stated
        The claim in words; what it says of the values, with the paper's own where it has some.
    paper
        The paper's number, where it has one for the claim.
    measured, holds, undecided
        The values here; whether it holds of them; where that is None, whether seeds disagree (else
        there are no values to compare).
    kind
        Where the values come from.
    why
        Why it does not hold, where it does not and the reason is known.
    """

    study: str
    figure: str
    panel: str
    text: str
    stated: str
    paper: float | None
    measured: str
    holds: bool | None
    undecided: bool
    kind: Kind
    why: str

    @property
    def outcome(self) -> Outcome:
        """What came of it, in a word or some."""
        if self.holds is not None:
            return "holds" if self.holds else "fails with a reason" if self.why else "fails"
        return "undecided" if self.undecided else "not comparable"


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
    def claims(self) -> list[Reported]:
        """The claims of all studies."""
        return [claim for study in self.studies for claim in study.claims]

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
        claims, statements = self.claims, self.statements
        counts = ClaimCounts.of(statements)._asdict()
        return {
            "paper": self.paper,
            "title": self.title,
            "scale": self.scale,
            "counts": ClaimCounts.of(claims)._asdict(),
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
            "claims": [asdict(claim) for claim in claims],
            "machine": describe_machine(),
            "versions": versions(),
            "replay": replay,
        }

    def write_json(self, directory: Path, replay: str) -> None:
        """Write ``reproduce.json``."""
        write_json(directory / RECORD, self.as_json(replay))
