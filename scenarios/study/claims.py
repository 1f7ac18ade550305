"""Whether what a paper claims is true of what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from scenarios.formatting import format_value
from scenarios.study.section import Claim

Values = Sequence[float | None]
"""One per x; None where there is no number."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What came of a claim; *holds* is None where numbers are missing."""

    claim: Claim
    panel: str
    holds: bool | None
    detail: str


def judge_claim(
    claim: Claim, panel: str, curves: Mapping[str, Values], places: Sequence[int]
) -> Finding:
    """Return whether *claim* holds of a panel, with the numbers.

    *curves* have a value for each of the axis's positions *places*.
    """
    values = [
        value
        for place, value in zip(places, subject(claim.of, curves), strict=True)
        if not claim.at or place in claim.at
    ]
    detail = ", ".join(format_value(value) for value in values)
    known = [value for value in values if value is not None]
    least = 2 if claim.rises or claim.falls else 1
    holds = None if len(known) < max(least, len(values)) else _holds(claim, known)
    return Finding(claim=claim, panel=panel, holds=holds, detail=detail)


def subject(of: Sequence[str], curves: Mapping[str, Values]) -> list[float | None]:
    """Return the values of a variant, or of the ratio of two."""
    first = curves[of[0]]
    if len(of) == 1:
        return list(first)
    return [_ratio(a, b) for a, b in zip(first, curves[of[1]], strict=True)]


def _ratio(a: float | None, b: float | None) -> float | None:
    if a is None or b is None:
        return None
    if b == 0:
        return 1.0 if a == 0 else inf
    return a / b


def _holds(claim: Claim, values: Sequence[float]) -> bool:
    slack = claim.slack
    if claim.above:
        return all(value > 1 - slack for value in values) and any(value > 1 for value in values)
    if claim.at_least is not None:
        return min(values) >= claim.at_least * (1 - slack)
    if claim.at_most is not None:
        return max(values) <= claim.at_most * (1 + slack)
    steps = list(pairwise(values))
    if claim.rises:
        return values[-1] > values[0] * (1 + slack) and all(b >= a * (1 - slack) for a, b in steps)
    return values[-1] < values[0] * (1 - slack) and all(b <= a * (1 + slack) for a, b in steps)
