"""What the threads of a live join share (PIM-Tree, section 4.1)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.machine.memory import LINE

QUEUE, GATE, RUNNING, OUTPUT, MERGER, SIDES = range(6)
"""Rows of `Live.words`, two cache lines each: the work queue; the gate before it, closed where no
task may be assigned; how many threads have a task; the output stream; whether a thread merges; and
from `SIDES` on one row a side."""
LOCK, HEAD, TOTAL = 0, 1, 2
"""Queue: its lock and the first row that is available. Output: its lock, the first row that has not
been propagated, and the matches that have."""
EDGE, PHASE = 1, LINE
"""A side: its edge lock (`LOCK`), the position of its edge tuple, and what a merge does to it. That
has a line of its own, for it is read with every tuple and seldom changes."""
NO_MERGE, BUILDING, PENDING = 0, 1, 2
"""Phases: none; a new tree is built and nothing is indexed; pending updates are applied."""
WORDS = 2 * LINE

AVAILABLE, ACTIVE, COMPLETED = 0, 1, 2
"""What a row of the work queue is."""


class Live(NamedTuple):
    """Shared arrays, int64; the rows are those of one batch.

    Attributes
    ----------
    words
        See `QUEUE`.
    status
        Shape (1, rows): available, active or completed.
    keys, indexed
        Shape (sides, rows): by position, counted from the batch's first, the key and whether it is
        in the index. This is the part of the sliding windows that is not surely indexed.
    base
        Per side the position of the batch's first tuple.
    arrived
        Shape (sides, rows + 1): the end of a side's positions before each row.
    seen
        Shape (sides, rows + 1): the least position that a row or any later one sees.
    place
        Shape (2, rows): which thread has a row's matches, and where in its list they begin.
    first
        Per row where its matches begin in the output stream.
    """

    words: np.ndarray
    status: np.ndarray
    keys: np.ndarray
    indexed: np.ndarray
    base: np.ndarray
    arrived: np.ndarray
    seen: np.ndarray
    place: np.ndarray
    first: np.ndarray


class Setting(NamedTuple):
    """What stays the same during a batch.

    Attributes
    ----------
    task_rows
        Task size.
    slack
        Tuples that a side may have beyond its edge tuple, and its active tree beyond the limit.
    merge_ratio, insertion_depth
        m and D_I.
    nonblocking, self_join, enumerating
        Flags.
    pauses
        A thread pauses at a lock in one of so many cases, at random; 0 for never. For tests.
    """

    task_rows: int
    slack: int
    merge_ratio: float
    insertion_depth: int
    nonblocking: bool
    self_join: bool
    enumerating: bool
    pauses: int


class Worker(NamedTuple):
    """What a thread has for itself, int64.

    Attributes
    ----------
    task
        The rows of its task that are left: the next and the end. Equal when it has no task.
    random
        State of its pauses, one number.
    places
        See `joins.indexes.pim_tree.lookahead`.
    """

    task: np.ndarray
    random: np.ndarray
    places: np.ndarray
