from __future__ import annotations

import numpy as np
import pytest

from joins.indexes.pim_tree import mutable_tree
from joins.indexes.pim_tree.forest import active_tree, run_slot
from joins.indexes.pim_tree.pim_tree import PimTree
from joins.work import new_counters
from tests.joins.in_kernel import in_kernel

route = in_kernel(mutable_tree.route)


@pytest.mark.parametrize("dtype", ["int64", "float64"])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_keys_are_counted_where_an_insert_would_bring_them(dtype: str, depth: int) -> None:
    rng = np.random.default_rng(depth)
    index = PimTree(dtype=dtype, merge_ratio=1.0, insertion_depth=depth)
    index.insert([rng.normal(0, 1000, 5000).astype(dtype)], np.arange(5000))
    index.maintain(0)
    keys = rng.normal(500, 3000, 700).astype(dtype)
    counted = index.spread(keys)
    run, tree = run_slot(index.forest, 0, 0), active_tree(index.forest, 0)
    counters = new_counters()
    whole = keys if dtype == "int64" else _as_whole_numbers(keys)
    taken = [route(index.forest, run, tree, key, counters) for key in whole.tolist()]
    assert counted.sum() == len(keys)
    assert np.array_equal(counted, np.bincount(taken, minlength=len(counted)))
    assert (len(counted) == 1) == (depth == 0)


def _as_whole_numbers(keys: np.ndarray) -> np.ndarray:
    bits = keys.view(np.int64)
    return np.where(bits < 0, bits ^ np.iinfo(np.int64).max, bits)
