"""Query texts: what is read, what is printed, what is refused and how."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.queries.parser import QuerySyntaxError, on_one_line, parse_query
from joins.queries.query import QueryError
from tests.joins.queries.query_texts import Q1, Q2, Q3, squeezed, window


@pytest.mark.parametrize("text", [Q1, Q2, Q3])
def test_the_papers_queries_come_back_as_they_are_printed(text: str) -> None:
    """Q1, Q2 and Q3 differ from what is read and printed in white space at the most."""
    assert squeezed(str(parse_query(text))) == squeezed(text)


_names = st.sampled_from(["x", "trip_dist", "start_LON", "_a9", '"id.orig_h"', '"a  b"', '"on"'])
_numbers = st.sampled_from(["1", "0.03", ".5", "3.", "1e-3", "2.50", "007"])
_spaces = st.sampled_from([" ", "\n", "\t", "  \r\n  "])


@st.composite
def tokens(draw: st.DrawFn) -> list[str]:
    """Draw the tokens of a query: consistent, otherwise anything the language allows."""
    two_way = draw(st.booleans())

    def suffixed(name: str, suffix: str) -> str:
        return f'{name[:-1]}{suffix}"' if name.endswith('"') else name + suffix

    def sides(left: str, right: str) -> list[list[str]]:
        if two_way:
            found = [["R", ".", left], ["S", ".", right]]
        else:
            qualified = [["T", "."], []]
            found = [
                [*draw(st.sampled_from(qualified)), suffixed(left, "1")],
                [*draw(st.sampled_from(qualified)), suffixed(right, "2")],
            ]
        return found[::-1] if draw(st.booleans()) else found

    predicates = []
    pairs = st.lists(st.tuples(_names, _names), min_size=1, max_size=3, unique=True)
    for names in draw(pairs):
        left, right = sides(*names)
        if draw(st.booleans()):
            operator = draw(st.sampled_from(["<", "<=", ">", ">=", "=", "!=", "<>"]))
            predicates.append([*left, operator, *right])
        else:
            operator = draw(st.sampled_from(["<", "<="]))
            band = ["ABS", "(", *left, "-", *right, ")", operator, draw(_numbers)]
            predicates.append(band)
    item = st.sampled_from([["*"], ["time"], ["trip", ".", "ID"], ['"id.orig_h"']])
    items = draw(st.lists(item, min_size=1, max_size=3))
    amounts = st.sampled_from(
        [("10", "60"), ("1 min", "10 min"), ("25 ms", "1 s"), ("D", "W"), ("0.5 s", "10 s")]
    )
    slide, length = draw(amounts)
    timed = " " in slide
    return [
        "SELECT",
        *_joined(items, ","),
        "FROM",
        *(["R", ",", "S"] if two_way else ["T"]),
        "WHERE",
        *_joined(predicates, "AND"),
        *["WINDOW", "AS", "(", "SLIDE", "INTERVAL", f"'{slide}'", "ON", f"'{length}'"],
        *(["PRECISE"] if timed and draw(st.booleans()) else []),
        ")",
        *draw(st.sampled_from([[], [";"]])),
    ]


def _joined(groups: list[list[str]], separator: str) -> list[str]:
    return [token for group in groups for token in (separator, *group)][1:]


@settings(deadline=None)
@given(data=st.data(), spelling=tokens())
def test_any_query_is_printed_as_it_was_spelt(data: st.DataObject, spelling: list[str]) -> None:
    """Printing a query that was read gives back its text, white space and semicolon aside."""
    text = "".join(token + data.draw(_spaces) for token in spelling)
    printed = str(parse_query(text))
    assert squeezed(printed) == squeezed(text)
    assert str(parse_query(printed)) == printed
    assert parse_query(printed) == parse_query(text)


@settings(deadline=None)
@given(data=st.data(), spelling=tokens())
def test_comments_may_stand_between_any_two_words(data: st.DataObject, spelling: list[str]) -> None:
    comments = st.sampled_from([" ", " --\n", " -- it's \"x\n", "/* a\n * b; */", "/**/"])
    text = "".join(token + data.draw(comments) for token in spelling) + "-- the end"
    assert parse_query(text) == parse_query(" ".join(spelling))
    assert on_one_line(text) == " ".join(spelling)


def test_on_one_line_what_is_in_quotes_stays_as_it_is() -> None:
    text = 'SELECT *\n FROM T\tWHERE T."a  --1" < T."/*\n2" -- "\n WINDOW  AS'
    assert on_one_line(text) == 'SELECT * FROM T WHERE T."a  --1" < T."/*\n2" WINDOW AS'


def test_a_comment_that_does_not_end_is_refused_where_it_begins() -> None:
    with pytest.raises(QueryError, match=r"line 5, character 3 .* not '/'"):
        parse_query(Q1 + "\n  /* more")


@settings(deadline=None)
@given(spelling=tokens(), data=st.data())
def test_key_words_may_be_in_any_case(spelling: list[str], data: st.DataObject) -> None:
    """A query in small letters is the same query."""
    words = {"SELECT", "FROM", "WHERE", "AND", "ABS", "WINDOW", "AS", "SLIDE", "INTERVAL", "ON"}
    small = [t.lower() if t in words and data.draw(st.booleans()) else t for t in spelling]
    assert parse_query(" ".join(small)) == parse_query(" ".join(spelling))


@settings(deadline=None)
@given(text=st.text() | st.text(alphabet="SELECT FROMWHEWINDOA*xR12.,<>=()'\"-\n\r\t;\x0b\u2028"))
def test_any_other_text_is_refused_with_a_query_error(text: str) -> None:
    """Whatever the text, reading it raises nothing but a query error that points at a character."""
    with pytest.raises(QueryError) as caught:
        parse_query(text)
    assert "^" in str(caught.value)


@settings(deadline=None)
@given(spelling=tokens(), data=st.data())
def test_a_damaged_query_is_refused_where_it_was_damaged(
    spelling: list[str], data: st.DataObject
) -> None:
    """A character no query has is found at the line and column where it stands."""
    before = spelling[: data.draw(st.integers(0, len(spelling)))]
    text = "".join(token + data.draw(st.sampled_from([" ", "\n\t "])) for token in before)
    line, column = text.count("\n") + 1, len(text) - (text.rfind("\n") + 1) + 1
    with pytest.raises(QuerySyntaxError) as caught:
        parse_query(f"{text}§ {' '.join(spelling[len(before) :])}")
    message = str(caught.value)
    assert f"line {line}, character {column} " in message
    *_, shown, caret = message.split("\n")
    assert shown[caret.index("^")] == "§"


@pytest.mark.timeout(60)
def test_a_long_name_without_quotes_is_refused_in_time_that_grows_with_its_length() -> None:
    """Read from each of its letters it took minutes."""
    with pytest.raises(QuerySyntaxError):
        parse_query(f"SELECT * FROM A WHERE {'x' * 30_000}.b{' c' * 30_000}")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (
            "SELECT * FROM A, B WHERE A.id.orig_h = B.k",
            ", not '.'; a name that has a dot needs quotes: A.\"id.orig_h\"",
        ),
        ("SELECT A.id.orig.h FROM A", 'a name that has a dot needs quotes: A."id.orig.h"'),
        (
            "SELECT * FROM T WHERE T.trip distance1 > T.fare2",
            ", not 'distance1'; a name that has a space needs quotes: T.\"trip distance1\"",
        ),
        (
            "SELECT * FROM A, B WHERE A.x = B.unit price in cents AND A.y < B.y",
            'a name that has a space needs quotes: B."unit price in cents"',
        ),
        ("SELECT * FROM A, B WHERE ABS(A.x - B.a b) < 3", 'needs quotes: B."a b"'),
        ("SELECT * FROM A, B WHERE A.x LIKE B.y", "not 'LIKE'"),
        ("SELECT * FROM A, B WHERE A.x = B.y OR A.x = B.z AND A.y < B.y", "not 'OR'"),
        ("SELECT * FROM A, B WHERE A.x = B.y AND A.x IS NULL AND A.y < B.y", "not 'IS'"),
    ],
)
def test_a_name_with_a_dot_or_a_space_is_shown_in_quotes(text: str, hint: str) -> None:
    with pytest.raises(QuerySyntaxError) as raised:
        parse_query(text)
    assert str(raised.value).splitlines()[0].endswith(hint)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "SELECT"),
        ("SELECT a FROM", "a name"),
        ("SELECT a FROM T WHERE x1 < 3", "a name"),
        ("SELECT a FROM T WHERE x1 == x2", "not '='; one = compares for equality"),
        ("SELECT a FROM T JOIN S ON T.x = S.x", "; a join is written FROM A, B WHERE A.x = B.x"),
        ("SELECT a FROM T WHERE x1 < 3", "not '3'; rows of one stream are chosen by its key where"),
        ("SELECT a FROM T, S WHERE T.x = 'b'", "; rows of one stream are chosen by its key where"),
        ("SELECT a FROM T WHERE ABS(x1 - x2) < y", "a number"),
        ("SELECT a FROM T WHERE x1 < x2 OR", "AND"),
        ("SELECT a FROM T WHERE x1 < x2 GROUP BY a", "not 'GROUP'"),
        ("SELECT a FROM T WHERE x1 < x2 WINDOW AS (SLIDE INTERVAL 10", "in 'quotes'"),
        (window("SLIDE INTERVAL '1' ON '1'")[:-1], "PRECISE"),
        (window("SLIDE INTERVAL '1' ON '1'") + " x", "the end"),
    ],
)
def test_a_syntax_error_says_what_may_stand_there(text: str, expected: str) -> None:
    """In words that a person knows, not in names of the grammar."""
    with pytest.raises(QuerySyntaxError) as caught:
        parse_query(text)
    first = str(caught.value).split("\n")[0]
    assert expected in first
    assert not re.search(r"LPAR|RPAR|NAME|QUOTED|STRING|NUMBER|OPERATOR|\$END|__", first)


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("FROM R, S WHERE R.x < T.x", ["T.x", "'T'", "R, S"]),
        ("FROM R, S WHERE R.x < R.y", ["R.x < R.y", "both sides are of stream R"]),
        ("FROM R, S WHERE x < S.y", ["x", "R.x"]),
        ("FROM R, R WHERE R.x < R.y", ["R twice"]),
        ("FROM T WHERE x1 < y1", ["x1 < y1", "suffix 2"]),
        ("FROM T WHERE x < y2", ["x", "ends in 1"]),
        ('FROM T WHERE x1 < "2"', ["ends in 1"]),
        ("FROM T WHERE x1 < x2 AND x1 > x2", ["x1 < x2", "x1 > x2", "contradict"]),
        ("FROM T WHERE x1 < x2 AND x2 < x1", ["contradict"]),
        ("FROM T WHERE x1 = x2 AND x1 != x2", ["contradict"]),
        ("FROM T WHERE x1 < x2 AND x1 <> x2 AND x2 <= x1", ["contradict"]),
        ("FROM T WHERE x1 >= x2 AND x1 <= x2 AND x1 != x2", ["contradict"]),
        ("FROM T WHERE ABS(x1 - x2) <= 0 AND x1 < x2", ["contradict"]),
        ("FROM T WHERE ABS(x1 - x2) > 3", ["ABS(x1 - x2) > 3", "< or <="]),
        ("FROM T WHERE ABS(x1 - x2) < 0", ["ABS(x1 - x2) < 0"]),
        ("FROM T WHERE ABS(x1 - x2) < 1e999", ["1e999"]),
        ("FROM T WHERE ABS(x1 - x2) < 1e9999999999999999999", ["exponent is too long"]),
        ("FROM T WHERE ABS(x1 - x2) < 1e-9999999999999999999", ["exponent is too long"]),
    ],
)
def test_predicates_that_make_no_sense_are_refused(where: str, says: list[str]) -> None:
    """The error names the predicate or field, and what is allowed."""
    with pytest.raises(QueryError) as caught:
        parse_query(f"SELECT * {where} WINDOW AS (SLIDE INTERVAL '1' ON '1')")
    for words in says:
        assert words in str(caught.value)


@pytest.mark.parametrize(
    ("clause", "says"),
    [
        ("SLIDE INTERVAL '20' ON '10'", "longer than the window"),
        ("SLIDE INTERVAL '3' ON '10'", "9 or 12"),
        ("SLIDE INTERVAL '0' ON '10'", "at least 1"),
        ("SLIDE INTERVAL '-1' ON '10'", "-1"),
        ("SLIDE INTERVAL '1.5' ON '3'", "1.5"),
        ("SLIDE INTERVAL '1 s' ON '10'", "both"),
        ("SLIDE INTERVAL '1 kg' ON '10 kg'", "1 kg"),
        ("SLIDE INTERVAL '1 m' ON '10 m'", "1 m"),
        ("SLIDE INTERVAL 'inf s' ON 'inf s'", "inf s"),
        ("SLIDE INTERVAL '1' ON '99999999999999999999'", "99999999999999999999"),
        (f"SLIDE INTERVAL '1' ON '{'9' * 5_000}'", "neither a number of tuples"),
        ("SLIDE INTERVAL '0.1 ns' ON '1 ns'", "at least 1"),
        ("SLIDE INTERVAL '1' ON '10' PRECISE", "time"),
        ("SLIDE INTERVAL '1' ON 'W'", "'W'"),
        ("SLIDE INTERVAL '' ON '10'", "''"),
    ],
)
def test_windows_that_cannot_be_are_refused_at_the_latest_when_used(clause: str, says: str) -> None:
    """The error shows the clause and says what is allowed."""
    with pytest.raises(QueryError) as caught:
        _ = parse_query(window(clause)).windows
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("clause", "kind", "slide", "length"),
    [
        ("SLIDE INTERVAL '10' ON '60'", "count", 10, 60),
        ("SLIDE INTERVAL '10 min' ON '1 hour'", "time", 600 * 10**9, 3600 * 10**9),
        ("SLIDE INTERVAL '6 h' ON '1.5 d'", "time", 6 * 3600 * 10**9, 36 * 3600 * 10**9),
        ("SLIDE INTERVAL '1 minute' ON '10 minutes'", "time", 60 * 10**9, 600 * 10**9),
        ("SLIDE INTERVAL '25 ms' ON '60 s'", "time", 25 * 10**6, 60 * 10**9),
        ("SLIDE INTERVAL '5ms' ON '10 ms' PRECISE", "time", 5 * 10**6, 10**7),
        ("SLIDE INTERVAL '1 ns' ON '3 us'", "time", 1, 3_000),
        ("SLIDE INTERVAL '1 day' ON '2 days'", "time", 86_400 * 10**9, 2 * 86_400 * 10**9),
    ],
)
def test_numbers_count_tuples_and_quantities_are_times(
    clause: str, kind: str, slide: int, length: int
) -> None:
    """A window without units counts; one with units is event time in nanoseconds."""
    (found,) = parse_query(window(clause)).windows
    assert (found.kind, found.slide, found.length) == (kind, slide, length)
    assert found.semantics == ("precise" if "PRECISE" in clause else "sliding")


def test_placeholders_are_bound_by_name() -> None:
    """A bound query has the windows it was given, prints them, and leaves the first as it was."""
    query = parse_query(Q3)
    bound = query.bind(D="1000", W="10000")
    assert [(w.slide, w.length) for w in bound.windows] == [(1000, 10000)]
    assert "'1000' ON '10000'" in str(bound)
    assert squeezed(str(query)) == squeezed(Q3)
    assert str(query.bind(D="10 min").bind(W="60 min")) == str(query.bind(D="10 min", W="60 min"))
    with pytest.raises(QueryError, match=r"'X'.*'D'"):
        query.bind(X="1")


def test_a_two_way_join_has_the_same_window_over_both_streams() -> None:
    """One clause serves every stream."""
    first, second = parse_query(Q1).windows
    assert first == second


def test_thousands_of_predicates_are_refused_where_they_become_too_many() -> None:
    where = " AND\n".join(["R.a < S.b"] * 20_000)
    text = f"SELECT * FROM R, S WHERE\n{where} WINDOW AS (SLIDE INTERVAL '1' ON '100')"
    with pytest.raises(QueryError, match=r"^line 102, character 5 of the query: it has more than"):
        parse_query(text)
    assert (
        len(parse_query(text.replace(where, " AND ".join(["R.a < S.b"] * 100))).predicates) == 100
    )
