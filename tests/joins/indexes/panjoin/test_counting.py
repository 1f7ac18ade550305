"""Ranges that a BI-Sort only counts, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.indexes.panjoin.bi_sort import BiSort
from joins.indexes.panjoin.probing import encode_probes, probe_subwindows
from joins.indexes.panjoin.subwindow import Subwindow, SubwindowShape
from tests.joins.indexes.panjoin.plain import assert_found, insert_in_order

INT64 = np.iinfo(np.int64)
SPREADS = {"int32": 10_000, "int64": 1 << 40}
"""Least and greatest of values, by the type of key that they need."""


@pytest.mark.parametrize("keys", list(SPREADS))
@given(
    held=st.integers(1, 900),
    partitions=st.sampled_from([1, 4, 40]),
    reach=st.sampled_from([0, 1, 3, 100]),
    sealed=st.booleans(),
    seed=st.integers(0, 999),
)
def test_what_is_counted_is_what_numpy_finds(
    keys: str, held: int, partitions: int, reach: int, sealed: bool, seed: int
) -> None:
    rng, spread = np.random.default_rng(seed), SPREADS[keys]
    shape = SubwindowShape(
        dtypes=("int64",), capacity=held, partitions=min(partitions, held), sigma=1.25
    )
    subwindow = Subwindow(shape, "bi_sort", first=50)
    subwindow.structure = BiSort(held, shape.partitions, buffer=held // 3 + 1)
    values = rng.integers(-spread, spread, held) // rng.integers(1, 100)
    near = rng.choice(values, 80)
    if keys == "int64":
        values[rng.random(held) < 0.2] = INT64.max
    for batch in np.array_split(values, 5):
        insert_in_order(subwindow, [batch])
    if sealed:
        subwindow.seal()
    low = np.sort(near + rng.integers(-2, 2, len(near)))
    high = low + rng.integers(-1, 2, len(low)) + reach * (spread // max(held, 1))
    low[:3], high[-3:] = INT64.min, INT64.max
    start, stop = np.sort(rng.integers(0, held + 100, (2, len(low))), axis=0)
    probes = encode_probes(("int64",), [low], [high], negated=[False], start=start, stop=stop)
    found = probe_subwindows([subwindow], probes)
    positions = np.arange(50, 50 + held)
    expected = [
        positions[
            (low[i] <= values)
            & (values <= high[i])
            & (start[i] <= positions)
            & (positions < stop[i])
        ]
        for i in range(len(low))
    ]
    assert_found(found, expected)
    assert found.work.matches == sum(len(matches) for matches in expected)
