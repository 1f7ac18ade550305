"""Measured attributes against what is counted in the tuples themselves."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies.semijoins.join_statistics import MeasuredAttribute, NestedAttribute

COLUMNS = st.lists(
    st.lists(st.integers(0, 6), min_size=1, max_size=12).map(np.array), min_size=2, max_size=4
)


def subsets(streams: int) -> np.ndarray:
    """Return every set of one stream or more, (sets, streams)."""
    every = list(product([False, True], repeat=streams))
    return np.array(every[1:])


@settings(max_examples=60, deadline=None)
@given(COLUMNS)
def test_what_is_measured_is_what_the_tuples_have(columns: list[np.ndarray]) -> None:
    attribute = MeasuredAttribute.of_columns(dict(enumerate(columns)), len(columns))
    done = subsets(len(columns))
    selectivity, values = attribute.selectivity(done), attribute.values(done)
    there, back = attribute.shares(done, np.eye(len(columns), dtype=bool))
    for row, members in enumerate(done):
        chosen = [
            column.tolist() for column, member in zip(columns, members, strict=True) if member
        ]
        alike = [combination[0] for combination in product(*chosen) if len({*combination}) == 1]
        assert selectivity[row] == pytest.approx(len(alike) / np.prod([len(c) for c in chosen]))
        assert values[row] == max(1, len(set(alike)))
        for stream, column in enumerate(columns):
            if not members[stream]:
                theirs = set(column.tolist())
                assert back[row, stream] == pytest.approx(np.isin(column, alike).mean())
                if alike:
                    found = [value in theirs for value in alike]
                    assert there[row, stream] == pytest.approx(np.mean(found))


def test_nested_uniform_values_are_measured_as_assumed() -> None:
    columns = {0: np.arange(5), 1: np.arange(20), 3: np.arange(50)}
    measured = MeasuredAttribute.of_columns(columns, 4)
    assumed = NestedAttribute(distinct=np.array([5.0, 20, 0, 50]))
    done, alone = subsets(4), np.eye(4, dtype=bool)
    assert measured.selectivity(done) == pytest.approx(assumed.selectivity(done))
    assert measured.values(done) == pytest.approx(assumed.values(done))
    for ours, theirs in zip(measured.shares(done, alone), assumed.shares(done, alone), strict=True):
        new = ~done  # a stream is joined once
        assert ours[new] == pytest.approx(theirs[new])
