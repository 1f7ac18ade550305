"""Operators of predicates, and a predicate as a probing tuple sees it: a range of stored values.

Every operator is true for one closed range of stored values, or false for one, as ``!=`` is. So an
index need not know operators: it gets two ends. The ends are such that the range agrees to the bit
with evaluating the predicate as numpy and SQL engines do. For a band that means fl(|a - b|), the
rounded difference: it grows with the stored value, so its range is one, but its ends are not the
rounded sums v - ε and v + ε.

A new operator is a class beside `ComparisonOperator` and `Band`, its spelling in the grammar
(`joins.queries.parser`), and a reading of its own in the oracle, `joins.oracle.match`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from joins.codes import ENDS, GREATEST, LEAST, code_of, encode, float_of
from joins.machine.compiling import allocating, inlined
from joins.state import storable


@storable
@dataclass(frozen=True, kw_only=True)
class Field:
    """A field of one side of a predicate."""

    stream: int
    """Position of its stream in the query."""
    name: str
    """The column, as `prepared_name` has it."""
    role: int
    """In a self join 1 for the newer tuple, which probes, and 2 for the earlier one, which is
    stored; 0 in a join of several streams."""
    text: str = field(compare=False)
    """As the query spells it."""


def prepared_name(column: str) -> str:
    """Return what a source's *column* is called in a prepared stream, whose ``id`` is a position.

    >>> prepared_name("id"), prepared_name("price")
    ('source_id', 'price')
    """
    return f"source_{column}" if column.lower() == "id" else column


@dataclass(frozen=True)
class ComparisonOperator:
    """``left OP right``: it depends on the sign of left - right alone."""

    symbol: str
    """Its name."""
    signs: frozenset[int] = field(compare=False)
    """The signs for which it is true; for a NaN, which has none, only ``!=`` is."""
    compare: Callable[[Any, Any], Any] = field(compare=False)
    """The same as a function."""
    spelt: str = field(compare=False)
    """How the query spells it: ``!=`` may be ``<>`` there."""

    subtracts: ClassVar[bool] = False

    def __str__(self) -> str:
        return self.symbol

    @property
    def is_equality(self) -> bool:
        """Whether it is ``=``: the values that satisfy it can be hashed."""
        return self.signs == {0}

    @cached_property
    def negated(self) -> bool:
        """Whether it is true *outside* the ranges that `bounds` returns."""
        return self.signs == {-1, 1}

    @property
    def mirrored(self) -> ComparisonOperator:
        """The operator that says the same with the two sides exchanged."""
        signs = frozenset(-sign for sign in self.signs)
        return next(other for other in OPERATORS.values() if other.signs == signs)

    def text(self, left: str, right: str) -> str:
        """Spell a predicate as queries do."""
        return f"{left} {self.spelt} {right}"

    def bounds(self, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return for each right value the codes of the least and the greatest left value in range.

        In an empty range the least is greater than the greatest. NaNs may have any range.
        """
        inside = frozenset({0}) if self.negated else self.signs
        codes, (least, most) = encode(right), ENDS[right.dtype.kind]
        low = high = codes
        if -1 in inside:
            low = np.full_like(codes, least)
        elif 0 not in inside:
            low = codes + 1
        if 1 in inside:
            high = np.full_like(codes, most)
        elif 0 not in inside:
            high = codes - 1
        if 0 not in inside and right.dtype == np.int64:
            # Nothing is below the least integer or above the greatest, where codes wrap round.
            none = codes == (least if -1 in inside else most)
            if none.any():
                low, high = np.where(none, 1, low), np.where(none, 0, high)
        return low, high

    def holds(self, left: Any, right: Any, *, whole: bool) -> Any:
        """Evaluate it as numpy does, pair by pair; values are int64 if *whole*, else float64.

        The sides are arrays, which broadcast, or a data frame library's expressions; whole numbers
        in expressions are of a type with room for the difference of any two int64.
        """
        return self.compare(left, right)

    def sql(self, left: str, right: str, *, whole: bool) -> str:
        """Return it as an SQL expression; how NaNs compare is left to the engine."""
        return f"{left} {'<>' if self.negated else self.symbol} {right}"


