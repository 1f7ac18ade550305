"""Our parser and sqlglot read the same in thousands of queries, and a difference is noticed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.oracle.match import evaluate
from joins.queries.conditions import OPERATORS
from joins.queries.parser import parse_query
from joins.queries.query import QueryError
from scenarios.verdict.second_reading import check_reading, difference, read_again
from scenarios.worlds.drawing import draw_interval_query, draw_multiway_query, draw_query
from tests.drawn import drawn

SPELT = ["<", "<=", ">", ">=", "=", "!=", "<>"]
NAMES = st.sampled_from(
    ["x", "y", "Fare_Amount", "key", "ts", '"two words"', '"WINDOW"', '"the driver\'s"']
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Draw a query of one or two streams, oddly spelt."""
    two = draw(st.booleans())
    word = str.lower if draw(st.booleans()) else str.upper
    space = draw(
        st.sampled_from([" ", "\n  ", "\t", " -- WHERE 'it' is\n", '/* " WINDOW **\n -- */'])
    )

    def predicate() -> str:
        left, right = draw(NAMES), draw(NAMES)
        if two:
            left, right = f"R.{left}", f"S.{right}"
        else:
            left, right = (
                f'T."{name.strip(chr(34))}{role}"' if '"' in name else f"T.{name}{role}"
                for role, name in enumerate((left, right), 1)
            )
        if draw(st.booleans()):
            left, right = right, left
        if draw(st.integers(0, 3)):
            return f"{left}{draw(st.sampled_from(['', ' ']))}{draw(st.sampled_from(SPELT))}{right}"
        width = draw(st.sampled_from(["1", "0.5", ".25", "2.", "1e-3", "3E2", "1024"]))
        return f"{word('abs')}({left} - {right}) {draw(st.sampled_from(['<', '<=']))} {width}"

    predicates = [predicate() for _ in range(draw(st.integers(1, 4)))]
    joined = f"{space}{word('and')} ".join(predicates)
    unit = draw(st.sampled_from(["", " ms", " min", " hours", " µs", " sec", "msec", "e3 ms"]))
    slide, times = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    precise = " PRECISE" if unit and draw(st.booleans()) else ""
    return (
        f"{word('select')} * {word('from')} {'R, S' if two else 'T'}{space}{word('where')} {joined}"
        f"{space}{word('window')} AS (SLIDE INTERVAL '{slide}{unit}' ON '{slide * times}{unit}'"
        f"{precise}){draw(st.sampled_from(['', ';', '; -- the end']))}"
    )


RANDOM = drawn(draw_query) | drawn(draw_multiway_query) | drawn(draw_interval_query)


@settings(max_examples=2_000, deadline=None, derandomize=True)
@given(text=texts() | RANDOM, data=st.data())
def test_both_parsers_read_the_same(text: str, data: Any) -> None:
    try:
        query = parse_query(text)
    except QueryError:  # a contradiction, say
        return
    second = read_again(text, {})
    assert difference(query, second) is None
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    columns = {
        (query.streams[side.stream], side.name, side.role)
        for predicate in query.predicates
        for side in predicate.fields
    }
    scale = data.draw(st.sampled_from([1.0, 0.25, 1e-3, 300.0]))
    values = {column: rng.integers(-3, 4, 200) * scale for column in sorted(columns)}
    first = np.ones(200, bool)
    for predicate in query.predicates:
        left, right = (
            values[query.streams[side.stream], side.name, side.role] for side in predicate.fields
        )
        first &= evaluate(predicate, left, right)
    again = np.ones(200, bool)
    for _, holds in second.predicates:
        again &= holds(values)
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("name", ["true", "null", "values", "natural", "hour", "current_date"])
@pytest.mark.parametrize("blank", ["", " "])
def test_names_that_are_words_of_another_sql_are_names_here(name: str, blank: str) -> None:
    window = f"WINDOW {name} AS(SLIDE INTERVAL{blank}'1'{blank}ON{blank}'2'), S AS({{}})"
    text = (
        f"SELECT {name}.{name} FROM {name}, S WHERE {name}.{name} <= S.x AND S.{name} != {name}.x "
        + window.format(f"SLIDE INTERVAL{blank}'1 ms'{blank}ON{blank}'2 ms'PRECISE")
    )
    assert check_reading(text, {}, parse_query(text)).passed is True
    other = parse_query(text.replace("<=", "<"))
    assert check_reading(text, {}, other).passed is False


