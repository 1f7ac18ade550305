"""Intervals of what several seeds came to, and claims judged on them."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest
from pydantic import ValidationError

from scenarios.study.judging import Estimate, Estimates, judge_claim
from scenarios.study.section import Claim

NAN = float("nan")


def test_the_interval_of_the_mean_is_students() -> None:
    """Five values of mean 3 and standard deviation √2.5: t of 4 degrees of freedom is 2.776."""
    low, high = Estimate((1.0, 2.0, 3.0, 4.0, 5.0)).interval
    half = 2.7764451 * (2.5 / 5) ** 0.5
    assert [low, high] == pytest.approx([3 - half, 3 + half])


def test_the_interval_of_a_share_is_wilsons_where_that_is_wider() -> None:
    """Wilson (1927): of no failure in 10 the interval reaches from 0.722 to 1."""
    all_right = Estimate((1.0, 1.0), counted=10)
    assert list(all_right.interval) == pytest.approx([0.7225, 1.0], abs=1e-4)
    apart = Estimate((0.5, 1.0), counted=1_000_000)
    assert apart.interval == (0.0, 1.0), "the seeds differ by more than a million tuples do"


def test_the_interval_of_a_share_in_percent_is_a_hundred_times_that_of_the_share() -> None:
    share, percent = Estimate((0.9, 0.95), counted=40), Estimate((90, 95), counted=40, whole=100)
    assert percent.interval == pytest.approx([100 * end for end in share.interval])


def test_seeds_that_agree_have_no_interval() -> None:
    same = Estimate((7.0, 7.0, 7.0))
    assert same.is_constant
    assert same.interval == (7.0, 7.0)
    assert str(same) == "7 ="
    assert not Estimate((7.0,)).is_constant
    assert str(Estimate((7.0,))) == "7"


def test_a_ratio_is_that_of_each_seed() -> None:
    ratio = Estimate((2.0, 40.0)).with_(Estimate((1.0, 20.0)), lambda a, b: a / b)
    assert ratio.samples == (2.0, 2.0)


def test_what_is_infinite_with_some_seeds_may_be_anything() -> None:
    assert Estimate((inf, 1.0)).interval == (-inf, inf)
    assert Estimate((inf, inf)).interval == (inf, inf)


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (Estimate((12_000.0, 12_500.0, 13_000.0)), "12.5 k ± 1.24 k"),
        (Estimate((0.9, 0.9, 0.9), counted=1000), "0.9 (0.88 to 0.917)"),
    ],
)
def test_a_person_reads_the_mean_and_how_sure_it_is(estimate: Estimate, text: str) -> None:
    assert str(estimate) == text


def once(*values: float | None) -> Estimates:
    """Return what was measured with one seed."""
    return [None if value is None else Estimate((value,)) for value in values]


CURVES = {
    "up": once(1, 2, 4),
    "down": once(4, 2, 1),
    "over": once(2, 4, 8),
    "zero": once(0, 0, 0),
    "hardly over": once(1.01, 2.02, 3.99),
    "gap": once(1, None, 2),
    "no number last": once(4, 5, NAN),
    "debt": once(-4, -4, -2),
}


def holds(*of: str, places: tuple[int, ...] = (0, 1, 2), **stated: Any) -> bool | None:
    found = judge_claim(Claim(text="it is so", of=of, **stated), "", CURVES, places, "smoke")
    assert not found.undecided, "one seed leaves nothing undecided"
    return found.holds


@pytest.mark.parametrize(
    ("of", "stated", "expected"),
    [
        (("over", "up"), {"above": True}, True),
        (("up", "over"), {"above": True}, False),
        (("up", "up"), {"above": True}, False),
        (("up", "down"), {"above": True, "at": (2,)}, True),
        (("up", "down"), {"above": True}, False),
        (("up",), {"rises": True}, True),
        (("down",), {"rises": True}, False),
        (("down",), {"falls": True}, True),
        (("zero",), {"rises": True}, False),
        (("hardly over", "up"), {"above": True}, False),
        (("hardly over", "up"), {"above": True, "slack": 0.005}, True),
        (("up", "down"), {"rises": True}, True),
        (("over", "up"), {"at_least": 2}, True),
        (("over", "up"), {"at_least": 2.1}, False),
        (("up",), {"at_most": 4}, True),
        (("up",), {"at_most": 3}, False),
        (("zero",), {"at_most": 0}, True),
        (("over", "up"), {"at_least": 1.9, "at_most": 2.1}, True),
        (("over", "up"), {"at_least": 2.1, "at_most": 3}, False),
        (("over", "up"), {"at_least": 1, "at_most": 1.9}, False),
        (("up", "zero"), {"rises": True}, False),
        (("up", "zero"), {"at_least": 1000}, True),
        (("zero", "zero"), {"above": True}, False),
        (("gap",), {"rises": True}, None),
        (("gap",), {"rises": True, "at": (0, 2)}, True),
        (("up",), {"rises": True, "at": (1,)}, None),
        (("no number last",), {"at_least": 3}, None),
        (("no number last",), {"rises": True}, None),
        (("debt",), {"rises": True}, True),
        (("debt",), {"at_least": -4}, True),
        (("debt",), {"at_most": -2}, True),
        (("up",), {"at_least": 2.2, "at_most": 2.4, "mean": True}, True),
        (("up",), {"at_least": 2.4, "mean": True}, False),
        (("up",), {"at_most": 1.5, "mean": True, "at": (0, 1)}, True),
        (("gap",), {"at_least": 1, "mean": True}, None),
    ],
)
def test_a_claim_is_judged_by_its_numbers(
    of: tuple[str, ...], stated: dict[str, Any], expected: bool | None
) -> None:
    assert holds(*of, **stated) is expected


@pytest.mark.parametrize(
    ("at", "measured", "why"),
    [
        ((5, 6), "", "none of its points is run at this scale"),
        ((0,), "up: 1", "1 of its points is run at this scale"),
    ],
)
def test_a_claim_says_how_many_of_its_points_are_run(
    at: tuple[int, ...], measured: str, why: str
) -> None:
    claim = Claim(text="it is so", of=("up",), rises=True, at=at)
    found = judge_claim(claim, "", CURVES, (0, 1, 2), "smoke")
    assert (found.holds, found.measured, found.why) == (None, measured, why)


def test_positions_are_those_of_the_whole_axis() -> None:
    assert holds("up", at_least=4, at=(4,), places=(0, 2, 4)) is True
    assert holds("up", at_least=4, at=(2,), places=(0, 2, 4)) is False


def test_a_step_within_the_slack_is_no_step_back() -> None:
    curves = {"a": once(100, 99, 110)}
    claim = Claim(text="rises", of=("a",), rises=True)
    assert judge_claim(claim, "", curves, (0, 1, 2), "smoke").holds is True
    strict = Claim(text="rises", of=("a",), rises=True, slack=0)
    assert judge_claim(strict, "", curves, (0, 1, 2), "smoke").holds is False


FEW = (9.0, 10.0, 11.0)
"""Mean 10, and by Student's t at 95 %, 2 degrees of freedom: 10 ± 4.303 / √3, from 7.5 to 12.5."""


