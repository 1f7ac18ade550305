"""Results of a shared queue in arrival order; they and edges are moved by one thread at a time."""

from types import SimpleNamespace

import numpy as np

from joins.matches import MatchList
from joins.window_join.shared_batch import (
    COMPLETED,
    EDGE,
    HEAD,
    LOCK,
    OUTPUT,
    SIDES,
    TOTAL,
    advance_edge,
    lay_out,
    make_batch,
    make_words,
    propagate,
)
from scenarios.calibration.window_workload import band_join


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
