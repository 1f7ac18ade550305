"""A window join that takes a batch at a time and gives the tuple-by-tuple answer.

Not from a paper: the batch is sorted once, and everything it touches is then touched in order. Each
side keeps few sorted runs of growing age and size; the new batch becomes one, and neighbours are
merged when the older is at most *ratio* times as large as the younger. The sorted probes walk each
run once, galloping. Positions carry the order of arrival, so every tuple sees exactly its window,
the earlier tuples of its own batch included.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from joins.found import Found
from joins.indexes.pim_tree.probe import Output
from joins.radix_sort import COUNTERS_MAX
from joins.window_join.batch_kernels import Scratch, join_batch, list_batch
from joins.window_join.rows import Rows
from joins.window_join.run_kernels import BLOCK, ENTRIES, GROUP, Stack, make_stack, stack_top
from joins.work import COUNTERS, MATCHES, Work

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
        self._stacks = [make_stack(0) for _ in range(1 if self_join else 2)]
        self._horizon = np.zeros(2, np.int64)
        self._scratch = _make_scratch(0, 0)

    def join(self, rows: Rows, *, enumerate: bool = False) -> Found:
        """Join the next arrivals; return a row of results for each of them, in the same order."""
        n = len(rows.side)
        count, fingerprint = np.zeros(n, np.int64), np.zeros(n, np.uint64)
        counters = np.zeros(len(COUNTERS), np.int64)
        self._make_room(rows)
        nothing, listed = np.empty(0, np.int64), np.zeros(1, np.int64)
        output = Output(count, fingerprint, nothing, listed)
        stacks = (self._stacks[0], self._stacks[-1])
        join_batch(
            *stacks,
            rows,
            self._horizon,
            self._ratio,
            self._self_join,
            self._scratch,
            output,
            counters,
        )
        counters[MATCHES] += count.sum()
        match_id = None
        if enumerate:
            # Probing twice is cheaper than growing a list per row.
            ends = np.cumsum(count) - count
            match_id = np.empty(int(count.sum()), np.int64)
            output = output._replace(match_id=match_id)
            scratch = np.zeros_like(counters)
            list_batch(*stacks, rows, self._scratch, output, ends, scratch)
        return Found(
            count=count,
            fingerprint=fingerprint,
            match_id=match_id,
            work=Work.from_counters(counters),
        )

    def __len__(self) -> int:
        return sum(int(s.runs[: s.held[0], ENTRIES].sum()) for s in self._stacks)

    @property
    def nbytes(self) -> int:
        """Bytes that the runs and the working memory occupy."""
        return sum(array.nbytes for part in (*self._stacks, self._scratch) for array in part)

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
        for side, stack in enumerate(self._stacks):
            needed = stack_top(stack) + n + BLOCK
            if needed > stack.keys.shape[1]:
                grown = make_stack(needed + needed // 2)
                for name, array in stack._asdict().items():
                    target = getattr(grown, name)
                    if array.ndim == 1:
                        target[:] = array
                    else:
                        target[: array.shape[0], : array.shape[1]] = array
                self._stacks[side] = grown
        spare = max(stack.keys.shape[1] for stack in self._stacks)
        if n >= len(self._scratch.ends) or spare > len(self._scratch.spare_keys):
            self._scratch = _make_scratch(max(n, len(self._scratch.ends)), spare)


def _make_scratch(rows: int, spare: int) -> Scratch:
    def column(length: int) -> np.ndarray:
        return np.empty(length, np.int64)

    longest = max(rows + 1, spare)
    return Scratch(
        keys=column(rows + 1),
        rows=column(rows + 1),
        spare_keys=column(longest),
        spare_rows=column(longest),
        ends=column(rows + 1),
        start=column(rows + 1),
        stop=column(rows + 1),
        matches=column(rows + 1),
        fingerprint=np.empty(rows + 1, np.uint64),
        order=np.empty((2, rows + 1), np.int64),
        digits=column(COUNTERS_MAX),
        places=column(GROUP),
    )
