"""One batch of arrivals against sorted runs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.indexes.pim_tree.probe import Output
from joins.machine import kernel
from joins.radix_sort import sort_rows
from joins.window_join.rows import Rows
from joins.window_join.run_kernels import (
    BEGIN,
    ENTRIES,
    OLDEST,
    Stack,
    probe_run_sorted,
    settle,
    stack_top,
)
from joins.work import COMPARISONS, INSERTS


class Scratch(NamedTuple):
    """Working memory.

    Attributes
    ----------
    keys, rows, ends, start, stop, matches, fingerprint
        As long as a batch, and one more.
    order
        Shape (sides, as long as a batch, and one more): a side's rows in the order of their keys.
    spare_keys, spare_rows
        As long as a batch, and as all runs of a side together.
    digits, places
        `COUNTERS_MAX` and `GROUP` numbers.
    """

    keys: np.ndarray
    rows: np.ndarray
    spare_keys: np.ndarray
    spare_rows: np.ndarray
    ends: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    matches: np.ndarray
    fingerprint: np.ndarray
    order: np.ndarray
    digits: np.ndarray
    places: np.ndarray


@kernel
def join_batch(
    first: Stack,
    last: Stack,
    rows: Rows,
    horizon: np.ndarray,
    ratio: int,
    self_join: bool,
    scratch: Scratch,
    output: Output,
    counters: np.ndarray,
) -> None:
    """Store a batch, then count its matches.

    *first* and *last* are the stacks of the sides; of a self join the one stack, twice. A row sees
    its predecessors in the batch and nothing after it, because *stop* says so.
    """
    for row in range(len(rows.side) - 1, -1, -1):
        probed = rows.side[row] if self_join else 1 - rows.side[row]
        horizon[probed] = rows.start[row]
    n = _store(first, rows, 0, ratio, horizon[0], scratch, counters)
    m = 0 if self_join else _store(last, rows, 1, ratio, horizon[1], scratch, counters)
    _probe(last, rows, 0, n, scratch, output, False, horizon, counters)
    _probe(first, rows, 1, m, scratch, output, False, horizon, counters)


@kernel
def list_batch(
    first: Stack,
    last: Stack,
    rows: Rows,
    scratch: Scratch,
    output: Output,
    ends: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Write the matches of the batch that was stored last, those of row i from ``ends[i]`` on."""
    n = len(rows.side) - rows.side.sum()
    _probe(last, rows, 0, n, scratch, output, True, ends, counters)
    _probe(first, rows, 1, len(rows.side) - n, scratch, output, True, ends, counters)


@kernel
def _store(
    stack: Stack,
    rows: Rows,
    side: int,
    ratio: int,
    horizon: int,
    scratch: Scratch,
    counters: np.ndarray,
) -> int:
    """Sort the tuples of one side of a batch, lay them on its stack as a run, and merge.

    Return how many they are.
    """
    n = 0
    for row in range(len(rows.side)):
        scratch.keys[n] = rows.key[row]
        scratch.rows[n] = row
        n += rows.side[row] == side
    if n == 0:
        return 0
    oldest, newest = rows.position[scratch.rows[0]], rows.position[scratch.rows[n - 1]]
    _sort(scratch, n, counters)
    begin = stack_top(stack)
    for i in range(n):
        stack.keys[0, begin + i] = scratch.keys[i]
        row = scratch.rows[i]
        stack.positions[0, begin + i] = rows.position[row]
        scratch.order[side, i] = row
    run = stack.held[0]
    stack.runs[run, BEGIN] = begin
    stack.runs[run, ENTRIES] = n
    stack.runs[run, OLDEST] = oldest
    stack.held[0] = run + 1
    counters[INSERTS] += n
    live = newest + 1 - horizon
    settle(stack, ratio, horizon, live, scratch.spare_keys, scratch.spare_rows, counters)
    return n


@kernel
def _sort(scratch: Scratch, n: int, counters: np.ndarray) -> None:
    sort_rows(
        scratch.keys,
        scratch.rows,
        scratch.spare_keys,
        scratch.spare_rows,
        n,
        scratch.digits,
        counters,
    )


@kernel
def _probe(
    stack: Stack,
    rows: Rows,
    side: int,
    n: int,
    scratch: Scratch,
    output: Output,
    listing: bool,
    ends: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Probe a stack with the *n* rows of one side, in the order of their lower ends.

    Where that is the order of their keys, as in a band join, it is known already.
    """
    if n == 0:
        return
    descents = 0
    for i in range(n):
        row = scratch.order[side, i]
        scratch.rows[i] = row
        scratch.keys[i] = rows.low[row]
        descents += scratch.keys[max(i - 1, 0)] > scratch.keys[i]
    counters[COMPARISONS] += n
    if descents:
        _sort(scratch, n, counters)
    # Brought into the order of the search once, not once per run.
    found = Output(scratch.matches, scratch.fingerprint, output.match_id, output.listed)
    for i in range(n):
        row = scratch.rows[i]
        scratch.ends[i] = rows.high[row]
        scratch.start[i] = rows.start[row]
        scratch.stop[i] = rows.stop[row]
        found.matches[i] = 0
        found.fingerprint[i] = 0
    for run in range(stack.held[0]):
        probe_run_sorted(
            stack,
            run,
            n,
            scratch.keys,
            scratch.ends,
            scratch.rows,
            scratch.start,
            scratch.stop,
            scratch.places,
            found,
            listing,
            ends,
            counters,
        )
    if not listing:
        for i in range(n):
            output.matches[scratch.rows[i]] = found.matches[i]
            output.fingerprint[scratch.rows[i]] = found.fingerprint[i]