OPERATORS = {
    spelt: ComparisonOperator(symbol, frozenset(signs), compare, spelt)
    for spelt, symbol, signs, compare in (
        ("<", "<", {-1}, operator.lt),
        ("<=", "<=", {-1, 0}, operator.le),
        (">", ">", {1}, operator.gt),
        (">=", ">=", {0, 1}, operator.ge),
        ("=", "=", {0}, operator.eq),
        ("!=", "!=", {-1, 1}, operator.ne),
        ("<>", "!=", {-1, 1}, operator.ne),
    )
}
"""Every comparison by its spelling."""


@storable
@dataclass(frozen=True)
class Band:
    """``ABS(left - right) < width``, or ``<=``."""

    symbol: str
    """``<`` or ``<=``."""
    width: str
    """The decimal number as the query spells it. Between whole values it is taken exactly, between
    others as the nearest float64."""

    is_equality: ClassVar[bool] = False
    negated: ClassVar[bool] = False
    subtracts: ClassVar[bool] = True
    """Whether it is about the difference of its sides, which may not fit 64 bits."""

    def __post_init__(self) -> None:
        if self.symbol not in ("<", "<="):
            raise ValueError("a band is written with < or <=")
        try:
            width = Decimal(self.width)
        except InvalidOperation:
            raise ValueError(f"{self.width} is no width: its exponent is too long") from None
        if width == 0 and self.symbol == "<":
            raise ValueError("no two values are closer than 0; write a width above it")
        if math.isinf(float(self.width)):
            raise ValueError(f"{self.width} is too large; a width is at most 1.79e308")

    @property
    def signs(self) -> frozenset[int]:
        """The signs of left - right with which it may be true."""
        return frozenset((-1, 0, 1) if Decimal(self.width) else (0,))

    @property
    def mirrored(self) -> Band:
        """Itself: a distance has no sides."""
        return self

    @property
    def whole_width(self) -> int:
        """The greatest distance of two whole values; 2^64 for any beyond what int64 can have."""
        width = Decimal(self.width)
        return min(math.ceil(width) - 1 if self.symbol == "<" else math.floor(width), 2**64)

    def text(self, left: str, right: str) -> str:
        """Spell a predicate as queries do."""
        return f"ABS({left} - {right}) {self.symbol} {self.width}"

    def bounds(self, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the codes of each right value's range, as `ComparisonOperator.bounds` does."""
        if right.dtype == np.int64:
            # As unsigned, the room to either end of int64 fits, and so does any width within it.
            unsigned = right.astype(np.uint64)
            below = unsigned - np.int64(LEAST).astype(np.uint64)
            above = np.uint64(GREATEST) - unsigned
            step = np.uint64(min(self.whole_width, 2**64 - 1))
            low = np.where(step > below, LEAST, (unsigned - step).astype(np.int64))
            high = np.where(step > above, GREATEST, (unsigned + step).astype(np.int64))
            return low, high
        low, high = np.empty(len(right), np.int64), np.empty(len(right), np.int64)
        _float_band(right, float(self.width), low, high, strict=self.symbol == "<")
        return low, high

    def holds(self, left: Any, right: Any, *, whole: bool) -> Any:
        """Evaluate it as `ComparisonOperator.holds` does."""
        if isinstance(left, np.ndarray) and whole:
            # As unsigned, the distance of any two int64 fits.
            greater, smaller = np.maximum(left, right), np.minimum(left, right)
            distance = greater.astype(np.uint64) - smaller.astype(np.uint64)
        else:
            with np.errstate(over="ignore", invalid="ignore"):  # an infinite distance is outside
                distance = abs(left - right)
        if whole:
            return distance <= self.whole_width
        return OPERATORS[self.symbol].compare(distance, float(self.width))

    def sql(self, left: str, right: str, *, whole: bool) -> str:
        """Return it as `ComparisonOperator.sql` does.

        Of whole values the ends are found by *right* alone: the distance of two int64 may not fit
        64 bits, so the ends are cut to what does.
        """
        if not whole:
            width = f"CAST('{float(self.width)!r}' AS DOUBLE)"
            return f"ABS({left} - {right}) {self.symbol} {width}"
        wide = "CAST({} AS DECIMAL(38, 0))".format
        width, least, most = (wide(repr(str(n))) for n in (self.whole_width, LEAST, GREATEST))
        low = f"CAST(GREATEST({wide(right)} - {width}, {least}) AS BIGINT)"
        high = f"CAST(LEAST({wide(right)} + {width}, {most}) AS BIGINT)"
        return f"{left} BETWEEN {low} AND {high}"


Operator = ComparisonOperator | Band


@dataclass(frozen=True, kw_only=True)
class Condition:
    """One predicate as a probing tuple sees it: ``stored OP probe``."""

    probe_field: str
    stored_field: str
    """The fields compared."""
    operator: Operator
    """Between the stored value (left) and the probing one (right)."""
    dtype: str
    """``int64`` when both fields are whole, else ``float64``, in which both are then compared."""

    @property
    def mirrored(self) -> Condition:
        """The same predicate as the stored tuple sees it."""
        return replace(
            self,
            probe_field=self.stored_field,
            stored_field=self.probe_field,
            operator=self.operator.mirrored,
        )

    def bounds(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return per probe value the codes of the least and greatest stored value satisfying it.

        Both ends are included; where nothing satisfies it, the first is greater than the second.
        """
        values = values.astype(self.dtype, copy=False)
        low, high = self.operator.bounds(values)
        if self.dtype == "float64":
            nan = np.isnan(values)
            if nan.any():  # as an end it would leave the range open: indexes search for ends
                low, high = np.where(nan, GREATEST, low), np.where(nan, LEAST, high)
        return low, high

    def holds(self, probe: np.ndarray, stored: np.ndarray) -> np.ndarray:
        """Evaluate the predicate pair by pair; the two arrays broadcast."""
        left, right = (side.astype(self.dtype, copy=False) for side in (stored, probe))
        holds: np.ndarray = self.operator.holds(left, right, whole=self.dtype == "int64")
        return holds


@allocating
def _float_band(
    values: np.ndarray, width: float, low: np.ndarray, high: np.ndarray, strict: bool
) -> None:
    """Find the codes of the ends of ``fl(|x - v|) < width`` (or ``<=``) around each value v."""
    for i in range(len(values)):
        # A decimal above 0 that rounds to it; an infinity is near nothing, itself included.
        if (width == 0.0 and strict) or not math.isfinite(values[i]):
            low[i], high[i] = 1, 0
        else:
            low[i] = -_greatest_near(-values[i], width, strict=strict)
            high[i] = _greatest_near(values[i], width, strict=strict)


@inlined
def _greatest_near(value: float, width: float, strict: bool) -> int:
    """Return the code of the greatest x with ``fl(x - value) < width``, by bisection of codes."""
    # x = value always satisfies it. Four widths away nothing does, unless that rounds to the value
    # itself; its neighbour is then too far already.
    inside, outside = code_of(value), max(code_of(value) + 1, code_of(value + 4.0 * width))
    while inside + 1 < outside:
        middle = _between(inside, outside)
        distance = float_of(middle) - value
        if distance < width or (not strict and distance == width):
            inside = middle
        else:
            outside = middle
    return inside


@inlined
def _between(a: int, b: int) -> int:
    """Return the middle of two numbers whose sum may not fit."""
    return (a >> 1) + (b >> 1) + (a & b & 1)
