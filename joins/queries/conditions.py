"""A predicate from one probing side: the range of stored values that satisfy it.

Every comparison but ``!=`` holds for one closed range of stored values, so an index need not know
operators: it is given two ends. The ends are found so that the range agrees to the bit with
evaluating the predicate as numpy and SQL engines do. For a band that means fl(|a - b|), the rounded
difference: it grows with the stored value, so its range is one, but its ends are not the rounded
sums v - ε and v + ε.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from joins.machine.compiling import allocating, part_of

MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
"""Operator to the operator that says the same with the sides exchanged."""

_INT64 = np.iinfo(np.int64)


@dataclass(frozen=True, kw_only=True)
class Condition:
    """One predicate as a probing tuple sees it: ``stored OP probe``, or a band.

    Attributes
    ----------
    probe_field, stored_field
        The fields compared.
    operator
        ``<``, ``<=``, ``>``, ``>=``, ``=`` or ``!=`` between stored (left) and probe (right); with
        *epsilon*, ``<`` or ``<=`` between the distance of the two and epsilon.
    epsilon
        Width of a band; None for a comparison.
    dtype
        ``int64`` when both fields and epsilon are whole, else ``float64``, in which both sides are
        then compared.
    """

    probe_field: str
    stored_field: str
    operator: str
    epsilon: float | int | None
    dtype: str

    @property
    def negated(self) -> bool:
        """Whether stored values *outside* the bounds satisfy the predicate."""
        return self.operator == "!="

    @property
    def mirrored(self) -> Condition:
        """The same predicate as the stored tuple sees it."""
        return replace(
            self,
            probe_field=self.stored_field,
            stored_field=self.probe_field,
            operator=MIRRORED[self.operator] if self.epsilon is None else self.operator,
        )

    def bounds(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return for each probe value the least and the greatest stored value that satisfy it.

        Both ends are included; where nothing satisfies it, the first is greater than the second.
        """
        values = values.astype(self.dtype, copy=False)
        least, most = self._range(values)
        if self.dtype == "float64":
            nan = np.isnan(values)
            if nan.any():  # as an end it would leave the range open: indexes search for ends
                least, most = np.where(nan, np.inf, least), np.where(nan, -np.inf, most)
        return least, most

    def _range(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        least = np.full(len(values), _INT64.min if self.dtype == "int64" else -np.inf, self.dtype)
        most = np.full(len(values), _INT64.max if self.dtype == "int64" else np.inf, self.dtype)
        if self.epsilon is not None:
            return self._band(values)
        if self.operator == "<":
            most = _below(values)
        elif self.operator == "<=":
            most = values
        elif self.operator == ">":
            least = _above(values)
        elif self.operator == ">=":
            least = values
        else:
            least = most = values
        if self.dtype == "int64" and self.operator in "<>":
            # Nothing lies below the least integer or above the greatest: make the range empty.
            none = values == (_INT64.min if self.operator == "<" else _INT64.max)
            least, most = np.where(none, 1, least), np.where(none, 0, most)
        return least, most

    def holds(self, probe: np.ndarray, stored: np.ndarray) -> np.ndarray:
        """Evaluate the predicate pair by pair, plainly; the two arrays broadcast."""
        a = probe.astype(self.dtype, copy=False)
        b = stored.astype(self.dtype, copy=False)
        if self.epsilon is None:
            return _COMPARE[self.operator](b, a)
        if self.dtype == "int64":
            # As unsigned, the distance of any two int64 fits.
            distance = np.maximum(a, b).astype(np.uint64) - np.minimum(a, b).astype(np.uint64)
            return _COMPARE[self.operator](distance, int(self.epsilon))
        with np.errstate(over="ignore"):  # further apart than floats reach is outside any band
            return _COMPARE[self.operator](np.abs(a - b), float(self.epsilon))

    def _band(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        assert self.epsilon is not None
        strict = self.operator == "<"
        if self.dtype == "int64":
            reach = int(self.epsilon) - strict
            if reach < 0:
                return np.ones_like(values), np.zeros_like(values)
            # As unsigned, the room to either end of int64 fits, and so does any reach within it.
            unsigned = values.astype(np.uint64)
            below = unsigned - np.int64(_INT64.min).astype(np.uint64)
            above = np.uint64(_INT64.max) - unsigned
            step = np.uint64(min(reach, 2**64 - 1))
            least = np.where(step > below, _INT64.min, (unsigned - step).astype(np.int64))
            most = np.where(step > above, _INT64.max, (unsigned + step).astype(np.int64))
            return least, most
        least, most = np.empty_like(values), np.empty_like(values)
        _float_band(values, float(self.epsilon), strict, least, most)
        return least, most


_COMPARE = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "=": np.equal,
    "!=": np.not_equal,
}


def _below(values: np.ndarray) -> np.ndarray:
    """Return the next smaller value of each; integers wrap at the least."""
    with np.errstate(over="ignore"):  # beyond the last float lies infinity: an open end
        return values - 1 if values.dtype == np.int64 else np.nextafter(values, -np.inf)


def _above(values: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return values + 1 if values.dtype == np.int64 else np.nextafter(values, np.inf)


@allocating
def _float_band(
    values: np.ndarray, epsilon: float, strict: bool, least: np.ndarray, most: np.ndarray
) -> None:
    """Find the ends of ``fl(|x - v|) < ε`` (or ``<=``) by bisection over the floats in order."""
    for i in range(len(values)):
        value = values[i]
        if not (epsilon > 0.0 or (epsilon == 0.0 and not strict)):
            least[i], most[i] = 1.0, 0.0
            continue
        # x = v always satisfies it. Four widths away nothing does, unless that rounds to v itself;
        # the neighbour of v is then too far already.
        inside, outside = _place(value), max(_place(value) + 1, _place(value + 4.0 * epsilon))
        while inside + 1 < outside:
            middle = _between(inside, outside)
            distance = _float_at(middle) - value
            if distance < epsilon or (not strict and distance == epsilon):
                inside = middle
            else:
                outside = middle
        most[i] = _float_at(inside)
        inside, outside = _place(value), min(_place(value) - 1, _place(value - 4.0 * epsilon))
        while outside + 1 < inside:
            middle = _between(inside, outside)
            distance = value - _float_at(middle)
            if distance < epsilon or (not strict and distance == epsilon):
                inside = middle
            else:
                outside = middle
        least[i] = _float_at(inside)


@part_of
def _between(a: int, b: int) -> int:
    """Return the middle of two numbers whose sum may not fit."""
    return (a >> 1) + (b >> 1) + (a & b & 1)


@part_of
def _place(value: float) -> int:
    """Return the float's number in their order; both zeros are 0."""
    bits = np.float64(value).view(np.int64)
    return int(bits if bits >= 0 else -(bits & np.int64(0x7FFFFFFFFFFFFFFF)))


@part_of
def _float_at(place: int) -> float:
    """Return the float with this number."""
    if place >= 0:
        return np.int64(place).view(np.float64)
    return -np.int64(-place).view(np.float64)
