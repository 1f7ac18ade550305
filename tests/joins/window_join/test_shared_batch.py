"""A batch that workers share: what is computed before they begin, and its results' order."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.matches import MatchList
from joins.window_join.rows import make_rows
from joins.window_join.shared_batch import (
    COMPLETED,
    EDGE,
    HEAD,
    LOCK,
    OUTPUT,
    SIDES,
    TOTAL,
    advance_edge,
    first_position,
    lay_out,
    make_batch,
    make_words,
    propagate,
)
from scenarios.calibration.window_workload import band_join
from tests.joins.window_join.ibwj_cases import arrivals

# What is computed of a batch before its workers begin.


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


# Results of a shared queue in arrival order; they and edges are moved by one thread at a time.


def _queue(*status):
    """Return a batch whose rows have that *status*, row i with i + 1 matches."""
    rows = band_join(np.arange(len(status)), 1, len(status))
    batch = make_batch(make_words(2), rows, room=0, task_rows=1, slack=0)
    for side in range(2):
        lay_out(batch, side, 0, 0)
    batch.status[0] = status
    output = MatchList(len(status), enumerate=False).buffer
    output.matches[:] = np.arange(len(status)) + 1
    return SimpleNamespace(batch=batch, output=output)


def _propagated(queue):
    propagate(queue.batch, queue.output)
    return queue.batch.words[OUTPUT, HEAD], queue.batch.words[OUTPUT, TOTAL]


def test_rows_are_propagated_up_to_the_first_that_is_not_completed():
    queue = _queue(COMPLETED, COMPLETED, 0, COMPLETED, 0)
    assert _propagated(queue) == (2, 1 + 2)
    queue.batch.status[0, 2] = COMPLETED
    assert _propagated(queue) == (4, 1 + 2 + 3 + 4)
    assert queue.batch.first[:4].tolist() == [0, 1, 3, 6]


def test_nothing_is_propagated_while_another_thread_is_at_it():
    # Two that moved on at once could leave the head of one beside the matches of the other.
    queue = _queue(COMPLETED, COMPLETED)
    queue.batch.words[OUTPUT, LOCK] = 1
    assert _propagated(queue) == (0, 0)
    queue.batch.words[OUTPUT, LOCK] = 0
    assert _propagated(queue) == (2, 3)


def test_an_edge_stays_while_another_thread_moves_it():
    batch = _queue(COMPLETED, COMPLETED, COMPLETED).batch
    batch.indexed[0, 0] = 1
    batch.words[SIDES, LOCK] = 1
    advance_edge(batch, 0)
    assert batch.words[SIDES, EDGE] == 0
    batch.words[SIDES, LOCK] = 0
    for edge in (1, 2):
        batch.indexed[0, edge - 1] = 1
        advance_edge(batch, 0)
        assert batch.words[SIDES, EDGE] == edge
