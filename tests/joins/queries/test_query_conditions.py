"""What a query asks of the stored tuples, seen from each stream."""

from __future__ import annotations

import pytest

from joins.batch import Schema
from joins.queries.parser import parse_query
from joins.queries.query import QueryError
from joins.queries.selection import select
from tests.joins.queries.query_texts import Q1, Q3, squeezed, window


def schemas(*streams: str, **fields: str) -> list[Schema]:
    return [Schema(stream=stream, fields=fields) for stream in streams]


def test_conditions_read_stored_op_probe_from_either_side() -> None:
    """Seen from R, Q1 asks for stored S with more POWER and less COOL; seen from S, the reverse."""
    query = parse_query(Q1)
    known = schemas("R", "S", POWER="float64", COOL="int64")
    from_r, from_s = (query.conditions(stream, known) for stream in (0, 1))
    assert [(c.stored_field, str(c.operator), c.probe_field, c.dtype) for c in from_r] == [
        ("POWER", ">", "POWER", "float64"),
        ("COOL", "<", "COOL", "int64"),
    ]
    assert [str(c.operator) for c in from_s] == ["<", ">"]
    assert [query.stored_stream(stream) for stream in (0, 1)] == [1, 0]
    assert query.fields(0) == query.fields(1) == ("POWER", "COOL")


def test_in_a_self_join_suffix_1_is_the_probing_tuple() -> None:
    """Q3 asks of the stored tuple a smaller distance and a larger fare, however spelt."""
    known = schemas("NYC", trip_dist="float64", trip_fare="float64")
    swapped = Q3.replace("NYC.trip_dist1 > NYC.trip_dist2", "NYC.trip_dist2 < NYC.trip_dist1")
    for text in (Q3, swapped):
        query = parse_query(text)
        assert query.is_self_join
        assert query.stored_stream(0) == 0
        assert query.fields(0) == ("trip_dist", "trip_fare")
        assert [(c.stored_field, str(c.operator)) for c in query.conditions(0, known)] == [
            ("trip_dist", "<"),
            ("trip_fare", ">"),
        ]


def test_quoted_names_are_columns_with_any_signs() -> None:
    """The quotes and the suffix are not part of the column's name."""
    query = parse_query(window("SLIDE INTERVAL '1' ON '1'").replace("x1 < x2", '"id.o h1" < y2'))
    assert query.fields(0) == ("id.o h", "y")


def test_a_field_the_stream_lacks_is_named_with_those_it_has() -> None:
    """The error names stream, field and the fields there are."""
    with pytest.raises(QueryError, match=r"'S' has no field 'COOL'; it has POWER, TEMP"):
        parse_query(Q1).conditions(
            0,
            [
                Schema(stream="R", fields={"POWER": "int64", "COOL": "int64"}),
                Schema(stream="S", fields={"POWER": "int64", "TEMP": "int64"}),
            ],
        )


THREE = "SELECT * FROM A, B, C WHERE A.x = B.x AND B.y < C.y AND A.x != C.y"


def test_in_a_join_of_three_streams_each_two_have_conditions_of_their_own() -> None:
    """A tuple looks into several windows: which one must be said."""
    query = parse_query(f"{THREE} WINDOW AS (SLIDE INTERVAL '1' ON '1')")
    known = schemas("A", "B", "C", x="int64", y="int64")
    assert query.streams == ("A", "B", "C")
    seen = {
        pair: [(c.stored_field, str(c.operator)) for c in query.conditions_between(*pair, known)]
        for pair in ((0, 1), (1, 2), (2, 1), (2, 0))
    }
    assert seen == {
        (0, 1): [("x", "=")],
        (1, 2): [("y", ">")],
        (2, 1): [("y", "<")],
        (2, 0): [("x", "!=")],
    }
    with pytest.raises(QueryError, match="3"):
        query.stored_stream(2)
    with pytest.raises(QueryError, match="'C' has no field 'y'"):
        query.check_fields([*known[:2], Schema(stream="C", fields={"x": "int64"})])


def test_each_stream_may_have_a_window_of_its_own() -> None:
    """Printed as they are listed, given in the order of FROM; all of them, each once."""
    windows = (
        "C AS (SLIDE INTERVAL 'D' ON '8'), A AS (SLIDE INTERVAL '1 ms' ON '4 ms' PRECISE), "
        "B AS (SLIDE INTERVAL '5' ON '5')"
    )
    query = parse_query(f"{THREE} WINDOW {windows}")
    assert squeezed(str(query)) == squeezed(f"{THREE} WINDOW {windows}")
    assert parse_query(str(query)) == query
    with pytest.raises(QueryError, match="'D' has no value"):
        assert query.windows
    first, second, third = query.bind(D="2").windows
    assert (first.kind, first.length, first.semantics) == ("time", 4_000_000, "precise")
    assert (second.length, third.slide) == (5, 2)
    with pytest.raises(QueryError, match=r"WINDOW is over C, A, C; .* each of A, B, C"):
        parse_query(f"{THREE} WINDOW {windows.replace('B AS', 'C AS')}")


def test_a_stream_may_be_named_in_quotes() -> None:
    plain, quoted = (
        parse_query(
            f"SELECT {stream}.x FROM R, S WHERE {stream}.x = S.x "
            "WINDOW AS (SLIDE INTERVAL '1' ON '9')"
        )
        for stream in ("R", '"R"')
    )
    assert quoted.predicates == plain.predicates
    columns = [{"x": "x"}, {"x": "x"}]
    assert [one.column for one in select(quoted, columns)] == ["x"]
