"""States survive a trip through memory and disk, whatever plain data they hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from actors.results import Answers
from actors.state import load, save
from joins.matches import Matches
from joins.state import plain, revive

arrays = hnp.arrays(
    st.sampled_from([np.int64, np.float64, np.uint64]),
    hnp.array_shapes(max_dims=2),
    elements=st.just(3),
)
scalars = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=5)
states = st.recursive(
    scalars | arrays,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3) | st.integers(0, 9), inner, max_size=3)
    ),
    max_leaves=8,
)


def same(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


@given(state=st.dictionaries(st.text(max_size=3), states, max_size=4))
def test_a_state_comes_back_from_disk_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, state: dict[str, Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "state.npz"
    save(state, path)
    assert same(load(path), state)


def test_records_come_back_as_the_records_they_were() -> None:
    matches = Matches(
        stream=1,
        probe_id=np.array([4, 5]),
        count=np.array([1, 0]),
        fingerprint=np.array([9, 0], np.uint64),
        match_id=np.array([2]),
    )
    found = Answers((matches,), (np.array([7, 8]),), (3, 4))
    back = revive(plain({"queue": [found]}))["queue"][0]
    assert isinstance(back, Answers)
    assert back.span == (3, 4)
    assert isinstance(back.matches[0], Matches)
    assert back.matches[0].match_id is not None
    assert back.matches[0].match_id.tolist() == [2]


def test_what_is_not_plain_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="a complex is not plain data"):
        save({"x": [1j]}, tmp_path / "x.npz")