@pytest.mark.parametrize(
    ("seeds", "stated", "expected"),
    [
        ([FEW], {"at_least": 7}, True),
        ([FEW], {"at_least": 10}, None),
        ([FEW], {"at_least": 13}, False),
        ([FEW], {"at_most": 13}, True),
        ([FEW], {"at_most": 9}, None),
        ([FEW], {"at_most": 7}, False),
        ([FEW], {"at_least": 5, "at_most": 15}, True),
        ([FEW], {"at_least": 9, "at_most": 15}, None),
        ([FEW], {"at_least": 9, "at_most": 7.2, "slack": 0}, ValidationError),
        ([FEW, (13.0, 14.0, 15.0)], {"rises": True}, True),  # seed by seed it is always 4 more
        ([FEW, (15.0, 14.0, 13.0)], {"rises": True}, None),
        ([FEW, (13.0, 14.0, 15.0)], {"falls": True}, False),
        ([FEW, (9.1, 9.9, 11.0)], {"falls": True}, None),
        ([(10.0,) * 3, (12.0,) * 3], {"rises": True}, True),
        ([FEW, FEW, (0.0, 0.1, 0.2)], {"rises": True}, False),
    ],
)
def test_a_claim_is_judged_by_the_intervals_of_several_seeds(
    seeds: list[tuple[float, ...]], stated: dict[str, Any], expected: Any
) -> None:
    curves = {"a": [Estimate(samples) for samples in seeds]}
    if expected is ValidationError:
        with pytest.raises(ValidationError, match=r"nothing is at least 9 and at most 7\.2"):
            Claim(text="it is so", of=("a",), **stated)
        return
    claim = Claim(text="it is so", of=("a",), **stated)
    found = judge_claim(claim, "", curves, range(len(seeds)), "smoke")
    assert (found.holds, found.undecided) == (expected, expected is None)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((9.0, 10.0, 11.0), (6.0, 7.0, 8.0), True),
        ((9.0, 10.0, 11.0), (9.1, 9.9, 10.9), None),
        ((6.0, 7.0, 8.0), (9.0, 10.0, 11.0), False),
        ((9.0, 20.0, 40.0), (4.5, 10.0, 20.0), True),  # the seeds differ much, the ratio never does
    ],
)
def test_two_variants_are_compared_seed_by_seed(
    first: tuple[float, ...], second: tuple[float, ...], expected: bool | None
) -> None:
    curves = {"a": [Estimate(first)], "b": [Estimate(second)]}
    claim = Claim(text="it is so", of=("a", "b"), above=True)
    assert judge_claim(claim, "", curves, (0,), "smoke").holds is expected


