"""The window joins of one machine, by the index that they look tuples up in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from joins.indexes.pim_tree.chain import Chain
from joins.indexes.pim_tree.pim_tree import INSERTION_DEPTH, MERGE_RATIO, ImTree, PimTree
from joins.matches import ProbeResult
from joins.window_join.b_plus import BPlusTreeJoin
from joins.window_join.cores.bw_tree import BwCoresJoin
from joins.window_join.cores.pim_tree import TASK_ROWS as SIMULATED_TASK_ROWS
from joins.window_join.cores.pim_tree import CoresJoin
from joins.window_join.ibwj import IndexJoin
from joins.window_join.live.bw_tree import BwTreeJoin
from joins.window_join.live.pim_tree import TASK_ROWS as REAL_TASK_ROWS
from joins.window_join.live.pim_tree import LiveJoin
from joins.window_join.nested_loop import NestedLoopJoin
from joins.window_join.rows import Rows

IndexName = Literal[
    "pim_tree", "im_tree", "b_plus_tree", "bw_tree", "ib_chain", "b_chain", "nested_loop"
]
SHARED: tuple[IndexName, ...] = ("pim_tree", "im_tree", "bw_tree")
"""Indexes that several threads can share."""


class Driver(Protocol):
    """Joins batches of arrivals, and can be put away and taken up again."""

    def join(self, rows: Rows, *, enumerate: bool = False) -> ProbeResult:
        """Join the next arrivals."""

    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain data."""

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""


@dataclass(frozen=True, kw_only=True)
class Making:
    """Which window join to make.

    Attributes
    ----------
    index
        Its index.
    merge_ratio
        m, of an IM-Tree or a PIM-Tree.
    insertion_depth
        D_I, of a PIM-Tree.
    chain_length
        L, of a chain.
    threads, cores, task_rows, nonblocking
        See `joins.window_join.cores.pim_tree`; with *threads* at 0 one works
        without any locks. *cores* are simulated ones. A *task_rows* of None
        is what suits them, or the threads where these are real.
    """

    index: IndexName = "pim_tree"
    merge_ratio: float = MERGE_RATIO
    insertion_depth: int = INSERTION_DEPTH
    chain_length: int = 2
    threads: int = 0
    cores: int | None = None
    task_rows: int | None = None
    nonblocking: bool = True

    def make(self, *, self_join: bool, unit_ps: Sequence[int] | None) -> Driver:
        """Return the join, nothing in its windows.

        Several threads run on simulated cores, on which a unit of each counter of work takes
        *unit_ps*; where that is None they are real.

        Raise :exc:`ValueError` when threads cannot share the index.
        """
        sides = 1 if self_join else 2
        task_rows = self.task_rows or (REAL_TASK_ROWS if unit_ps is None else SIMULATED_TASK_ROWS)
        if self.index == "nested_loop" and not self.threads:
            return NestedLoopJoin(self_join=self_join)
        if self.index == "b_plus_tree" and not self.threads:
            return BPlusTreeJoin(self_join=self_join)
        if self.index == "bw_tree":
            if not self.threads:
                return BwTreeJoin(self_join=self_join)
            if unit_ps is None:
                return BwTreeJoin(self_join=self_join, threads=self.threads, task_rows=task_rows)
            return BwCoresJoin(
                self_join=self_join,
                unit_ps=unit_ps,
                threads=self.threads,
                cores=self.cores,
                task_rows=task_rows,
            )
        if self.index in ("ib_chain", "b_chain") and not self.threads:
            immutable = self.index == "ib_chain"
            return IndexJoin(Chain(sides=sides, length=self.chain_length, immutable=immutable))
        if self.index not in SHARED:
            raise ValueError(f"index {self.index} cannot be shared by threads: {SHARED} can")
        index: PimTree = (
            ImTree(sides=sides, merge_ratio=self.merge_ratio)
            if self.index == "im_tree"
            else PimTree(
                sides=sides, merge_ratio=self.merge_ratio, insertion_depth=self.insertion_depth
            )
        )
        if not self.threads:
            return IndexJoin(index)
        if unit_ps is None:
            return LiveJoin(
                index,
                threads=self.threads,
                task_rows=task_rows,
                nonblocking=self.nonblocking,
            )
        return CoresJoin(
            index,
            unit_ps=unit_ps,
            threads=self.threads,
            cores=self.cores,
            task_rows=task_rows,
            nonblocking=self.nonblocking,
        )
