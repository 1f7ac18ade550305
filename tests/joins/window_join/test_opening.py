"""What is computed of a batch before its workers begin."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.window_join.rows import make_rows
from joins.window_join.shared_batch import first_position, lay_out, make_batch, make_words
from tests.joins.window_join.ibwj_cases import arrivals


@settings(max_examples=60)
@given(case=arrivals(), first=st.integers(0, 120), horizon=st.integers(0, 5))
def test_a_batch_lists_what_has_arrived_and_what_is_still_seen_before_each_row(
    case, first, horizon
):
    self_join, columns, _ = case
    rows = make_rows(**columns).part(min(first, len(columns["side"])), None)
    sides = 1 if self_join else 2
    for side in range(sides):
        mine = np.flatnonzero(rows.side == side)
        probing = np.flatnonzero(rows.side == (side if self_join else 1 - side))
        begin = first_position(rows, side)
        assert begin == (rows.position[mine[0]] if len(mine) else -1)

        earlier = 3
        batch = make_batch(make_words(sides), rows, room=earlier, task_rows=1, slack=0)
        batch.base[side] = max(0, begin - earlier)
        longest = lay_out(batch, side, earlier, horizon)

        before = [
            batch.base[side] + earlier + (mine < row).sum() for row in range(len(rows.side) + 1)
        ]
        assert batch.arrived[side].tolist() == before
        assert batch.keys[side, earlier : earlier + len(mine)].tolist() == rows.key[mine].tolist()
        assert not batch.indexed[side, earlier : earlier + len(mine)].any()
        last = max([horizon, *rows.start[probing]])
        seen = [
            rows.start[probing[probing >= row]].min(initial=last) for row in range(len(rows.side))
        ]
        assert batch.seen[side].tolist() == [*seen, last]
        assert longest == (batch.arrived[side] - batch.seen[side]).max()
