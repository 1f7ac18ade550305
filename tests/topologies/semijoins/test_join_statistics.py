"""Measured attributes against what is counted in the tuples themselves."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies.semijoins.join_statistics import JoinAttribute

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
    attribute = JoinAttribute.of_columns(dict(enumerate(columns)), len(columns))
    done = subsets(len(columns))
    outputs = attribute.of_outputs(done)
    there, back = outputs.shares(attribute.of_outputs(np.eye(len(columns), dtype=bool)))
    for row, members in enumerate(done):
        chosen = [
            column.tolist() for column, member in zip(columns, members, strict=True) if member
        ]
        alike = [combination[0] for combination in product(*chosen) if len({*combination}) == 1]
        assert outputs.selectivity[row] == pytest.approx(
            len(alike) / np.prod([len(c) for c in chosen])
        )
        assert outputs.distinct[row] == max(1, len(set(alike)))
        for stream, column in enumerate(columns):
            if not members[stream]:
                theirs = set(column.tolist())
                assert back[row, stream] == pytest.approx(np.isin(column, alike).mean())
                if alike:
                    found = [value in theirs for value in alike]
                    assert there[row, stream] == pytest.approx(np.mean(found))


def test_nested_uniform_values_are_as_the_paper_assumes() -> None:
    distinct = np.array([5, 20, 0, 50])
    attribute = JoinAttribute.nested(distinct.tolist())
    done, alone = subsets(4), np.eye(4, dtype=bool)
    has = distinct > 0
    fewest = np.where(done & has, distinct, np.inf).min(axis=1)
    fewest = np.where(np.isfinite(fewest), fewest, 1)
    each = np.where(done & has, 1 / np.maximum(distinct, 1), 1).prod(axis=1)
    outputs = attribute.of_outputs(done)
    assert outputs.selectivity == pytest.approx(fewest * each)
    assert outputs.distinct == pytest.approx(fewest)
    shared = np.array((done & has).any(axis=1))[:, None] & has
    ours, theirs = np.where(shared, fewest[:, None], 1), np.where(shared, distinct, 1)
    there, back = outputs.shares(attribute.of_outputs(alone))
    new = ~done  # a stream is joined once
    assert there[new] == pytest.approx(np.minimum(1, theirs / ours)[new])
    assert back[new] == pytest.approx(np.minimum(1, ours / theirs)[new])
