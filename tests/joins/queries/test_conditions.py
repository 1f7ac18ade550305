"""Bounds of a condition: exactly the stored values for which the predicate evaluates to true."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from joins.batch import Schema
from joins.codes import decode, encode
from joins.queries.conditions import OPERATORS, Band, Condition
from joins.queries.parser import parse_query

LEAST, GREATEST = -(2**63), 2**63 - 1
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}

hundredths = st.integers(-500, 500).map(lambda n: n / 100)
floats = (
    hundredths
    | st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 0.03, -0.03, -73.98])
    | st.sampled_from([1e300, -1e300, 1.7976931348623157e308, -1.7976931348623157e308])
    | st.floats(allow_nan=False)
)
widths = st.sampled_from([0.03, 0.1, 0.3, 1.0, 5e-324, 1e-320, 1e300, 1.7976931348623157e308]) | (
    st.floats(min_value=5e-324, allow_nan=False, allow_infinity=False)
)
ints = (
    st.integers(-20, 20)
    | st.integers(LEAST, GREATEST)
    | (st.sampled_from([LEAST, LEAST + 1, LEAST + 5, GREATEST, GREATEST - 1, GREATEST - 5]))
)
int_widths = st.integers(0, 30) | st.integers(0, 2**64 + 2) | st.sampled_from([2**63, 2**64 - 1])


def condition(op: str, dtype: str, width: float | int | None = None) -> Condition:
    operator = OPERATORS[op] if width is None else Band(op, str(width))
    return Condition(probe_field="p", stored_field="s", operator=operator, dtype=dtype)


def inside(found: Condition, probe: Any, stored: Any) -> bool:
    """Whether the bounds of *probe* let *stored* pass, as an index would test it."""
    low, high = found.bounds(np.array([probe], found.dtype))
    (code,) = encode(np.array([stored], found.dtype))
    return bool((low[0] <= code <= high[0]) != found.operator.negated)


def steps(value: float) -> list[float]:
    """Return the floats around *value*, a few of them in either direction."""
    near, up, down = [value], value, value
    for _ in range(3):
        up, down = math.nextafter(up, math.inf), math.nextafter(down, -math.inf)
        near += [up, down]
    return near


@settings(deadline=None)
@given(op=st.sampled_from(list(COMPARE)), probe=floats, stored=floats)
@example(op=">", probe=math.inf, stored=0.0)
@example(op="<", probe=-math.inf, stored=0.0)
def test_float_comparisons_agree_with_evaluation(op: str, probe: float, stored: float) -> None:
    """A stored float is inside the bounds exactly when IEEE arithmetic says so."""
    for value in [*steps(probe), stored, -probe]:
        assert inside(condition(op, "float64"), probe, value) == COMPARE[op](value, probe)


@settings(deadline=None)
@given(op=st.sampled_from(["<", "<="]), width=widths, probe=floats, stored=floats)
@example(op="<", width=0.03, probe=0.03, stored=0.0)
@example(op="<", width=0.03, probe=-73.98, stored=-74.01)
@example(op="<=", width=5e-324, probe=-0.0, stored=0.0)
@example(op="<=", width=1.7976931348623157e308, probe=-1.7976931348623157e308, stored=0.0)
@example(op="<", width=1.0, probe=math.inf, stored=0.0)
def test_float_bands_agree_with_evaluation(
    op: str, width: float, probe: float, stored: float
) -> None:
    """A stored float is inside a band's bounds exactly when the rounded difference is."""
    found = condition(op, "float64", width)
    ends = [float(decode(end, "float64")[0]) for end in found.bounds(np.array([probe]))]
    for middle in [probe, stored, probe + width, probe - width, *ends]:
        for value in steps(middle):
            assert inside(found, probe, value) == COMPARE[op](abs(value - probe), width)


@settings(deadline=None)
@given(op=st.sampled_from(list(COMPARE)), probe=ints, stored=ints)
@example(op="<", probe=LEAST, stored=GREATEST)
@example(op=">", probe=GREATEST, stored=LEAST)
def test_int_comparisons_agree_with_evaluation(op: str, probe: int, stored: int) -> None:
    """A stored int64 is inside the bounds exactly when the comparison of the integers is true."""
    for value in (stored, probe, probe - 1, probe + 1, LEAST, GREATEST):
        if LEAST <= value <= GREATEST:
            assert inside(condition(op, "int64"), probe, value) == COMPARE[op](value, probe)


