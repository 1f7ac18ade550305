from __future__ import annotations

import numpy as np
import pytest

from joins.codes import encode
from joins.indexes.pim_tree import mutable_tree
from joins.indexes.pim_tree.forest import active_tree, run_slot
from joins.indexes.pim_tree.pim_tree import PimTree
from joins.work import new_counters
from tests.joins.in_kernel import in_kernel

route = in_kernel(mutable_tree.route)


@pytest.mark.parametrize("are_floats", [False, True])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_keys_are_counted_where_an_insert_would_bring_them(are_floats: bool, depth: int) -> None:
    rng = np.random.default_rng(depth)

    def draw(mean: int, deviation: int, n: int) -> np.ndarray:
        values = rng.normal(mean, deviation, n)
        return encode(values if are_floats else values.astype(np.int64))

    index = PimTree(merge_ratio=1.0, insertion_depth=depth)
    index.insert([draw(0, 1000, 5000)], np.arange(5000))
    index.maintain(0)
    keys = draw(500, 3000, 700)
    counted = index.spread(keys)
    run, tree = run_slot(index.forest, 0, 0), active_tree(index.forest, 0)
    counters = new_counters()
    taken = [route(index.forest, run, tree, key, counters) for key in keys.tolist()]
    assert counted.sum() == len(keys)
    assert np.array_equal(counted, np.bincount(taken, minlength=len(counted)))
    assert (len(counted) == 1) == (depth == 0)
