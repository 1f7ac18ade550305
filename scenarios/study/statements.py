"""What the papers state: each statement with the claims that test it, or why nothing here can.

A claim is a statement of its paper; where several claims test one, as by simulation and by this
machine's clock, all but the first name it (``states``). What no claim tests is listed in
``not_compared.toml``, with the reason.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Protocol

from pydantic import Field

from scenarios.config import Section
from scenarios.study.judging import Finding
from scenarios.study.section import StudySection

Outcome = Literal["holds", "fails with a reason", "fails", "undecided", "not comparable"]

_NOT_COMPARED = Path(__file__).with_name("not_compared.toml")


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


class Judged(Protocol):
    """A claim or a statement."""

    @property
    def outcome(self) -> Outcome:
        """What came of it."""


class ClaimCounts(NamedTuple):
    """How many claims or statements were tested, and what came of them."""

    tested: int
    hold: int
    fail_with_reason: int
    fail_without_reason: int
    undecided: int
    not_comparable: int

    @classmethod
    def of(cls, judged: Iterable[Judged]) -> ClaimCounts:
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
    failed = [one for one in judged if one.holds is False]
    if failed:
        whys = dict.fromkeys(one.why for one in failed if one.why)
        return "fails with a reason" if all(one.why for one in failed) else "fails", "; ".join(whys)
    if any(one.undecided for one in judged):
        return "undecided", ""
    if any(one.holds for one in judged):
        return "holds", ""
    whys = dict.fromkeys(one.why for one in judged if one.why)
    return "not comparable", "; ".join(whys) or "it is judged at another scale"
