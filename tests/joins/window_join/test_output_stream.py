"""Results of a shared queue in arrival order; they and edges are moved by one thread at a time."""

from types import SimpleNamespace

import numpy as np

from joins.indexes.pim_tree.pim_tree import PimTree
from joins.matches import MatchList
from joins.window_join.live.merge import advance_edge
from joins.window_join.live.output_stream import propagate
from joins.window_join.live.shared_windows import SharedWindows
from joins.window_join.live.state import (
    ACTIVE,
    AVAILABLE,
    COMPLETED,
    EDGE,
    HEAD,
    LOCK,
    OUTPUT,
    SIDES,
    TOTAL,
)
from scenarios.calibration.window_joins import band_join


def _queue(*status):
    """Return a batch whose rows have that *status*, row i with i + 1 matches."""
    rows = band_join(np.arange(len(status)), 1, len(status))
    live = SharedWindows(PimTree(sides=2)).open(rows, 0)
    live.status[0] = status
    output = MatchList(len(status), enumerate=False).buffer
    output.matches[:] = np.arange(len(status)) + 1
    return SimpleNamespace(rows=rows, live=live, output=output)


def _propagated(queue):
    propagate(queue.rows, queue.live, queue.output)
    return queue.live.words[OUTPUT, HEAD], queue.live.words[OUTPUT, TOTAL]


def test_rows_are_propagated_up_to_the_first_that_is_not_completed():
    queue = _queue(COMPLETED, COMPLETED, ACTIVE, COMPLETED, AVAILABLE)
    assert _propagated(queue) == (2, 1 + 2)
    queue.live.status[0, 2] = COMPLETED
    assert _propagated(queue) == (4, 1 + 2 + 3 + 4)
    assert queue.live.first[:4].tolist() == [0, 1, 3, 6]


def test_nothing_is_propagated_while_another_thread_is_at_it():
    # Two that moved on at once could leave the head of one beside the matches of the other.
    queue = _queue(COMPLETED, COMPLETED)
    queue.live.words[OUTPUT, LOCK] = 1
    assert _propagated(queue) == (0, 0)
    queue.live.words[OUTPUT, LOCK] = 0
    assert _propagated(queue) == (2, 3)


def test_an_edge_stays_while_another_thread_moves_it():
    live = _queue(COMPLETED, COMPLETED, COMPLETED).live
    live.indexed[0, 0] = 1
    live.words[SIDES, LOCK] = 1
    advance_edge(live, 0)
    assert live.words[SIDES, EDGE] == 0
    live.words[SIDES, LOCK] = 0
    for edge in (1, 2):
        live.indexed[0, edge - 1] = 1
        advance_edge(live, 0)
        assert live.words[SIDES, EDGE] == edge
