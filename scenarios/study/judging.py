"""Whether a claim of the paper is true of what was measured.

A claim is judged on the intervals of its numbers (`scenarios.study.estimates`): it holds where it
is true of all that they contain, fails where it is true of nothing in one of them, and is undecided
where an interval has its bound inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isnan
from statistics import fmean
from types import MappingProxyType
from typing import Any, Literal

from scenarios.formatting import NO_VALUE
from scenarios.study.estimates import Estimate
from scenarios.study.section import Claim
from scenarios.study.study import Kind

Outcome = Literal["holds", "fails with a reason", "fails", "undecided", "not comparable"]

Estimates = Sequence[Estimate | None]
"""One per x; None where there is no number."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A claim judged in a panel.

    Attributes
    ----------
    claim, panel
        Which, and where.
    holds
        None where it cannot be said: numbers are missing, or it is *undecided*.
    undecided
        Whether an interval has the claim's bound inside, so that more seeds are needed.
    detail
        The numbers.
    kind
        Where the numbers come from.
    why
        Why it does not hold, where that was tried at this scale, in this panel, and with nothing
        else changed; or why there is nothing to compare.
    """

    claim: Claim
    panel: str
    holds: bool | None
    undecided: bool
    detail: str
    kind: Kind = "simulated"
    why: str = ""

    @property
    def outcome(self) -> Outcome:
        """What came of it, in a word or some."""
        if self.holds is not None:
            return "holds" if self.holds else "fails with a reason" if self.why else "fails"
        return "undecided" if self.undecided else "not comparable"

    def as_json(self) -> dict[str, Any]:
        """Return it with stable keys, without its numbers."""
        return {
            "panel": self.panel,
            "text": self.claim.text,
            "stated": self.claim.stated,
            "paper": self.claim.paper,
            "holds": self.holds,
            "undecided": self.undecided,
            "kind": self.kind,
            "why": self.why,
        }


def judge_claim(
    claim: Claim,
    panel: str,
    curves: Mapping[str, Estimates],
    places: Sequence[int],
    scale: str,
    numbers: Mapping[int, float] = MappingProxyType({}),
) -> Finding:
    """Return whether *claim* holds in a panel, with the numbers.

    *curves* have an estimate for each of the axis's positions *places*; without a *scale* no reason
    is given. *numbers* are the paper's own by position, for a claim to be near them.
    """
    judged = [
        (place, value)
        for place, value in zip(places, values_of(claim.of, curves), strict=True)
        if (not claim.at or place in claim.at) and (claim.near is None or place in numbers)
    ]
    values = [value for _, value in judged]
    known = [value for value in values if value is not None and not isnan(value.mean)]
    needed = 2 if claim.rises or claim.falls else 1
    is_known = len(known) >= max(needed, len(values))
    detail = ", ".join(NO_VALUE if value is None else str(value) for value in values)
    if claim.mean and is_known:
        known = [_average(known)]
        detail += f"; on average {known[0]}"
    theirs = [numbers[place] for place, _ in judged] if claim.near else []
    holds = _holds(claim, known, theirs) if is_known else None
    return Finding(
        claim=claim,
        panel=panel,
        holds=holds,
        undecided=is_known and holds is None,
        detail=detail,
        why=claim.reason(scale, panel) if holds is False else "" if is_known else _missing(values),
    )


def _missing(values: Estimates) -> str:
    """Return why a claim cannot be compared with *values*."""
    if None in values:
        return "a run has no such number"
    return f"{len(values)} of its points {'is' if len(values) == 1 else 'are'} run at this scale"


def values_of(of: Sequence[str], curves: Mapping[str, Estimates]) -> list[Estimate | None]:
    """Return the values of a variant, or of the ratio of two."""
    first = curves[of[0]]
    if len(of) == 1:
        return list(first)
    return [
        None if a is None or b is None else a.with_(b, _ratio)
        for a, b in zip(first, curves[of[1]], strict=True)
    ]


def _ratio(a: float, b: float) -> float:
    if b == 0:
        return 1.0 if a == 0 else inf
    return a / b


def _average(values: Sequence[Estimate]) -> Estimate:
    """Return the mean over the positions, seed by seed."""
    return Estimate(tuple(map(fmean, zip(*(value.samples for value in values), strict=True))))


def _holds(claim: Claim, values: Sequence[Estimate], theirs: Sequence[float]) -> bool | None:
    slack = claim.slack
    if claim.above:
        nowhere_below = _all(_is_over(value, 1 - slack) for value in values)
        return _all([nowhere_below, _any(_is_over(value, 1 + slack) for value in values)])
    if claim.rises or claim.falls:
        return _follows_trend(values, slack, rises=claim.rises)
    if claim.near is not None:
        near = claim.near
        return _all(
            _is_within(value, 1 + (number - 1) / near, 1 + (number - 1) * near, slack)
            for value, number in zip(values, theirs, strict=True)
        )
    kept = [_is_within(value, claim.at_least, claim.at_most, slack) for value in values]
    needed = len(kept) if claim.cases is None else claim.cases
    if kept.count(True) >= needed:
        return True
    return False if len(kept) - kept.count(False) < needed else None


def _is_within(
    value: Estimate, at_least: float | None, at_most: float | None, slack: float
) -> bool | None:
    """Return whether a value keeps the bounds that there are."""
    bounds = []
    if at_least is not None:
        bounds.append(_is_over(value, _below(at_least, slack), or_equal=True))
    if at_most is not None:
        bounds.append(_not(_is_over(value, _above(at_most, slack))))
    return _all(bounds)


def _follows_trend(values: Sequence[Estimate], slack: float, *, rises: bool) -> bool | None:
    """Return whether values rise, or else fall, on the whole and at every step."""

    def rise(a: float, b: float) -> float:
        """By how much b lies above a, less than nothing where within the slack."""
        return b - _above(a, slack)

    def fall(a: float, b: float) -> float:
        """By how much b lies below a, less than nothing where within the slack."""
        return _below(a, slack) - b

    gain, loss = (rise, fall) if rises else (fall, rise)
    whole = _is_over(values[0].with_(values[-1], gain), 0)
    return _all([whole, *(_not(_is_over(a.with_(b, loss), 0)) for a, b in pairwise(values))])


def _is_over(value: Estimate, bound: float, *, or_equal: bool = False) -> bool | None:
    """Return whether a value lies above *bound*; None where its interval is on both sides.

    What is no number, as from one infinity to the next, is above nothing.
    """
    low, high = value.interval
    if isnan(low):
        return False
    if low > bound or (or_equal and low == bound):
        return True
    return False if high < bound or (not or_equal and high == bound) else None


def _not(part: bool | None) -> bool | None:
    return None if part is None else not part


def _all(parts: Iterable[bool | None]) -> bool | None:
    """Return whether all are true; None where that depends on one that is not known."""
    known = list(parts)
    return False if False in known else None if None in known else True


def _any(parts: Iterable[bool | None]) -> bool | None:
    known = list(parts)
    return True if True in known else None if None in known else False


def _below(value: float, slack: float) -> float:
    return value - slack * abs(value)


def _above(value: float, slack: float) -> float:
    return value + slack * abs(value)
