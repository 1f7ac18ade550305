"""What each thread of a join over Bw-Trees does: take tuples, look up, insert, delete."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.indexes.bw_tree.pages import DELETED, INSERTED, Pages
from joins.indexes.bw_tree.search import probe_range
from joins.indexes.bw_tree.update import change, let_others_run
from joins.indexes.pim_tree.status import DONE, NO_OUTPUT
from joins.machine.atomics import compare_and_swap, fetch_add, load, store
from joins.machine.compiling import kernel
from joins.matches import MatchBuffer, begin_row, commit_row
from joins.window_join.live.kernels import scan_unindexed
from joins.window_join.live.merge import advance_edge
from joins.window_join.live.output_stream import propagate
from joins.window_join.live.state import COMPLETED, EDGE, HEAD, OUTPUT, QUEUE, SIDES, Live
from joins.window_join.rows import Rows
from joins.work import ATOMICS, MATCHES

EXPIRED = 2
"""A side's word beside its edge tuple: the position up to which threads have begun to delete."""


class Sharing(NamedTuple):
    """What the threads share beside rows, trees and queue.

    Attributes
    ----------
    keys
        The windows' keys, see `joins.window_join.window_keys`.
    tasks
        Per thread, in a cache line, the rows of its task that are left: the next and the end.
    task_rows
        Rows that a thread takes at a time.
    enumerating
        Whether matches must find room.
    """

    keys: np.ndarray
    tasks: np.ndarray
    task_rows: int
    enumerating: bool


@kernel
def work_on_batch(
    first: Pages,
    last: Pages,
    rows: Rows,
    live: Live,
    sharing: Sharing,
    thread: int,
    output: MatchBuffer,
    counters: np.ndarray,
) -> int:
    """Take tasks until there are none; `NO_OUTPUT` asks for room and to be called again.

    *first* and *last* are the sides' trees, or one tree twice.
    """
    task, n = sharing.tasks[thread], len(rows.side)
    while True:
        if task[0] == task[1]:
            let_others_run(first, thread)
            begin = fetch_add(live.words, QUEUE, HEAD, sharing.task_rows)
            counters[ATOMICS] += 1
            if begin >= n:
                return DONE
            task[0], task[1] = begin, min(begin + sharing.task_rows, n)
        while task[0] < task[1]:
            row = task[0]
            own, other = (last, first) if rows.side[row] else (first, last)
            if not look_up(other, rows, row, live, sharing, thread, output, counters):
                return NO_OUTPUT
            side, position = rows.side[row], rows.position[row]
            change(own, thread, INSERTED, rows.key[row], position, counters)
            let_others_run(own, thread)
            mark_indexed(live, side, position, counters)
            task[0] += 1
        propagate(rows, live, output)
        counters[ATOMICS] += 1
        for side in range(len(live.base)):
            advance_edge(live, side)
            counters[ATOMICS] += 1
            expire(last if side else first, live, sharing, side, thread, counters)


@kernel
def look_up(
    tree: Pages,
    rows: Rows,
    row: int,
    live: Live,
    sharing: Sharing,
    thread: int,
    output: MatchBuffer,
    counters: np.ndarray,
) -> bool:
    """Find a row's matches: before the edge tuple in the tree, from it on in the window.

    Tell whether there was room for them; if not, nothing is left of them.
    """
    low, high = rows.low[row], rows.high[row]
    probed = rows.side[row] if len(live.base) == 1 else 1 - rows.side[row]
    begin_row(output, counters)
    if low <= high:
        edge = load(live.words, SIDES + probed, EDGE)
        until = min(rows.stop[row], edge)
        let_others_run(tree, thread)
        probe_range(tree, low, high, rows.start[row], until, row, output, counters)
        scan_unindexed(live, rows, row, probed, edge, output, counters)
    if not commit_row(output, row, counters):
        return False
    counters[MATCHES] += output.matches[row]
    live.place[0, row] = thread
    live.place[1, row] = output.before + output.listed[0] - output.matches[row]
    store(live.status, 0, row, COMPLETED)
    return True


@kernel
def mark_indexed(live: Live, side: int, position: int, counters: np.ndarray) -> None:
    """Let it be known that a tuple is in its side's tree."""
    store(live.indexed, side, position - live.base[side], 1)
    counters[ATOMICS] += 2


@kernel
def expire(
    tree: Pages, live: Live, sharing: Sharing, side: int, thread: int, counters: np.ndarray
) -> None:
    """Delete what no row can see that has not been looked up yet, in turns with other threads."""
    while True:
        let_others_run(tree, thread)
        begin, end = claim_expired(live, sharing, side, counters)
        if begin == end:
            return
        for position in range(begin, end):
            key = key_of(sharing, side, position)
            change(tree, thread, DELETED, key, position, counters)


@kernel
def claim_expired(live: Live, sharing: Sharing, side: int, counters: np.ndarray) -> tuple[int, int]:
    """Return the positions, up to the second, that are the caller's to delete; equal if none."""
    while True:
        head = load(live.words, OUTPUT, HEAD)
        begin = load(live.words, SIDES + side, EXPIRED)
        end = min(live.seen[side, head], load(live.words, SIDES + side, EDGE))
        end = min(end, begin + sharing.task_rows)
        if begin >= end:
            return begin, begin
        counters[ATOMICS] += 1
        if compare_and_swap(live.words, SIDES + side, EXPIRED, begin, end):
            return begin, end


@kernel
def key_of(sharing: Sharing, side: int, position: int) -> int:
    """Return the key of a position of a side's window."""
    return sharing.keys[side, position & (sharing.keys.shape[1] - 1)]
