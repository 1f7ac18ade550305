"""Interval joins in query texts: what is read, what is printed, what is refused and how."""

from __future__ import annotations

import pytest

from joins.queries.parser import QuerySyntaxError, parse_query
from joins.queries.query import QueryError
from tests.joins.queries.query_texts import Q1, squeezed


def within(interval: str, *others: str) -> str:
    return f"SELECT * FROM A, B WHERE {' AND '.join([*others, interval])}"


INTERVALS = {
    "B.ts BETWEEN A.ts - INTERVAL '100 ms' AND A.ts + INTERVAL '100 ms'": (0, -(10**8), 10**8),
    "A.ts BETWEEN B.ts AND B.ts + INTERVAL '2 s'": (1, 0, 2 * 10**9),
    "B.ts BETWEEN A.ts - INTERVAL '5 ns' AND A.ts - INTERVAL '3 ns'": (0, -5, -3),
    "B.ts BETWEEN A.ts AND A.ts": (0, 0, 0),
}


@pytest.mark.parametrize("clause", INTERVALS)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_interval_is_printed_where_it_stood_and_says_its_bounds(clause: str, place: int) -> None:
    """The base is the stream on the right; the ends are of any sign."""
    conditions = ["A.key = B.key", "A.x < B.y"]
    conditions.insert(place, clause)
    text = f"SELECT * FROM A, B WHERE {' AND '.join(conditions)}"
    query = parse_query(text + " ;")
    assert squeezed(str(query)) == squeezed(text)
    interval = query.bound_interval
    assert (interval.base, interval.lower_ns, interval.upper_ns) == INTERVALS[clause]
    assert query.key == 0


def test_an_interval_needs_no_other_predicate_and_takes_values_by_name() -> None:
    query = parse_query(within("B.ts BETWEEN A.ts - INTERVAL 'L' AND A.ts + INTERVAL 'U'"))
    assert query.predicates == ()
    assert query.key is None
    bound = query.bind(L="1 min", U="2 ms").bound_interval
    assert (bound.lower_ns, bound.upper_ns) == (-60 * 10**9, 2 * 10**6)
    with pytest.raises(QueryError, match="'L' has no value"):
        _ = query.bound_interval
    with pytest.raises(QueryError, match="the interval has no 'D' to bind"):
        query.bind(D="1 s")


def test_event_times_may_have_their_columns_own_names() -> None:
    text = within("B.paid_at BETWEEN A.ts - INTERVAL '1 s' AND A.ts")
    query = parse_query(text)
    assert query.times == ("ts", "paid_at")
    assert squeezed(str(query)) == squeezed(text)
    windowed = "SELECT * FROM A, B WHERE A.x < B.x WINDOW AS (SLIDE INTERVAL '1' ON '2')"
    assert parse_query(windowed).times == ("ts", "ts")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (within("B.ts BETWEEN A.ts AND A.other"), "both ends must be of one tuple"),
        (within("B.ts BETWEEN A.ts AND B.ts"), "both ends must be of one tuple"),
        (within("B.ts BETWEEN B.ts AND B.ts"), "both sides are of stream B"),
        ("SELECT * FROM T WHERE T.ts1 BETWEEN T.ts2 AND T.ts2", "FROM names 1"),
        (
            "SELECT * FROM A, B, C WHERE A.x = C.x AND B.ts BETWEEN A.ts AND A.ts",
            "FROM names 3",
        ),
    ],
)
def test_an_interval_that_makes_no_sense_is_refused(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        parse_query(text)


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("B.ts BETWEEN A.ts + INTERVAL '2 s' AND A.ts + INTERVAL '1 s'", "no tuple is between"),
        ("B.ts BETWEEN A.ts - INTERVAL '100' AND A.ts", "'100' has no unit"),
        ("B.ts BETWEEN A.ts - INTERVAL '3 kg' AND A.ts", "'3 kg' is neither"),
        ("B.ts BETWEEN A.ts AND A.ts + INTERVAL '300 Gs'", "less than 146 years"),
    ],
)
def test_bounds_that_cannot_be_are_named(clause: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        _ = parse_query(within(clause)).bound_interval


@pytest.mark.parametrize(
    ("clause", "word"),
    [
        ("B.ts BETWEEN A.ts * INTERVAL '1 s' AND A.ts", "*"),
        ("B.ts BETWEEN A.ts AND A.ts + 5", "5"),
        ("B.ts BETWEEN A.ts OR A.ts", "OR"),
        ("B.ts BETWEEN A.ts AND A.ts WINDOW AS (SLIDE INTERVAL '1' ON '1')", "WINDOW"),
        ("B.ts BETWEEN A.ts AND A.ts AND B.ts BETWEEN A.ts AND A.ts", "BETWEEN"),
    ],
)
def test_errors_in_an_interval_point_at_the_word(clause: str, word: str) -> None:
    with pytest.raises(QuerySyntaxError) as error:
        parse_query(within(clause))
    first, line, caret = str(error.value).splitlines()
    assert f"not {word!r}" in first
    assert line[caret.index("^") :].startswith(word)


def test_a_window_is_no_interval_and_an_interval_no_window() -> None:
    timed, windowed = parse_query(within("B.ts BETWEEN A.ts AND A.ts")), parse_query(Q1)
    with pytest.raises(QueryError, match="an interval join has no window"):
        _ = timed.windows
    with pytest.raises(QueryError, match="a window join has no interval"):
        _ = windowed.bound_interval
