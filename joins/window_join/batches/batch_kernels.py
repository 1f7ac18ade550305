"""One batch of arrivals against sorted runs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.machine.compiling import inlined, kernel
from joins.radix_sort import sort_rows
from joins.window_join.batches.run_kernels import Upper, store
from joins.window_join.batches.run_probe import (
    BLOCK,
    HIGH,
    LOW,
    ROW,
    WINDOW,
    Block,
    count_block,
    find_chunks,
    list_block,
)
from joins.window_join.batches.run_stacks import (
    BASE,
    HALF,
    HORIZON,
    PLACES_MOST,
    Stacks,
    is_narrow,
    least_word,
    stored_key,
)
from joins.window_join.rows import Rows
from joins.work import COMPARISONS, INSERTS


class Scratch(NamedTuple):
    """Working memory for a batch; a side's tuples are numbered as they arrive.

    Attributes
    ----------
    keys, order
        Shape (2, as long as a batch): the key of each tuple, and the tuples in the order in which
        they probe.
    asked
        Shape (2, as long as a batch, 4): what each tuple asks for, see `LOW`.
    ordered, words, spare, digits
        As long as a batch, but `COUNTERS_MAX` digits: for sorting.
    upper
        As long as all runs of a side together.
    block
        The probes at work.
    """

    keys: np.ndarray
    order: np.ndarray
    asked: np.ndarray
    ordered: np.ndarray
    words: np.ndarray
    spare: np.ndarray
    digits: np.ndarray
    upper: Upper
    block: Block


@kernel
def join_batch(
    stacks: Stacks,
    rows: Rows,
    ratio: int,
    spread: float,
    scratch: Scratch,
    count: np.ndarray,
    fingerprint: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Store a batch, then count its matches.

    A row sees its predecessors in the batch and nothing after it, because *stop* says so.
    """
    tuples = _split(stacks, rows, scratch)
    for side in range(2):
        if tuples[side]:
            first = scratch.asked[side, 0, ROW]
            stacks.state[_probed(stacks, side), HORIZON] = rows.start[first]
    for side in range(2):
        if tuples[side]:
            _store(stacks, side, tuples[side], rows, ratio, spread, scratch, counters)
    for side in range(2):
        _put_in_order(scratch, side, tuples[side], counters)
        for begin in range(0, tuples[side], BLOCK):
            probes = _fill_in(scratch, side, begin, tuples[side])
            probed, asked, block = _probed(stacks, side), scratch.asked[side], scratch.block
            find_chunks(stacks, probed, block, probes, counters)
            count_block(stacks, probed, asked, block, probes, count, fingerprint, counters)


@kernel
def list_batch(
    stacks: Stacks,
    rows: Rows,
    scratch: Scratch,
    match_id: np.ndarray,
    begins: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Write the matches of the batch stored last, those of row i from ``begins[i]`` on."""
    tuples = _split(stacks, rows, scratch)
    for side in range(2):
        _put_in_order(scratch, side, tuples[side], counters)
        for begin in range(0, tuples[side], BLOCK):
            probes = _fill_in(scratch, side, begin, tuples[side])
            probed, asked, block = _probed(stacks, side), scratch.asked[side], scratch.block
            find_chunks(stacks, probed, block, probes, counters)
            list_block(stacks, probed, asked, block, probes, match_id, begins)


@inlined
def _probed(stacks: Stacks, side: int) -> int:
    """Return the side that is probed by tuples of *side*."""
    return 1 - side if len(stacks.state) == 2 else 0


@kernel
def _split(stacks: Stacks, rows: Rows, scratch: Scratch) -> tuple[np.int64, np.int64]:
    """Part a batch by sides, and write down what each tuple asks for.

    Return how many tuples each side has.
    """
    first = last = np.uint64(0)
    for row in range(np.uint64(len(rows.side))):
        side = np.uint64(rows.side[row])
        number = last if side else first
        base = stacks.state[_probed(stacks, side), BASE]
        start = min(max(rows.start[row] - base, 0), PLACES_MOST)
        stop = min(max(rows.stop[row] - base, start), PLACES_MOST)
        asked = scratch.asked
        asked[side, number, LOW] = stored_key(stacks, rows.low[row])
        asked[side, number, HIGH] = stored_key(stacks, rows.high[row])
        asked[side, number, WINDOW] = start << HALF | stop
        asked[side, number, ROW] = row
        scratch.keys[side, number] = rows.key[row]
        last += side
        first += np.uint64(1) - side
    return np.int64(first), np.int64(last)


@kernel
def _store(
    stacks: Stacks,
    side: int,
    n: int,
    rows: Rows,
    ratio: int,
    spread: float,
    scratch: Scratch,
    counters: np.ndarray,
) -> None:
    """Sort the *n* tuples of one side of a batch and store them as a run."""
    order, upper = scratch.order[side], scratch.upper
    _sort(scratch, side, n, counters)
    oldest = rows.position[scratch.asked[side, 0, ROW]]
    place = oldest - stacks.state[side, BASE]
    for i in range(np.uint64(n)):
        upper.words[0, i] = least_word(stacks, scratch.ordered[i])
    if is_narrow(stacks):
        for i in range(np.uint64(n)):
            upper.words[0, i] |= place + order[i]
    else:
        for i in range(np.uint64(n)):
            upper.places[0, i] = place + order[i]
    counters[INSERTS] += n
    store(stacks, side, upper, n, oldest, ratio, spread, counters)


@kernel
def _sort(scratch: Scratch, side: int, n: int, counters: np.ndarray) -> None:
    """Find the order of a side's ``scratch.keys``; ``scratch.ordered`` holds them in it."""
    sort_rows(
        scratch.keys[side],
        scratch.ordered,
        scratch.order[side],
        scratch.words,
        scratch.spare,
        n,
        scratch.digits,
        counters,
    )


@kernel
def _put_in_order(scratch: Scratch, side: int, n: int, counters: np.ndarray) -> None:
    """Put the *n* tuples of a side in the order of their ranges.

    Where that is the order of their keys, as in a band join, it is known already. A glance at the
    first tuples is enough to tell: the answer does not depend on the order, only the speed does.
    """
    asked, order = scratch.asked[side], scratch.order[side]
    glance = min(n, BLOCK)
    for i in range(1, glance):
        if asked[order[i - 1], LOW] > asked[order[i], LOW]:
            for number in range(n):
                scratch.keys[side, number] = asked[number, LOW]
            _sort(scratch, side, n, counters)
            break
    counters[COMPARISONS] += glance


@kernel
def _fill_in(scratch: Scratch, side: int, begin: int, n: int) -> int:
    """Fill in a block of the *n* tuples of a side, from the one at *begin* on; return its size."""
    order, block = scratch.order[side], scratch.block
    probes = min(BLOCK, n - begin)
    for i in range(np.uint64(probes)):
        number = np.uint64(order[np.uint64(begin) + i])
        block.number[i], block.low[i] = number, scratch.asked[side, number, LOW]
    return probes