@settings(deadline=None)
@given(op=st.sampled_from(["<", "<="]), width=int_widths, probe=ints, stored=ints)
@example(op="<=", width=2**63 + 5, probe=LEAST, stored=3)
@example(op="<", width=2**64, probe=LEAST, stored=GREATEST)
@example(op="<", width=1, probe=GREATEST, stored=LEAST)
def test_int_bands_do_not_overflow(op: str, width: int, probe: int, stored: int) -> None:
    """Any two int64 are compared by their true distance, and so is every end of the range."""
    assume(width or op == "<=")
    found = condition(op, "int64", width)
    for middle in (stored, probe, probe - width, probe + width, LEAST, GREATEST):
        for value in (middle - 1, middle, middle + 1):
            if LEAST <= value <= GREATEST:
                expected = COMPARE[op](abs(value - probe), width)
                assert inside(found, probe, value) == expected
                assert found.holds(np.array([probe]), np.array([value])).tolist() == [expected]


@settings(deadline=None)
@given(
    op=st.sampled_from(list(COMPARE)),
    probe=st.lists(floats, min_size=1, max_size=5),
    stored=st.lists(floats, min_size=1, max_size=5),
    width=st.none() | widths,
)
def test_holds_is_evaluation_pair_by_pair(
    op: str, probe: list[float], stored: list[float], width: float | None
) -> None:
    """`holds` says for every pair what Python's own floats say."""
    if width is not None:
        op = op if op in ("<", "<=") else "<"
    found = condition(op, "float64", width).holds(np.array(probe)[:, np.newaxis], np.array(stored))
    for row, p in enumerate(probe):
        for column, s in enumerate(stored):
            sides = (s, p) if width is None else (abs(s - p), width)
            assert found[row, column] == COMPARE[op](*sides)


@settings(deadline=None)
@given(
    op=st.sampled_from(["<", "<="]),
    width=st.sampled_from(["0.03", "0.5", "1", "2.5", "3.0", "1e2", "9007199254740993", "1e30"]),
    pair=st.tuples(ints, ints),
    two_way=st.booleans(),
)
@example(op="<", width="9007199254740993", pair=(0, 9007199254740992), two_way=True)
def test_a_whole_band_is_exact_for_any_width(
    op: str, width: str, pair: tuple[int, int], two_way: bool
) -> None:
    """Between int64 fields a band means what its decimal number says, fractions and all."""
    fields = ("R.x", "S.x") if two_way else ("T.x1", "T.x2")
    query = parse_query(
        f"SELECT * FROM {'R, S' if two_way else 'T'} WHERE ABS({fields[0]} - {fields[1]}) {op} "
        f"{width} WINDOW AS (SLIDE INTERVAL '1' ON '1')"
    )
    schemas = [Schema(stream=name, fields={"x": "int64"}) for name in query.streams]
    (found,) = query.conditions(0, schemas)
    assert found.dtype == "int64"
    assert inside(found, *pair) == COMPARE[op](abs(pair[0] - pair[1]), Fraction(width))


@pytest.mark.parametrize("op", list(COMPARE))
def test_nan_probes_match_only_by_being_unequal(op: str) -> None:
    """A NaN compares as in IEEE arithmetic: only ``!=`` holds, and the range of values is empty."""
    found = condition(op, "float64")
    low, high = found.bounds(np.array([math.nan]))
    assert low[0] > high[0]
    assert inside(found, math.nan, 1.0) == (op == "!=")


@given(
    op=st.sampled_from(list(COMPARE)),
    probe=st.lists(hundredths, min_size=1),
    stored=st.lists(hundredths, min_size=1),
    width=st.none() | st.sampled_from([0.03, 1.0]),
)
def test_the_stored_tuple_sees_the_same_predicate(
    op: str, probe: list[float], stored: list[float], width: float | None
) -> None:
    """Which fields are compared, and with what outcome."""
    one = condition("<=" if width else op, "float64", width)
    other = one.mirrored
    assert (other.probe_field, other.stored_field) == (one.stored_field, one.probe_field)
    forth = one.holds(np.array(probe)[:, np.newaxis], np.array(stored))
    assert (other.holds(np.array(stored), np.array(probe)[:, np.newaxis]) == forth).all()
