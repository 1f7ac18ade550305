"""Numbers of values against a dictionary."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from joins.semijoins.value_table import ValueTable

VALUES = st.lists(st.tuples(st.integers(-9, 9), st.sampled_from([0.0, -0.0, 0.5])), max_size=60)


def columns(values: list[tuple[int, float]]) -> list[np.ndarray]:
    return [
        np.array([whole for whole, _ in values], np.int64),
        np.array([fraction for _, fraction in values], np.float64),
    ]


@given(steps=st.lists(st.tuples(VALUES, VALUES), max_size=8))
def test_values_keep_their_numbers_until_forgotten(
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
        table.forget(columns(gone))
        for value in gone:
            del known[value]
        asked = added + dropped
        assert table.find(columns(asked)).tolist() == [known.get(value, -1) for value in asked]
