"""A figure measured with one seed or several: its mean, and an interval that has the true value.

With several seeds the interval is Student's t at 95 %. A share of things that were counted (tuples
that are right of all tuples) also has Wilson's, which knows that no share lies outside 0 to 1 and
that a hundred of a hundred do not make it 1. Wilson takes tuples to be independent, and errors come
in bursts: so it is the wider of the two that counts, Student's cut off at 0 and 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, isfinite, sqrt
from statistics import fmean, stdev

from scenarios.formatting import format_value

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """What was measured, once for each seed.

    Attributes
    ----------
    samples
        A value per seed.
    counted
        Of a share: of how many things in all seeds together; 0 for any other figure.
    """

    samples: tuple[float, ...]
    counted: int = 0

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
        wilson_low, wilson_high = _wilson(self.mean, self.counted)
        return min(max(low, 0.0), wilson_low), max(min(high, 1.0), wilson_high)

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
