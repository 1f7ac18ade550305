"""Values come back from their columns as they went in."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest

from actors.columns import from_columns, to_columns
from actors.results import Late, Output
from actors.state import from_bytes, to_bytes
from joins.matches import Matches
from joins.work import NO_WORK, Step, Work


def ids(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def matches(stream: int, *probes: int) -> Matches:
    count = np.ones(len(probes), np.int64)
    return Matches(
        stream=stream, probe_id=ids(*probes), count=count, fingerprint=count.view(np.uint64)
    )


def same(left: Any, right: Any) -> bool:
    """Whether two values have the same types and content, arrays too."""
    return type(left) is type(right) and bool(to_bytes(left) == to_bytes(right))


@pytest.mark.parametrize(
    "values",
    [
        [],
        [1, 2, -(2**63)],
        ["a", None, 3, True, 2.5],
        [(), ()],
        [(1, "a"), (2, "b")],
        [(1,), (2, 3), ()],
        [[], [(1, "next")], [(2, "a"), (3, "b")]],
        [2**80, 1],
        [np.int64(3), np.float64(0.5)],
        [{"a": ids(1)}, {}],
        [deque([1]), {2}],
        [ids(1, 2), ids(), ids(3)],
        [ids(1, 2), np.array([0.5])],
        [ids(1, 2).reshape(1, 2), ids(1, 2, 3).reshape(1, 3)],
        [ids(1, 2, 3, 4).reshape(2, 2).T, ids(5, 6).reshape(1, 2)],
        [np.array(5), np.array(6)],
        [NO_WORK, Work(comparisons=3)],
        [[(Step("hash.probe", 3, 4), Work(matches=2))], ()],
        [[Output(matches(0, 1, 2), ids(5, 6), "a"), Output(matches(1), ids(), "b")]],
        [Output(matches(0, 1), ids(5), "a"), Late(0, ids(1), ids(2), 3, (4, 5))],
    ],
)
def test_values_come_back_from_their_columns(values: list[Any]) -> None:
    written = to_bytes(to_columns(values))
    found = from_columns(from_bytes(written))
    assert len(found) == len(values)
    assert all(map(same, found, values))


def test_many_small_arrays_are_a_few_large_ones() -> None:
    outputs = [Output(matches(0, i, i + 1), ids(i, i), "a") for i in range(100)]
    assert len(to_bytes(to_columns(outputs))) < len(to_bytes(outputs)) / 3