WINDOW = "WINDOW AS (SLIDE INTERVAL '10' ON 'W')"
TEXT = f"SELECT * FROM R, S WHERE R.x <= S.y AND ABS(R.y - S.y) < 0.5 {WINDOW}"


@pytest.mark.parametrize("spelt", SPELT)
@pytest.mark.parametrize("read", SPELT)
def test_an_operator_that_is_read_as_another_is_noticed(
    spelt: str, read: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = TEXT.replace("<=", spelt)
    monkeypatch.setitem(OPERATORS, spelt, OPERATORS[read])
    check = check_reading(text, {"W": "100"}, parse_query(text).bind(W="100"))
    same = {"!=": "<>"}.get(read, read) == {"!=": "<>"}.get(spelt, spelt)
    assert check.passed is same


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (TEXT.replace("R.x", "R.y"), "where R.y <= S.y was run"),
        (TEXT.replace("< 0.5", "<= 0.5"), "another condition"),
        (TEXT.replace("0.5", "0.6"), "another condition"),
        (TEXT.replace("AND ABS(R.y - S.y) < 0.5", ""), "2 predicates, not 1"),
        (TEXT.replace("R, S", "S, R"), "the streams R, S"),
        (TEXT.replace("'10'", "'20'"), "windows"),
        (TEXT.replace("AS (", "R AS (") + ", S AS (SLIDE INTERVAL '10' ON '100')", "windows"),
    ],
)
def test_a_query_that_is_not_what_the_text_says_is_noticed(other: str, words: str) -> None:
    check = check_reading(TEXT, {"W": "100"}, parse_query(other).bind(W="100"))
    assert check.passed is False
    assert words in check.detail


@pytest.mark.parametrize(
    ("spelt", "run"),
    [("'10'", "'10 ns'"), ("'1 ms'", "'1000000'"), ("'200 d'", "'17280000000000001 ns'")],
)
def test_a_window_of_another_kind_or_a_nanosecond_longer_is_noticed(spelt: str, run: str) -> None:
    text, other = (
        f"SELECT * FROM R, S WHERE R.x < S.x WINDOW AS (SLIDE INTERVAL {extent} ON {extent})"
        for extent in (spelt, run)
    )
    assert check_reading(text, {}, parse_query(text)).passed is True
    check = check_reading(text, {}, parse_query(other))
    assert check.passed is False
    assert "windows" in check.detail


def test_a_width_that_no_float_tells_apart_is_noticed() -> None:
    text = f"SELECT * FROM R, S WHERE ABS(R.x - S.x) <= {2**53 + 1} {WINDOW}"
    other = text.replace(str(2**53 + 1), str(2**53))
    check = check_reading(text, {"W": "100"}, parse_query(other).bind(W="100"))
    assert check.passed is False
    assert "widths" in check.detail


def test_a_text_that_the_second_parser_does_not_take_is_unknown() -> None:
    check = check_reading("SELECT FROM", {}, parse_query(TEXT).bind(W="100"))
    assert check.passed is None
    assert "could not be read a second time" in check.detail


@pytest.mark.parametrize(
    "spelt",
    ["10 sec", "10 msec", "1e3 ms", "1.5e-3 sec", "2 hr", "2 h", "1 d", "1 day", "3 ks", "1e-30 s"],
)
def test_quantities_are_read_as_they_may_be_spelt(spelt: str) -> None:
    text = f"SELECT * FROM R, S WHERE S.ts BETWEEN R.ts - INTERVAL '{spelt}' AND R.ts"
    assert check_reading(text, {}, parse_query(text)).passed is True
    other = text.replace(spelt, "4 ms")
    assert check_reading(text, {}, parse_query(other)).passed is False


@pytest.mark.parametrize("name", ["WINDOW", "the window of", "driver's", "'10'", "'a' WINDOW 'b'"])
def test_names_in_quotes_may_have_what_is_read_apart(name: str) -> None:
    text = TEXT.replace("R.x", f'R."{name}"')
    check = check_reading(text, {"W": "100"}, parse_query(text).bind(W="100"))
    assert check.passed is True, check.detail
    check = check_reading(text, {"W": "100"}, parse_query(TEXT).bind(W="100"))
    assert check.passed is False


def test_a_number_that_is_too_much_for_the_second_parser_is_unknown() -> None:
    text = f"SELECT * FROM R, S WHERE S.ts BETWEEN R.ts - INTERVAL '1e-{'9' * 40} s' AND R.ts"
    assert check_reading(text, {}, parse_query(text)).passed is None
