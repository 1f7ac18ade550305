"""What papers state: which claims test a statement, what comes of it, and how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from scenarios.study.judging import ClaimOutcome, Finding
from scenarios.study.reproduction import (
    PAPERS,
    ClaimCounts,
    find_studies,
    statements_of_study,
    untested_statements,
)
from scenarios.study.section import Claim, StudySection
from scenarios.study.study import load_study


def section_of(*claims: dict[str, Any]) -> StudySection:
    """Return a study with claims, whose values are 1 or more unless they say otherwise."""
    plain = {"of": ["a"], "at_least": 1}
    return StudySection.model_validate(
        {
            "axis": {"label": "x", "values": [1]},
            "variants": {"a": {}},
            "measure": "tuples",
            "label": "tuples",
            "claims": [
                {key: value for key, value in (plain | claim).items() if value is not None}
                for claim in claims
            ],
        }
    )


def judged(claim: Claim, holds: bool | None, why: str = "", *, undecided: bool = False) -> Finding:
    return Finding(claim=claim, panel="", holds=holds, undecided=undecided, detail="", why=why)


@pytest.mark.parametrize(
    ("came", "outcome", "why"),
    [
        ([(True, ""), (True, "")], "holds", ""),
        ([(True, ""), (None, "no points")], "holds", ""),
        ([(True, ""), (False, "tried")], "fails with a reason", "tried"),
        ([(False, "tried"), (False, "")], "fails", "tried"),
        ([(None, "no points")], "not comparable", "no points"),
        ([], "not comparable", "it is judged at another scale"),
    ],
)
def test_a_statement_holds_where_all_claims_that_test_it_do(
    came: Sequence[tuple[bool | None, str]], outcome: ClaimOutcome, why: str
) -> None:
    section = section_of({"text": "s"}, {"text": "s by the clock", "states": "s"})
    findings = [judged(claim, *result) for claim, result in zip(section.claims, came, strict=False)]
    (statement,) = statements_of_study("pim-x", "Figure 1", section, findings)
    assert (statement.outcome, statement.why) == (outcome, why)
    assert statement.claims == ("s", "s by the clock")


def test_a_statement_is_undecided_where_seeds_disagree_and_none_fails() -> None:
    section = section_of({"text": "s"}, {"text": "t", "states": "s"})
    first, second = section.claims
    findings = [judged(first, None, undecided=True), judged(second, True)]
    (statement,) = statements_of_study("pim-x", "Figure 1", section, findings)
    assert statement.outcome == "undecided"


def test_claims_of_one_text_are_statements_of_their_own() -> None:
    """As of two panels; what states the same text states that of the first."""
    section = section_of({"text": "s"}, {"text": "s"}, {"text": "t", "states": "s"})
    statements = statements_of_study("pim-x", "Figure 1", section, [])
    assert [len(one.claims) for one in statements] == [2, 1]


def test_a_statement_that_no_claim_has_is_refused() -> None:
    with pytest.raises(ValueError, match="no claim has the text 'r'"):
        section_of({"text": "s"}, {"text": "t", "states": "r"})


def test_what_only_names_its_statement_is_judged_as_the_claim_with_that_text() -> None:
    band = {"text": "s", "at_least": 1, "at_most": 2, "at": [0], "paper": 1.5, "slack": 0.1}
    _, same, at_all, other = section_of(
        band,
        {"text": "t", "states": "s", "at_least": None},
        {"text": "u", "states": "s", "at_least": None, "at": [], "slack": 0},
        {"text": "v", "states": "s", "at_least": 3},
    ).claims
    assert (same.at_least, same.at_most, same.at, same.paper, same.slack) == (1, 2, (0,), 1.5, 0.1)
    assert (at_all.at_least, at_all.at, at_all.slack) == (1, (), 0)
    assert (other.at_least, other.at_most, other.at, other.paper) == (3, None, (), None)


def test_outcomes_are_counted() -> None:
    section = section_of({"text": "a"}, {"text": "b"}, {"text": "c"}, {"text": "d"}, {"text": "e"})
    a, b, c, d, _ = section.claims
    findings = [judged(a, True), judged(b, False, "tried"), judged(c, False)]
    findings.append(judged(d, None, undecided=True))
    counts = ClaimCounts.of(statements_of_study("pim-x", "Figure 1", section, findings))
    assert counts == (4, 1, 1, 1, 1, 1)
    assert counts.statements == (
        "5 statements, 4 tested: 1 hold, 1 fail with a reason, 1 fail without, 1 undecided; 1 not "
        "comparable."
    )


def test_at_least_85_percent_of_what_the_papers_state_is_tested() -> None:
    tested = untested = 0
    for paper in PAPERS:
        listed = untested_statements(paper)
        assert all(one.where and one.text and one.why for one in listed)
        untested += len(listed)
        for name in find_studies(paper):
            study = load_study(name)
            assert study is not None
            stated = statements_of_study(name, study.base.figure or "", study.section, [])
            assert all(one.claims for one in stated)
            tested += len(stated)
    assert untested <= 0.15 * (tested + untested)
