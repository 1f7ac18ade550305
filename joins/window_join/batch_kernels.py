"""One batch of arrivals against sorted runs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.indexes.panjoin.answering import Output, Probes, Stored
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
    row, keys, order
        Shape (sides, as long as a batch, and one more): the row and the key of each tuple, and the
        tuples in the order of their keys.
    asked
        Shape (sides, as long as a batch, and one more, 4): range and window of each tuple, side by
        side, as they are read in the order of keys.
    tuples, at, matches, fingerprint
        As long as a batch, and one more.
    ordered, ranks, words, spare, digits
        As long as a batch, and one more, but `COUNTERS_MAX` digits: for sorting.
    upper_keys, upper_places
        As long as all runs of a side together, of the types that a stack has.
    """

    row: np.ndarray
    keys: np.ndarray
    order: np.ndarray
    asked: np.ndarray
    tuples: np.ndarray
    at: np.ndarray
    matches: np.ndarray
    fingerprint: np.ndarray
    ordered: np.ndarray
    ranks: np.ndarray
    words: np.ndarray
    spare: np.ndarray
    digits: np.ndarray
    upper_keys: np.ndarray
    upper_places: np.ndarray


class Asking(NamedTuple):
    """What a stack is probed with.

    Attributes
    ----------
    probes
        Columns that are filled in for each side in turn.
    columns
        Further fields, of which there are none.
    ranges
        Working memory for a block of probes.
    """

    probes: Probes
    columns: np.ndarray
    ranges: np.ndarray


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
    tuples = _split(rows, scratch)
    for side in range(2):
        if tuples[side]:
            horizon[side if self_join else 1 - side] = scratch.asked[side, 0, START]
    for side in range(2):
        if tuples[side]:
            stack = last if side else first
            oldest = rows.position[scratch.row[side, 0]]
            _store(stack, side, tuples[side], oldest, ratio, horizon[side], scratch, counters)
    for side in range(2):
        stack = first if side else last
        _probe(stack, side, tuples[side], scratch, asking, match_id, count, counters)
        for i in range(np.uint64(tuples[side])):
            row = np.uint64(scratch.row[side, np.uint64(scratch.tuples[i])])
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
def _split(rows: Rows, scratch: Scratch) -> tuple[np.int64, np.int64]:
    """Part a batch by sides; return how many tuples each has."""
    first = last = np.uint64(0)
    for row in range(np.uint64(len(rows.side))):
        side = np.uint64(rows.side[row])
        number = last if side else first
        scratch.row[side, number] = row
        scratch.keys[side, number] = rows.key[row]
        scratch.asked[side, number, LOW] = rows.low[row]
        scratch.asked[side, number, HIGH] = rows.high[row]
        scratch.asked[side, number, START] = rows.start[row]
        scratch.asked[side, number, STOP] = rows.stop[row]
        last += side
        first += np.uint64(1) - side
    return np.int64(first), np.int64(last)


@kernel
def _store(
    stack: Stack,
    side: int,
    n: int,
    oldest: int,
    ratio: int,
    horizon: int,
    scratch: Scratch,
    counters: np.ndarray,
) -> None:
    """Sort the *n* tuples of one side of a batch, lay them on its stack as a run, and merge.

    *oldest* is the position of the first one.
    """
    order = scratch.order[side]
    _sort(scratch, side, n, order, counters)
    begin = stack_top(stack)
    to, place = np.uint64(begin), oldest - stack.state[BASE]
    for i in range(np.uint64(n)):
        stack.keys[to + i] = scratch.ordered[i]
        stack.places[to + i] = place + order[i]
    run = stack.state[HELD]
    stack.runs[run, BEGIN] = begin
    stack.runs[run, ENTRIES] = n
    stack.runs[run, OLDEST] = oldest
    stack.state[HELD] = run + 1
    counters[INSERTS] += n
    live = oldest + n - horizon
    settle(stack, ratio, horizon, live, scratch.upper_keys, scratch.upper_places, counters)


@kernel
def _sort(scratch: Scratch, side: int, n: int, order: np.ndarray, counters: np.ndarray) -> None:
    """Find the *order* of a side's ``scratch.keys``; ``scratch.ordered`` holds them in it."""
    sort_rows(
        scratch.keys[side],
        scratch.ordered,
        order,
        scratch.words,
        scratch.spare,
        n,
        scratch.digits,
        counters,
    )


@kernel
def _fill_in(scratch: Scratch, asking: Asking, side: int, n: int) -> int:
    """Fill in the probes of a side in the order of ``scratch.tuples``; count its descents."""
    asked, probes = scratch.asked[side], asking.probes
    descents = 0
    before = asked[scratch.tuples[0], LOW]
    for i in range(np.uint64(n)):
        number = np.uint64(scratch.tuples[i])
        low = asked[number, LOW]
        probes.low[i], probes.high[i] = low, asked[number, HIGH]
        probes.start[i], probes.stop[i] = asked[number, START], asked[number, STOP]
        descents += before > low
        before = low
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
    if n == 0:
        return
    for i in range(n):
        scratch.tuples[i] = scratch.order[side, i]
    counters[COMPARISONS] += n
    if _fill_in(scratch, asking, side, n):
        for i in range(n):
            scratch.keys[side, i] = asking.probes.low[i]
        _sort(scratch, side, n, scratch.ranks, counters)
        for i in range(n):
            scratch.tuples[i] = scratch.order[side, scratch.ranks[i]]
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
        probe_runs(view, asking.ranges, asking.probes, stored, 0, n, output, counters)
