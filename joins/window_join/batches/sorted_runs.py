"""A window join that takes a batch at a time and gives the tuple-by-tuple answer.

Not from a paper: the batch is sorted once, and everything it touches is then touched in order. Each
side keeps few sorted runs of growing age and size; the new batch becomes one, and neighbours are
merged when the older is at most *ratio* times as large as the younger. Positions carry the order of
arrival, so every tuple sees exactly its window, the earlier tuples of its own batch included.
"""

from __future__ import annotations

import numpy as np

from joins.machine.compiling import kernel
from joins.machine.lanes import LANES
from joins.machine.memory import aligned
from joins.matches import ProbeResult
from joins.radix_sort import COUNTERS_MAX
from joins.state import State, Stateful
from joins.window_join.batches.batch_kernels import Scratch, join_batch, list_batch
from joins.window_join.batches.run_kernels import Upper
from joins.window_join.batches.run_probe import make_block
from joins.window_join.batches.run_stacks import (
    BASE,
    CHUNK,
    ENTRIES,
    HELD,
    KEYS_MOST,
    PLACES_MOST,
    Stacks,
    grown,
    is_narrow,
    make_stacks,
    move_base,
    stack_top,
)
from joins.window_join.rows import Rows
from joins.work import COUNTERS, Work

RATIO = 5
"""More runs make probing dearer, fewer make merging dearer; see benchmarks/pim_tree.py."""
SPREAD = 1.25
"""Entries per one that has not expired, at which all runs are merged: every entry read is a line of
memory, and windows of 2^20 tuples are about what the cache holds."""


@kernel
def _extent(stacks: Stacks, keys: np.ndarray, positions: np.ndarray) -> tuple[int, bool, int]:
    """Return where the highest stack ends, whether *keys* fit, and the greatest of *positions*."""
    top = 0
    for side in range(len(stacks.state)):
        top = max(top, stack_top(stacks, side))
    least = greatest = keys[0]
    last = positions[0]
    for i in range(np.uint64(len(keys))):
        least, greatest = min(least, keys[i]), max(greatest, keys[i])
        last = max(last, positions[i])
    fit = not is_narrow(stacks) or (least > -KEYS_MOST and greatest < KEYS_MOST)
    return top, fit, last


class SortedRunsJoin(Stateful):
    """Joins batches of arrivals by way of sorted runs.

    Parameters
    ----------
    self_join
        Whether the one stream is joined with itself.
    ratio
        An older run that has at most so many times the entries of the younger is merged with it.
    """

    state = ("_stacks",)

    def __init__(self, *, self_join: bool = False, ratio: int = RATIO) -> None:
        if ratio < 1:
            raise ValueError(f"ratio is {ratio}, must be at least 1")
        self._ratio = ratio
        self._self_join = self_join
        self._stacks = make_stacks(1 if self_join else 2, 0, narrow=True)
        self._make_scratch(0)

    def join(self, rows: Rows, *, enumerate: bool = False) -> ProbeResult:
        """Join the next arrivals; return a row of results for each of them, in the same order."""
        n = len(rows.side)
        count, fingerprint = np.empty(n, np.int64), np.empty(n, np.uint64)
        counters = np.zeros(len(COUNTERS), np.int64)
        self._make_room(rows)
        join_batch(
            self._stacks,
            rows,
            self._ratio,
            SPREAD,
            self._scratch,
            count,
            fingerprint,
            counters,
        )
        match_id = None
        if enumerate:
            # Probing twice is cheaper than growing a list per row.
            match_id = np.empty(int(count.sum()), np.int64)
            begins, again = np.cumsum(count) - count, np.zeros_like(counters)
            list_batch(self._stacks, rows, self._scratch, match_id, begins, again)
        return ProbeResult(
            count=count,
            fingerprint=fingerprint,
            match_id=match_id,
            work=Work.from_counters(counters),
        )

    def __len__(self) -> int:
        stacks = self._stacks
        return sum(
            int(runs[: state[HELD], ENTRIES].sum())
            for runs, state in zip(stacks.runs, stacks.state, strict=True)
        )

    @property
    def nbytes(self) -> int:
        """Bytes that the runs and the working memory occupy."""
        *columns, upper, block = self._scratch
        return sum(array.nbytes for part in (self._stacks, columns, upper, block) for array in part)

    def restore(self, state: State) -> None:
        """Go back to a state that `snapshot` returned."""
        super().restore(state)
        self._make_scratch(0)

    def _make_room(self, rows: Rows) -> None:
        n = len(rows.side)
        if not n:
            return
        top, fit, last = _extent(self._stacks, rows.key, rows.position)
        needed = top + n + 2 * CHUNK
        if not fit or needed > self._stacks.words.shape[1]:
            narrow = fit and is_narrow(self._stacks)
            self._stacks = grown(self._stacks, needed + needed // 2, narrow=narrow)
            self._make_scratch(self._scratch.keys.shape[1])
        for side, state in enumerate(self._stacks.state):
            if last - state[BASE] >= PLACES_MOST:
                self._make_places(side, rows.position[rows.side == side])
        if n > self._scratch.keys.shape[1]:
            self._make_scratch(n)

    def _make_places(self, side: int, positions: np.ndarray) -> None:
        """See to it that *positions* of a side have places."""
        state = self._stacks.state[side]
        if not len(positions) or positions[-1] - state[BASE] < PLACES_MOST:
            return
        if state[HELD]:
            move_base(self._stacks, side)
        else:
            state[BASE] = positions[0]

    def _make_scratch(self, n: int) -> None:
        """Make working memory for batches of *n* rows and for the runs that there is room for.

        On huge pages where it is large: most of it is read in another order than it was written.
        """
        room, places = self._stacks.words.shape[1], self._stacks.places.shape[1]
        self._scratch = Scratch(
            keys=aligned((2, n)),
            order=aligned((2, n)),
            asked=aligned((2, n, 4)),
            ordered=aligned((n,)),
            words=aligned((n,), "uint64"),
            spare=aligned((n,), "uint64"),
            digits=aligned((COUNTERS_MAX,)),
            upper=Upper(aligned((1, room)), aligned((1, places), "int32"), aligned((1, LANES))),
            block=make_block(),
        )
