"""One batch of arrivals against sorted runs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.indexes.panjoin.answering import Output, Probes, Stored
from joins.indexes.panjoin.bi_sort_matches import Scratch as BlockScratch
from joins.indexes.panjoin.bi_sort_matches import probe_runs
from joins.machine import kernel
from joins.radix_sort import sort_rows
from joins.window_join.rows import Rows
from joins.window_join.run_kernels import (
    BASE,
    BEGIN,
    ENTRIES,
    HELD,
    OLDEST,
    PLACES_MOST,
    Stack,
    run_of,
    settle,
    stack_top,
)
from joins.work import COMPARISONS, INSERTS

LOW, HIGH, START, STOP = range(4)
"""Places in what a tuple asks for, see `Scratch.asked`."""


class Scratch(NamedTuple):
    """Working memory; a side's tuples are numbered as they arrive.

    Attributes
    ----------
    row, order
        Shape (sides, as long as a batch, and one more): the row of each tuple, and the tuples in
        the order of their keys.
    asked
        Shape (sides, as long as a batch, and one more, 4): range and window of each tuple, side by
        side, as they are read in the order of keys.
    keys, tuples, at, matches, fingerprint
        As long as a batch, and one more.
    spare_keys, spare_tuples
        As long as a batch, for sorting.
    upper_keys, upper_places
        As long as all runs of a side together, of the types that a stack has.
    digits
        `COUNTERS_MAX` numbers.
    """

    row: np.ndarray
    order: np.ndarray
    asked: np.ndarray
    keys: np.ndarray
    tuples: np.ndarray
    at: np.ndarray
    matches: np.ndarray
    fingerprint: np.ndarray
    spare_keys: np.ndarray
    spare_tuples: np.ndarray
    upper_keys: np.ndarray
    upper_places: np.ndarray
    digits: np.ndarray


class Asking(NamedTuple):
    """What a stack is probed with.

    Attributes
    ----------
    probes
        Columns that are filled in for each side in turn.
    columns
        Further fields, of which there are none.
    block
        Working memory for a block of probes.
    """

    probes: Probes
    columns: np.ndarray
    block: BlockScratch


@kernel
def join_batch(
    first: Stack,
    last: Stack,
    rows: Rows,
    horizon: np.ndarray,
    ratio: int,
    self_join: bool,
    scratch: Scratch,
    asking: Asking,
    count: np.ndarray,
    fingerprint: np.ndarray,
    match_id: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Store a batch, then count its matches.

    *first* and *last* are the stacks of the sides; of a self join the one stack, twice. A row sees
    its predecessors in the batch and nothing after it, because *stop* says so. *match_id* is empty.
    """
    for row in range(len(rows.side) - 1, -1, -1):
        probed = rows.side[row] if self_join else 1 - rows.side[row]
        horizon[probed] = rows.start[row]
    n = _store(first, rows, 0, ratio, horizon[0], scratch, counters)
    m = 0 if self_join else _store(last, rows, 1, ratio, horizon[1], scratch, counters)
    for side in range(2):
        stack, probes = (last, n) if side == 0 else (first, m)
        _probe(stack, side, probes, scratch, asking, match_id, count, counters)
        for i in range(probes):
            row = scratch.row[side, scratch.tuples[i]]
            count[row] = scratch.matches[i]
            fingerprint[row] = scratch.fingerprint[i]


@kernel
def list_batch(
    first: Stack,
    last: Stack,
    rows: Rows,
    scratch: Scratch,
    asking: Asking,
    match_id: np.ndarray,
    begins: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Write the matches of the batch stored last, those of row i from ``begins[i]`` on."""
    n = len(rows.side) - rows.side.sum()
    for side in range(2):
        stack, probes = (last, n) if side == 0 else (first, len(rows.side) - n)
        _probe(stack, side, probes, scratch, asking, match_id, begins, counters)


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
    asked = scratch.asked[side]
    n = 0
    for row in range(len(rows.side)):
        scratch.row[side, n] = row
        scratch.keys[n] = rows.key[row]
        scratch.tuples[n] = n
        asked[n, LOW], asked[n, HIGH] = rows.low[row], rows.high[row]
        asked[n, START], asked[n, STOP] = rows.start[row], rows.stop[row]
        n += rows.side[row] == side
    if n == 0:
        return 0
    oldest = rows.position[scratch.row[side, 0]]
    _sort(scratch, n, counters)
    begin = stack_top(stack)
    for i in range(n):
        stack.keys[begin + i] = scratch.keys[i]
        stack.places[begin + i] = oldest - stack.state[BASE] + scratch.tuples[i]
        scratch.order[side, i] = scratch.tuples[i]
    run = stack.state[HELD]
    stack.runs[run, BEGIN] = begin
    stack.runs[run, ENTRIES] = n
    stack.runs[run, OLDEST] = oldest
    stack.state[HELD] = run + 1
    counters[INSERTS] += n
    live = oldest + n - horizon
    settle(stack, ratio, horizon, live, scratch.upper_keys, scratch.upper_places, counters)
    return n


@kernel
def _sort(scratch: Scratch, n: int, counters: np.ndarray) -> None:
    sort_rows(
        scratch.keys,
        scratch.tuples,
        scratch.spare_keys,
        scratch.spare_tuples,
        n,
        scratch.digits,
        counters,
    )


@kernel
def _fill_in(scratch: Scratch, asking: Asking, side: int, n: int) -> int:
    """Fill in the probes of a side in the order of ``scratch.tuples``; count its descents."""
    asked, probes = scratch.asked[side], asking.probes
    descents = 0
    for i in range(n):
        number = scratch.tuples[i]
        probes.low[i], probes.high[i] = asked[number, LOW], asked[number, HIGH]
        probes.start[i], probes.stop[i] = asked[number, START], asked[number, STOP]
        descents += probes.low[max(i - 1, 0)] > probes.low[i]
    return descents


@kernel
def _probe(
    stack: Stack,
    side: int,
    n: int,
    scratch: Scratch,
    asking: Asking,
    match_id: np.ndarray,
    begins: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Probe a stack with the *n* tuples of one side, in the order of their lower ends.

    Where that is the order of their keys, as in a band join, it is known already. The matches are
    counted in *scratch*, or if *match_id* has room listed there from ``begins[row]`` on.
    """
    for i in range(n):
        scratch.tuples[i] = scratch.order[side, i]
    counters[COMPARISONS] += n
    if _fill_in(scratch, asking, side, n):
        for i in range(n):
            scratch.keys[i] = asking.probes.low[i]
        _sort(scratch, n, counters)
        _fill_in(scratch, asking, side, n)
    scratch.matches[:n] = 0
    scratch.fingerprint[:n] = 0
    if len(match_id):
        for i in range(n):
            scratch.at[i] = begins[scratch.row[side, scratch.tuples[i]]]
    output = Output(scratch.matches, scratch.fingerprint, scratch.at, match_id)
    stored = Stored(stack.state[BASE], PLACES_MOST, asking.columns)
    for run in range(stack.state[HELD]):
        view = run_of(stack, run)
        probe_runs(view, asking.block, asking.probes, stored, 0, n, output, counters)
