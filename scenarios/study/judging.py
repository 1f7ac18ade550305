"""Whether a claim of the paper is true of what was measured, with one seed or several.

A figure has a mean, and an interval that has the true value. With several seeds the interval is
Student's t at 95 %. A share of things that were counted (tuples that are right of all tuples) also
has Wilson's, which knows that no share lies outside 0 to 1 and that a hundred of a hundred do not
make it 1. Wilson takes tuples to be independent, and errors come in bursts: so it is the wider of
the two that counts, Student's cut off at 0 and 1.

A claim is judged on the intervals of its numbers: it holds where it is true of all that they
contain, fails where it is true of nothing in one of them, and is undecided where an interval has
its bound inside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import inf, isfinite, isnan, sqrt
from statistics import fmean, stdev
from types import MappingProxyType
from typing import Any, Literal

from scenarios.formatting import NO_VALUE, format_value
from scenarios.study.section import Claim
from scenarios.survey import Kind

CONFIDENCE = 0.95

ClaimOutcome = Literal["holds", "fails with a reason", "fails", "undecided", "not comparable"]


@dataclass(frozen=True)
class Estimate:
    """What was measured, once for each seed."""

    samples: tuple[float, ...]
    """A value per seed."""
    counted: int = 0
    """Of a share: of how many things in all seeds together; 0 for any other figure."""
    whole: float = 1.0
    """Of a share: what all of them are, as 100 in percent."""

    @cached_property
    def mean(self) -> float:
        """The mean of the seeds; infinite where one of them is."""
        return fmean(self.samples)

    @property
    def is_constant(self) -> bool:
        """Whether several seeds came to one and the same value."""
        return len(self.samples) > 1 and len(set(self.samples)) == 1

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the mean; of one seed, or of equal values, the value itself."""
        if len(self.samples) == 1 or (self.is_constant and not self.counted):
            return self.mean, self.mean
        if not isfinite(self.mean):
            return -inf, inf
        low, high = _student(self.samples)
        if not self.counted:
            return low, high
        wilson = _wilson(self.mean / self.whole, self.counted)
        wilson_low, wilson_high = (end * self.whole for end in wilson)
        return min(max(low, 0.0), wilson_low), max(min(high, self.whole), wilson_high)

    def with_(self, other: Estimate, function: Callable[[float, float], float]) -> Estimate:
        """Return the estimate of a *function* of two, seed by seed: a seed's runs share data."""
        pairs = zip(self.samples, other.samples, strict=True)
        return Estimate(tuple(function(a, b) for a, b in pairs))

    def __str__(self) -> str:
        """Return the mean to three digits, with its interval where it has one."""
        low, high = self.interval
        if len(self.samples) == 1:
            return format_value(self.mean)
        if low == high:
            return f"{format_value(self.mean)} ="
        if self.counted or not isfinite(self.mean):
            return f"{format_value(self.mean)} ({format_value(low)} to {format_value(high)})"
        return f"{format_value(self.mean)} ± {format_value((high - low) / 2)}"


def _student(samples: Sequence[float]) -> tuple[float, float]:
    from scipy import stats  # half a second, which studies of one seed need not spend

    mean, error = fmean(samples), stdev(samples) / sqrt(len(samples))
    if error == 0:
        return mean, mean
    low, high = stats.t.interval(CONFIDENCE, len(samples) - 1, loc=mean, scale=error)
    return float(low), float(high)


def _wilson(share: float, counted: int) -> tuple[float, float]:
    from scipy import stats

    test = stats.binomtest(round(min(max(share, 0), 1) * counted), counted)
    interval = test.proportion_ci(CONFIDENCE, method="wilson")
    return float(interval.low), float(interval.high)


