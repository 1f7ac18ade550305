from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from scenarios.study.findings import Values, judge_claim
from scenarios.study.section import Claim

NAN = float("nan")
CURVES: dict[str, Values] = {
    "up": [1.0, 2.0, 4.0],
    "down": [4.0, 2.0, 1.0],
    "over": [2.0, 4.0, 8.0],
    "zero": [0.0, 0.0, 0.0],
    "hardly over": [1.01, 2.02, 3.99],
    "gap": [1.0, None, 2.0],
    "no number last": [4.0, 5.0, NAN],
    "debt": [-4.0, -4.0, -2.0],
}


def holds(*of: str, places: tuple[int, ...] = (0, 1, 2), **stated: Any) -> bool | None:
    return judge_claim(Claim(text="it is so", of=of, **stated), "", CURVES, places).holds


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
    ],
)
def test_a_claim_is_judged_by_its_numbers(
    of: tuple[str, ...], stated: dict[str, Any], expected: bool | None
) -> None:
    assert holds(*of, **stated) is expected


def test_positions_are_those_of_the_whole_axis() -> None:
    assert holds("up", at_least=4, at=(4,), places=(0, 2, 4)) is True
    assert holds("up", at_least=4, at=(2,), places=(0, 2, 4)) is False


def test_a_step_within_the_slack_is_no_step_back() -> None:
    curves: dict[str, Values] = {"a": [100.0, 99.0, 110.0]}
    claim = Claim(text="rises", of=("a",), rises=True)
    assert judge_claim(claim, "", curves, (0, 1, 2)).holds is True
    strict = Claim(text="rises", of=("a",), rises=True, slack=0)
    assert judge_claim(strict, "", curves, (0, 1, 2)).holds is False


@pytest.mark.parametrize("stated", [{}, {"rises": True, "falls": True}, {"above": True}])
def test_a_claim_states_one_thing(stated: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Claim(text="what?", of=("a",), **stated)
