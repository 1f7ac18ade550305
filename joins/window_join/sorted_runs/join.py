"""A window join that takes a batch at a time and returns the tuple-by-tuple answer.

Not from a paper: the batch is sorted once, and everything it touches is then touched in order. Each
side has few sorted runs of growing age and size; the new batch becomes one, and neighbours are
merged when the older is at most *ratio* times as large as the younger. Positions carry the order of
arrival, so every tuple sees exactly its window, the earlier tuples of its own batch included.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.indexes.index import check_least
from joins.machine.compiling import kernel
from joins.machine.lanes import LANES
from joins.machine.memory import aligned
from joins.matches import ProbeResult
from joins.radix_sort import DIGIT_VALUES, sort_rows
from joins.state import State
from joins.window_join.rows import KernelRows, probed_side
from joins.window_join.sorted_runs.probe import (
    BLOCK,
    REQUEST,
    Block,
    count_block,
    find_chunks,
    list_block,
    make_block,
)
from joins.window_join.sorted_runs.stacks import (
    CHUNK,
    HALF,
    KEYS_MOST,
    PLACES_MOST,
    Stacks,
    UpperRun,
    is_narrow,
    least_word,
    make_stacks,
    move_base,
    stack_top,
    store_run,
    stored_key,
    with_room,
)
from joins.window_join.window_join import WindowJoin
from joins.work import COMPARISONS, INSERTS, NO_WORK, Work, new_counters

RATIO = 5
"""More runs make probing dearer, fewer make merging dearer; see benchmarks/pim_tree.py."""


class BatchScratch(NamedTuple):
    """Working memory for a batch; a side's tuples are numbered as they arrive."""

    keys: np.ndarray
    order: np.ndarray
    """Shape (2, as long as a batch): the key of each tuple, and the tuples in the order in which
    they probe."""
    requests: np.ndarray
    """Shape (2, as long as a batch): what each tuple asks for, see `REQUEST`."""
    ordered: np.ndarray
    words: np.ndarray
    spare: np.ndarray
    digits: np.ndarray
    """As long as a batch, but `DIGIT_VALUES` digits: for sorting."""
    upper: UpperRun
    """As long as all runs of a side together."""
    block: Block
    """The probes at work."""