Estimates = Sequence[Estimate | None]
"""One per x; None where there is no number."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A claim judged in a panel."""

    claim: Claim
    panel: str
    """Which, and where."""
    holds: bool | None
    """None where it cannot be said: numbers are missing, or it is *undecided*."""
    undecided: bool
    """Whether an interval has the claim's bound inside, so that more seeds are needed."""
    detail: str
    """The numbers."""
    kind: Kind = "simulated"
    """Where the numbers come from."""
    reported: tuple[float, ...] = ()
    """The paper's own numbers of the same, where it has some."""
    why: str = ""
    """Why it does not hold, where that was tried at this scale, in this panel, and with nothing
    else changed; or why there is nothing to compare."""

    @property
    def stated(self) -> str:
        """What the paper says, in words, with its own numbers."""
        theirs = ", ".join(map(format_value, self.reported))
        return self.claim.stated + (f"; {theirs} reported" if theirs else "")

    @property
    def measured(self) -> str:
        """What came out, with what it is of; nothing where none of its points is run."""
        return f"{' / '.join(self.claim.of)}: {self.detail}" if self.detail else ""

    @property
    def outcome(self) -> ClaimOutcome:
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
        return "a run has no such number, or its answer was wrong"
    runs = f"{len(values) or 'none'} of its points {'are' if len(values) > 1 else 'is'} run"
    return f"{runs} at this scale"


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
    """Return whether a claim is true of all that the intervals contain; None where of a part."""
    if _is_true(claim, values, theirs, favour=False):
        return True
    return None if _is_true(claim, values, theirs, favour=True) else False


def _is_true(
    claim: Claim, values: Sequence[Estimate], theirs: Sequence[float], *, favour: bool
) -> bool:
    """Return whether a claim is true where every interval's end is taken that is in its *favour*.

    Without it that end is taken which is against the claim.
    """
    slack = claim.slack
    if claim.above:
        nowhere_below = all(_is_over(value, 1 - slack, favour) for value in values)
        return nowhere_below and any(_is_over(value, 1 + slack, favour) for value in values)
    if claim.rises or claim.falls:
        return _follows_trend(values, slack, favour, rises=claim.rises)
    if claim.near is not None:
        near = claim.near
        return all(
            _is_within(value, 1 + (number - 1) / near, 1 + (number - 1) * near, slack, favour)
            for value, number in zip(values, theirs, strict=True)
        )
    kept = [_is_within(value, claim.at_least, claim.at_most, slack, favour) for value in values]
    return sum(kept) >= (claim.cases or len(kept))


def _is_within(
    value: Estimate, at_least: float | None, at_most: float | None, slack: float, favour: bool
) -> bool:
    """Return whether a value keeps the bounds that there are."""
    if at_least is not None and not _is_over(value, _below(at_least, slack), favour, or_equal=True):
        return False
    return at_most is None or not _is_over(value, _above(at_most, slack), not favour)


def _follows_trend(values: Sequence[Estimate], slack: float, favour: bool, *, rises: bool) -> bool:
    """Return whether values rise, or else fall, on the whole and at every step."""

    def rise(a: float, b: float) -> float:
        """By how much b lies above a, less than nothing where within the slack."""
        return b - _above(a, slack)

    def fall(a: float, b: float) -> float:
        """By how much b lies below a, less than nothing where within the slack."""
        return _below(a, slack) - b

    gain, loss = (rise, fall) if rises else (fall, rise)
    return _is_over(values[0].with_(values[-1], gain), 0, favour) and not any(
        _is_over(a.with_(b, loss), 0, not favour) for a, b in pairwise(values)
    )


def _is_over(value: Estimate, bound: float, favour: bool, *, or_equal: bool = False) -> bool:
    """Return whether a value's upper end lies above *bound*, without *favour* its lower one.

    What is no number, as from one infinity to the next, is above nothing.
    """
    end = value.interval[1 if favour else 0]
    return end > bound or (or_equal and end == bound)


def _below(value: float, slack: float) -> float:
    return value - slack * abs(value)


def _above(value: float, slack: float) -> float:
    return value + slack * abs(value)
