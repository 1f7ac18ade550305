"""Numbers of values, and of distinct rows, against a dictionary."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from joins.semijoins.distinct_values import ValueTable, contained, distinct

VALUES = st.lists(st.tuples(st.integers(-9, 9), st.sampled_from([0.0, -0.0, 0.5])), max_size=60)


def columns(values: list[tuple[int, float]]) -> list[np.ndarray]:
    return [
        np.array([whole for whole, _ in values], np.int64),
        np.array([fraction for _, fraction in values], np.float64),
    ]


@given(steps=st.lists(st.tuples(VALUES, VALUES), max_size=8))
def test_values_have_the_same_numbers_until_removed(
    steps: list[tuple[list[tuple[int, float]], list[tuple[int, float]]]],
) -> None:
    table, known, made = ValueTable(2), {}, 0
    for added, dropped in steps:
        numbers, rows = table.add(columns(added), made)
        new = []
        for row, value in enumerate(added):
            if value not in known:
                known[value] = made
                made += 1
                new.append(row)
        assert rows.tolist() == new
        assert numbers.tolist() == [known[value] for value in added]
        gone = sorted({value for value in dropped if value in known})
        table.remove(columns(gone))
        for value in gone:
            del known[value]
        asked = added + dropped
        assert table.find(columns(asked)).tolist() == [known.get(value, -1) for value in asked]


@given(
    rows=st.lists(
        st.tuples(st.integers(-2, 2), st.sampled_from([0.0, -0.0, 0.5, float("inf")])), max_size=40
    )
)
def test_distinct_rows_come_in_the_order_they_first_appear(
    rows: list[tuple[int, float]],
) -> None:
    """As a dictionary would; 0.0 and -0.0 are one value."""
    columns = [
        np.array([a for a, _ in rows], np.int64),
        np.array([b for _, b in rows], np.float64),
    ]
    order = list(dict.fromkeys(rows))
    values = distinct(columns)
    assert list(zip(*(column.tolist() for column in values), strict=True)) == order
    known = [column[:3] for column in values]
    assert contained(columns, known).tolist() == [row in order[:3] for row in rows]