class SortedRunsJoin(WindowJoin):
    """Joins batches of arrivals by way of sorted runs.

    Parameters
    ----------
    self_join
        Whether the one stream is joined with itself.
    ratio
        An older run that has at most so many times the entries of the younger is merged with it;
        at least 2, so that there are never more than `RUNS_MAX`.
    """

    state = ("_stacks",)

    def __init__(self, *, self_join: bool = False, ratio: int = RATIO) -> None:
        check_least(2, ratio=ratio)
        self._ratio = ratio
        self._stacks = make_stacks(1 if self_join else 2, 0, narrow=True)
        self._make_scratch(0)

    def join(self, rows: KernelRows, *, enumerate: bool = False) -> ProbeResult:
        """Join the next arrivals; return a row of results for each of them, in the same order."""
        n = len(rows.side)
        count, fingerprint = np.empty(n, np.int64), np.empty(n, np.uint64)
        counters = new_counters()
        self._make_room(rows)
        stacks, scratch = self._stacks, self._scratch
        tuples = _join_batch(stacks, rows, self._ratio, scratch, count, fingerprint, counters)
        match_id = None
        if enumerate:
            # Probing twice is cheaper than growing a list per row.
            match_id = np.empty(int(count.sum()), np.int64)
            begins, again = np.cumsum(count) - count, np.zeros_like(counters)
            _list_batch(stacks, scratch, tuples, match_id, begins, again)
        return ProbeResult(
            count=count,
            fingerprint=fingerprint,
            match_id=match_id,
            work=Work.from_counters(counters),
        )

    def expire(self, side: int, before: int) -> Work:
        """Mark a side's positions below *before* as expired; the next merge of runs drops them."""
        horizon = self._stacks.horizon
        horizon[side] = max(horizon[side], before)
        return NO_WORK

    def __len__(self) -> int:
        stacks = self._stacks
        return sum(
            int(entries[:runs].sum())
            for entries, runs in zip(stacks.entries, stacks.runs, strict=True)
        )

    def restore(self, state: State) -> None:
        """Go back to a state that `snapshot` returned."""
        super().restore(state)
        self._make_scratch(0)

    def _make_room(self, rows: KernelRows) -> None:
        n = len(rows.side)
        if not n:
            return
        top, fit, last = _extent(self._stacks, rows.key, rows.position)
        needed = top + n + 2 * CHUNK
        if not fit or needed > self._stacks.words.shape[1]:
            narrow = fit and is_narrow(self._stacks)
            self._stacks = with_room(self._stacks, needed + needed // 2, narrow=narrow)
            self._make_scratch(self._scratch.keys.shape[1])
        for side, base in enumerate(self._stacks.base.tolist()):
            if last - base >= PLACES_MOST:
                self._make_places(side, rows.position[rows.side == side])
        if n > self._scratch.keys.shape[1]:
            self._make_scratch(n)

    def _make_places(self, side: int, positions: np.ndarray) -> None:
        """Move the base of a side if its *positions* have no places."""
        stacks = self._stacks
        if not len(positions) or positions[-1] - stacks.base[side] < PLACES_MOST:
            return
        if stacks.runs[side]:
            move_base(stacks, side)
        else:
            stacks.base[side] = positions[0]

    def _make_scratch(self, n: int) -> None:
        """Make working memory for batches of *n* rows and for the runs that there is room for.

        On huge pages where it is large: most of it is read in another order than it was written.
        """
        room, places = self._stacks.words.shape[1], self._stacks.places.shape[1]
        self._scratch = BatchScratch(
            keys=aligned((2, n)),
            order=aligned((2, n)),
            requests=aligned((2, n * REQUEST.itemsize // 8)).view(REQUEST),
            ordered=aligned((n,)),
            words=aligned((n,), "uint64"),
            spare=aligned((n,), "uint64"),
            digits=aligned((DIGIT_VALUES,)),
            upper=UpperRun(aligned((1, room)), aligned((1, places), "int32"), aligned((1, LANES))),
            block=make_block(),
        )


@kernel
def _extent(stacks: Stacks, keys: np.ndarray, positions: np.ndarray) -> tuple[int, bool, int]:
    """Return where the highest stack ends, whether *keys* fit, and the greatest of *positions*."""
    top = 0
    for side in range(len(stacks.runs)):
        top = max(top, stack_top(stacks, side))
    least = greatest = keys[0]
    last = positions[0]
    for i in range(len(keys)):
        least, greatest = min(least, keys[i]), max(greatest, keys[i])
        last = max(last, positions[i])
    fit = not is_narrow(stacks) or (least > -KEYS_MOST and greatest < KEYS_MOST)
    return top, fit, last


@kernel
def _join_batch(
    stacks: Stacks,
    rows: KernelRows,
    ratio: int,
    scratch: BatchScratch,
    count: np.ndarray,
    fingerprint: np.ndarray,
    counters: np.ndarray,
) -> tuple[int, int]:
    """Store a batch, then count its matches; return each side's tuples.

    A row sees its predecessors in the batch and nothing after it, because of its *stop*.
    """
    tuples = _split(stacks, rows, scratch)
    for side in range(2):
        if tuples[side]:
            first = scratch.requests[side, 0].row
            stacks.horizon[probed_side(len(stacks.runs), side)] = rows.start[first]
    for side in range(2):
        if tuples[side]:
            _store(stacks, side, tuples[side], rows, ratio, scratch, counters)
    for side in range(2):
        _put_in_order(scratch, side, tuples[side], counters)
        requests, block = scratch.requests[side], scratch.block
        probed = probed_side(len(stacks.runs), side)
        for begin in range(0, tuples[side], BLOCK):
            probes = _fill_block(scratch, side, begin, tuples[side])
            find_chunks(stacks, probed, block, probes, counters)
            count_block(stacks, probed, requests, block, probes, count, fingerprint, counters)
    return tuples


@kernel
def _list_batch(
    stacks: Stacks,
    scratch: BatchScratch,
    tuples: tuple[int, int],
    match_id: np.ndarray,
    begins: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Write the matches of the batch counted last, those of row i from ``begins[i]`` on."""
    for side in range(2):
        requests, block = scratch.requests[side], scratch.block
        probed = probed_side(len(stacks.runs), side)
        for begin in range(0, tuples[side], BLOCK):
            probes = _fill_block(scratch, side, begin, tuples[side])
            find_chunks(stacks, probed, block, probes, counters)
            list_block(stacks, probed, requests, block, probes, match_id, begins)


@kernel
def _split(stacks: Stacks, rows: KernelRows, scratch: BatchScratch) -> tuple[int, int]:
    """Split a batch by side, compute each tuple's request, and return each side's tuples."""
    first = last = 0
    for row in range(len(rows.side)):
        side = rows.side[row]
        number = last if side else first
        base = stacks.base[probed_side(len(stacks.runs), side)]
        start = min(max(rows.start[row] - base, 0), PLACES_MOST)
        stop = min(max(rows.stop[row] - base, start), PLACES_MOST)
        request = scratch.requests[side, number]
        request.low = stored_key(stacks, rows.low[row])
        request.high = stored_key(stacks, rows.high[row])
        request.window = start << HALF | stop
        request.row = row
        scratch.keys[side, number] = rows.key[row]
        last += side
        first += 1 - side
    return first, last


@kernel
def _store(
    stacks: Stacks,
    side: int,
    n: int,
    rows: KernelRows,
    ratio: int,
    scratch: BatchScratch,
    counters: np.ndarray,
) -> None:
    """Sort the *n* tuples of one side of a batch and store them as a run."""
    order, upper = scratch.order[side], scratch.upper
    _sort(scratch, side, n, counters)
    oldest = rows.position[scratch.requests[side, 0].row]
    place = oldest - stacks.base[side]
    for i in range(n):
        upper.words[0, i] = least_word(stacks, scratch.ordered[i])
    if is_narrow(stacks):
        for i in range(n):
            upper.words[0, i] |= place + order[i]
    else:
        for i in range(n):
            upper.places[0, i] = place + order[i]
    counters[INSERTS] += n
    store_run(stacks, side, upper, n, oldest, ratio, counters)


@kernel
def _sort(scratch: BatchScratch, side: int, n: int, counters: np.ndarray) -> None:
    """Find the order of a side's ``scratch.keys``, and write them in it to ``scratch.ordered``."""
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
def _put_in_order(scratch: BatchScratch, side: int, n: int, counters: np.ndarray) -> None:
    """Put the *n* tuples of a side in the order of their ranges.

    Where that is the order of their keys, as in a band join, they are in it already. A glance at
    the first tuples is enough: the answer does not depend on the order, only the speed does.
    """
    requests, order = scratch.requests[side], scratch.order[side]
    glance = min(n, BLOCK)
    for i in range(1, glance):
        if requests[order[i - 1]].low > requests[order[i]].low:
            for number in range(n):
                scratch.keys[side, number] = requests[number].low
            _sort(scratch, side, n, counters)
            break
    counters[COMPARISONS] += glance


@kernel
def _fill_block(scratch: BatchScratch, side: int, begin: int, n: int) -> int:
    """Fill in a block of the *n* tuples of a side, from the one at *begin* on; return its size."""
    order, block = scratch.order[side], scratch.block
    probes = min(BLOCK, n - begin)
    for i in range(probes):
        number = order[begin + i]
        block.number[i], block.low[i] = number, scratch.requests[side, number].low
    return probes