def test_a_reason_is_given_where_it_was_tried_and_nowhere_else() -> None:
    tried = {"scale": ["smoke", "laptop"], "panel": "left", "command": "joinsim run spo-fig07"}
    claim = Claim.model_validate(
        {"text": "so", "of": ["up"], "falls": True, "why": "it is small", "tried": tried}
    )

    def why(scale: str, panel: str, claim: Claim = claim) -> str:
        return judge_claim(claim, panel, CURVES, (0, 1, 2), scale).why

    assert why("smoke", "left") == "it is small (found by: joinsim run spo-fig07)"
    assert why("paper", "left") == why("smoke", "right") == why("", "left") == ""
    rises = claim.model_copy(update={"rises": True, "falls": False})
    assert why("smoke", "left", rises) == "", "it holds"


@pytest.mark.parametrize(
    ("why", "at_smoke", "at_laptop"),
    [
        ("it is 1.3 times (smoke: 1.2)", "as seen at laptop scale, ", ""),
        ("it is 1.3 times (laptop: 1.2)", "", "as seen at smoke scale, "),
        ("it is 1.3 times (smoke, too)", "", ""),
        ("it is 1.3 times (smoke) and 1.2 times (laptop)", "", ""),
        ("it is small", "", ""),
    ],
)
def test_a_reason_whose_figures_are_of_another_scale_says_so(
    why: str, at_smoke: str, at_laptop: str
) -> None:
    tried = {"scale": ["smoke", "laptop"], "command": "joinsim run spo-fig07"}
    claim = Claim.model_validate(
        {"text": "so", "of": ["up"], "falls": True, "why": why, "tried": tried}
    )
    for scale, seen in (("smoke", at_smoke), ("laptop", at_laptop)):
        assert claim.reason(scale, "") == f"{seen}{why} (found by: joinsim run spo-fig07)"


def test_a_reason_names_what_was_run_to_find_it() -> None:
    with pytest.raises(ValidationError, match="the command that was run to find it"):
        Claim(text="so", of=("up",), rises=True, why="it is small")


def test_a_claim_says_the_papers_number_beside_its_own_band() -> None:
    claim = Claim(text="so", of=("a",), at_least=2.5, at_most=3.5, paper=2.95)
    assert claim.stated == "2.5 to 3.5; 2.95 in the paper"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((23, 3.2, 9), True),
        ((16, 4.2, 6.5), True),
        ((7.8, 7.9, 7.3), False),
        ((9, 3.2, 23), False),
        ((23, 4.5, 9), False),
        ((23, 3.2, 6), False),
    ],
)
def test_each_value_is_near_its_own_number(values: tuple[float, ...], expected: bool) -> None:
    claim = Claim(text="it is so", of=("a",), near=1.5)
    curves = {"a": once(values[0], 100, *values[1:])}
    found = judge_claim(claim, "", curves, (0, 1, 2, 3), "smoke", {0: 23, 2: 3.2, 3: 9})
    assert found.holds is expected


@pytest.mark.parametrize(("cases", "expected"), [(2, True), (3, None), (4, False), (None, False)])
def test_bounds_may_be_kept_in_some_cases_only(cases: int | None, expected: bool | None) -> None:
    claim = Claim(text="it is so", of=("a",), at_least=0.9, at_most=1.1, cases=cases)
    curves = {"a": [Estimate((1, 1)), Estimate((1, 1)), Estimate((0.8, 1)), Estimate((2, 2))]}
    assert judge_claim(claim, "", curves, range(4), "smoke").holds is expected


@pytest.mark.parametrize(
    "stated",
    [
        {},
        {"rises": True, "falls": True},
        {"above": True},
        {"near": 1.5, "at_least": 1},
        {"rises": True, "cases": 3},
        {"at_least": 1, "mean": True, "cases": 3},
    ],
)
def test_a_claim_states_one_thing(stated: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Claim(text="what?", of=("a",), **stated)


@pytest.mark.parametrize(
    ("bounds", "stated"),
    [
        ({"at_least": 0.995, "at_most": 1.005}, "0.995 to 1.005"),
        ({"at_least": 2.17e7, "at_most": 3.85e7}, "21.7 M to 38.5 M"),
        ({"at_least": 3750, "paper": 5000}, "at least 3750; 5 k in the paper"),
        ({"at_most": 3e8, "mean": True}, "at most 300 M on average"),
        ({"at_most": 1.02, "cases": 12}, "at most 1.02 in 12 cases or more"),
        ({"near": 1.5}, "each 1/1.5 to 1.5 times as far above 1 as the paper's"),
    ],
)
def test_bounds_are_stated_as_values_are(bounds: dict[str, Any], stated: str) -> None:
    assert Claim(text="it is so", of=("a",), **bounds).stated == stated
