"""Which tuples of a window are seen from where."""

from __future__ import annotations

import numpy as np

from joins.queries.windows import Window
from joins.semijoins.operand_windows import seen


def test_what_is_seen_at_equal_times_depends_on_the_order_of_streams() -> None:
    """Of equal times a stream that stands first in the query arrives first."""
    ids, ts = np.arange(4), np.array([1, 2, 2, 3])
    at = np.array([2])
    sliding = Window(kind="time", length=4, slide=1)
    precise = Window(kind="time", length=4, slide=1, semantics="precise")
    assert [int(edge[0]) for edge in seen(sliding, ids, ts, at, ties_seen=True)] == [0, 3]
    assert [int(edge[0]) for edge in seen(sliding, ids, ts, at, ties_seen=False)] == [0, 1]
    assert [int(edge[0]) for edge in seen(precise, ids, ts, at, ties_seen=True)] == [0, 1]
    counted = Window(kind="count", length=2, slide=1)
    assert [int(edge[0]) for edge in seen(counted, ids, ts, at, ties_seen=True)] == [2, 3]
