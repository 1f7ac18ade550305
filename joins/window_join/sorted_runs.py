"""A window join that takes a batch at a time and gives the tuple-by-tuple answer.

Not from a paper: the batch is sorted once, and everything it touches is then touched in order. Each
side keeps few sorted runs of growing age and size; the new batch becomes one, and neighbours are
merged when the older is at most *ratio* times as large as the younger. A run is merged
and probed by the kernels of a BI-Sort's main array. Positions carry the order of arrival, so every
tuple sees exactly its window, the earlier tuples of its own batch included.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from joins.found import Found
from joins.indexes.panjoin.answering import Probes
from joins.indexes.panjoin.bi_sort_matches import make_ranges
from joins.indexes.panjoin.bi_sort_runs import fits
from joins.radix_sort import COUNTERS_MAX
from joins.window_join.batch_kernels import Asking, Scratch, join_batch, list_batch
from joins.window_join.rows import Rows
from joins.window_join.run_kernels import (
    BASE,
    BLOCK,
    ENTRIES,
    HELD,
    PLACES_MOST,
    Stack,
    finish_run,
    make_stack,
    stack_top,
)
from joins.work import COUNTERS, Work

RATIO = 8
"""More runs make probing dearer, fewer make merging dearer; see benchmarks/pim_tree.py."""


class SortedRunsJoin:
    """Joins batches of arrivals by way of sorted runs.

    Parameters
    ----------
    self_join
        Whether the one stream is joined with itself.
    ratio
        An older run that has at most so many times the entries of the younger is merged with it.
    """

    def __init__(self, *, self_join: bool = False, ratio: int = RATIO) -> None:
        if ratio < 1:
            raise ValueError(f"ratio is {ratio}, must be at least 1")
        self._ratio = ratio
        self._self_join = self_join
        self._stacks = [make_stack(0, np.dtype(np.int32)) for _ in range(1 if self_join else 2)]
        self._horizon = np.zeros(2, np.int64)
        self._make_scratch(0, 0)

    def join(self, rows: Rows, *, enumerate: bool = False) -> Found:
        """Join the next arrivals; return a row of results for each of them, in the same order."""
        n = len(rows.side)
        count, fingerprint = np.zeros(n, np.int64), np.zeros(n, np.uint64)
        counters = np.zeros(len(COUNTERS), np.int64)
        self._make_room(rows)
        stacks = (self._stacks[0], self._stacks[-1])
        join_batch(
            *stacks,
            rows,
            self._horizon,
            self._ratio,
            self._self_join,
            self._scratch,
            self._asking,
            count,
            fingerprint,
            np.empty(0, np.int64),
            counters,
        )
        match_id = None
        if enumerate:
            # Probing twice is cheaper than growing a list per row.
            match_id = np.empty(int(count.sum()), np.int64)
            if len(match_id):
                begins = np.cumsum(count) - count
                again = np.zeros_like(counters)
                list_batch(*stacks, rows, self._scratch, self._asking, match_id, begins, again)
        return Found(
            count=count,
            fingerprint=fingerprint,
            match_id=match_id,
            work=Work.from_counters(counters),
        )

    def __len__(self) -> int:
        return sum(int(s.runs[: s.state[HELD], ENTRIES].sum()) for s in self._stacks)

    @property
    def nbytes(self) -> int:
        """Bytes that the runs and the working memory occupy."""
        parts = (*self._stacks, self._scratch, self._asking.probes, [self._asking.ranges])
        return sum(a.nbytes for part in parts for a in part if isinstance(a, np.ndarray))

    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain arrays and numbers."""
        return {
            "self_join": self._self_join,
            "ratio": self._ratio,
            "horizon": self._horizon.copy(),
            "stacks": [{k: v.copy() for k, v in s._asdict().items()} for s in self._stacks],
        }

    @classmethod
    def restore(cls, snapshot: dict[str, Any]) -> SortedRunsJoin:
        """Return the join that `snapshot` described."""
        join = cls(self_join=snapshot["self_join"], ratio=snapshot["ratio"])
        join._horizon[:] = snapshot["horizon"]
        join._stacks = [Stack(**{k: v.copy() for k, v in s.items()}) for s in snapshot["stacks"]]
        return join

    def _make_room(self, rows: Rows) -> None:
        n = len(rows.side)
        if not n:
            return
        dtype = self._stacks[0].keys.dtype
        if not fits(np.array([rows.key.min(), rows.key.max()]), dtype):
            dtype = np.dtype(np.int64)
        for side, stack in enumerate(self._stacks):
            needed = stack_top(stack) + n + 2 * BLOCK
            if needed > len(stack.keys) or dtype != stack.keys.dtype:
                grown = make_stack(needed + needed // 2, dtype)
                for name, array in stack._asdict().items():
                    getattr(grown, name)[: len(array)] = array
                self._stacks[side] = stack = grown
                for run in range(grown.state[HELD]):
                    finish_run(grown, run, np.zeros(len(COUNTERS), np.int64))
            if rows.position.max() - stack.state[BASE] > PLACES_MOST:
                self._move_base(side, rows.position[rows.side == side])
        spare = max(len(stack.keys) for stack in self._stacks)
        longest = len(self._scratch.ordered) - 1
        if n > longest or (spare, dtype) != (
            len(self._scratch.upper_keys),
            self._scratch.upper_keys.dtype,
        ):
            self._make_scratch(max(n, longest), spare)

    def _move_base(self, side: int, positions: np.ndarray) -> None:
        """Make room for *positions*: what has expired may end up below the base."""
        stack = self._stacks[side]
        base = self._horizon[side] if stack.state[HELD] else (positions[0] if len(positions) else 0)
        stack.places[:] = (stack.places - (base - stack.state[BASE])).astype(np.int32)
        stack.state[BASE] = base

    def _make_scratch(self, rows: int, spare: int) -> None:
        def column(*shape: int) -> np.ndarray:
            return np.empty(shape, np.int64)

        n, sides = rows + 1, 2
        self._scratch = Scratch(
            row=column(sides, n),
            keys=column(sides, n),
            order=column(sides, n),
            asked=column(sides, n, 4),
            tuples=column(n),
            at=column(n),
            matches=column(n),
            fingerprint=np.empty(n, np.uint64),
            ordered=column(n),
            ranks=column(n),
            words=np.empty(n, np.uint64),
            spare=np.empty(n, np.uint64),
            digits=column(COUNTERS_MAX),
            upper_keys=np.empty(spare, self._stacks[0].keys.dtype),
            upper_places=np.empty(spare, np.int32),
        )
        nothing = column(0, 0)
        unfiltered = np.empty(0, np.bool_)
        self._asking = Asking(
            Probes(column(n), column(n), False, column(n), column(n), nothing, nothing, unfiltered),
            nothing,
            make_ranges(),
        )
