"""What the threads of a live join are told of a batch before they begin."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.window_join.live.opening import first_position, lay_out, open_live
from joins.window_join.live.state import SIDES, WORDS
from joins.window_join.rows import make_rows
from tests.joins.window_join.ibwj_cases import arrivals


@settings(max_examples=60)
@given(case=arrivals(), first=st.integers(0, 120), horizon=st.integers(0, 5))
def test_a_batch_knows_what_has_arrived_and_what_is_still_seen_before_each_row(
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

        held = 3
        live = open_live(np.zeros((SIDES + sides, WORDS), np.int64), rows, held)
        live.base[side] = max(0, begin - held)
        longest = lay_out(rows, live, side, held, horizon)

        before = [live.base[side] + held + (mine < row).sum() for row in range(len(rows.side) + 1)]
        assert live.arrived[side].tolist() == before
        assert live.keys[side, held : held + len(mine)].tolist() == rows.key[mine].tolist()
        assert not live.indexed[side, held : held + len(mine)].any()
        last = max([horizon, *rows.start[probing]])
        seen = [
            rows.start[probing[probing >= row]].min(initial=last) for row in range(len(rows.side))
        ]
        assert live.seen[side].tolist() == [*seen, last]
        assert longest == (live.arrived[side] - live.seen[side]).max()
