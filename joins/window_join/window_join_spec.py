"""The indexes of the window join, and which of them several threads can share.

To add one, write its file, and enter here its name and how it is made. Whatever runs it then takes
it: the topology `ibwj` (``--set index=NAME``), the machine, and the tests that every index has to
pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, get_args

from annotated_types import Interval

from joins.indexes.pim_tree.b_chain import TreeChain
from joins.indexes.pim_tree.pim_tree import (
    INSERTION_DEPTH,
    MERGE_RATIO,
    SHARED_MERGE_RATIO,
    THREADS_MERGE_RATIO,
    PimTree,
)
from joins.window_join.b_plus_join import BPlusTreeJoin
from joins.window_join.forest_join import ForestJoin
from joins.window_join.nested_loop_join import NestedLoopJoin
from joins.window_join.shared_bw_tree import BwTreeWindows
from joins.window_join.shared_join import (
    CORE_TASK_ROWS,
    THREAD_TASK_ROWS,
    CoresJoin,
    SharedIndex,
    ThreadsJoin,
)
from joins.window_join.shared_pim_tree import PimTreeWindows
from joins.window_join.sorted_runs.join import SortedRunsJoin
from joins.window_join.window_join import LOOKUP_ROWS, WindowJoin
from joins.work import structure_name

IndexName = Literal[
    "pim_tree",
    "im_tree",
    "b_plus_tree",
    "bw_tree",
    "ib_chain",
    "b_chain",
    "nested_loop",
    "sorted_runs",
]

INDEXES: tuple[IndexName, ...] = get_args(IndexName)
SHARED: tuple[IndexName, ...] = ("pim_tree", "im_tree", "bw_tree")
"""Indexes that several threads can share."""


@dataclass(frozen=True, kw_only=True)
class WindowJoinSpec:
    """Which window join to make.

    Attributes
    ----------
    index
        What the windows are indexed by; ``nested_loop`` goes without and compares everything.
        ``sorted_runs``, not from the paper, joins a batch at a time. A class that derives from
        `joins.window_join.window_join.WindowJoin`, and is made from ``self_join=``, is taken too.
    threads
        Threads that share the index, which must then be a PIM-Tree, an IM-Tree or a Bw-Tree; 0 is
        one thread without concurrency control.
    cores
        Simulated cores that the threads run on; None gives each its own. Live ones have the
        machine's.
    task_rows
        Tuples that a thread takes at a time; None is 8 for simulated cores, as in the paper, and 64
        for threads that are real: live, and inside Spark.
    merge
        Whether the other threads go on or wait while one merges.
    merge_ratio
        m, the part of the window that is inserted into a PIM-Tree or IM-Tree between two merges;
        None is an eighth for one thread. Of threads that share the index it is all of it on
        simulated cores, as in the paper, and a quarter where they are real.
    insertion_depth
        D_I, the depth of the PIM-Tree's subindexes; one that is deeper than the tree stands for
        the deepest level.
    chain_length
        Trees of a chain.
    lookup_rows
        Tuples whose leaves one thread without concurrency control looks up together, in trees that
        are searched tuple by tuple, before it joins the first of them; 1 looks them up one after
        the other. It changes real time: what work is counted hardly depends on it.
    """

    index: IndexName | type[WindowJoin] = "pim_tree"
    threads: Annotated[int, Interval(ge=0, le=1000)] = 0
    cores: Annotated[int, Interval(ge=1, le=10_000)] | None = None
    task_rows: Annotated[int, Interval(ge=1, le=1_000_000)] | None = None
    merge: Literal["nonblocking", "blocking"] = "nonblocking"
    merge_ratio: Annotated[float, Interval(gt=0, le=1)] | None = None
    insertion_depth: Annotated[int, Interval(ge=0, le=1000)] = INSERTION_DEPTH
    chain_length: Annotated[int, Interval(ge=2, le=1000)] = 2
    lookup_rows: Annotated[int, Interval(ge=1, le=LOOKUP_ROWS)] = LOOKUP_ROWS

    @property
    def index_name(self) -> str:
        """What the index is called: its name here, or that of the caller's class."""
        return structure_name(self.index)

    @property
    def ratio(self) -> float:
        """The merge ratio of one thread and of simulated cores, set or usual."""
        usual = SHARED_MERGE_RATIO if self.threads else MERGE_RATIO
        return usual if self.merge_ratio is None else self.merge_ratio

    @property
    def depth(self) -> int:
        """The insertion depth of a PIM-Tree; an IM-Tree is one of depth 0."""
        return self.insertion_depth if self.index == "pim_tree" else 0

    def make(self, *, self_join: bool, unit_ps: Sequence[int] | None) -> WindowJoin:
        """Return the join, nothing in its windows.

        Several threads run on simulated cores, on which a unit of each counter of work takes
        *unit_ps*; where that is None they are real.

        Raise :exc:`ValueError` when threads cannot share the index.
        """
        if not self.threads:
            return self._for_one_thread(self_join=self_join)
        if self.index not in SHARED:
            raise ValueError(
                f"index {self.index_name} cannot be shared by threads; these can: {SHARED}"
            )
        sides = 1 if self_join else 2
        if unit_ps is None:
            ratio = self.merge_ratio or THREADS_MERGE_RATIO
            windows = replace(self, merge_ratio=ratio)._to_share(sides)
            task_rows = self.task_rows or THREAD_TASK_ROWS
            return ThreadsJoin(windows, threads=self.threads, task_rows=task_rows)
        return CoresJoin(
            self._to_share(sides),
            unit_ps=unit_ps,
            threads=self.threads,
            cores=self.cores,
            task_rows=self.task_rows or CORE_TASK_ROWS,
        )

    def _for_one_thread(self, *, self_join: bool) -> WindowJoin:
        sides = 1 if self_join else 2
        match self.index:
            case "pim_tree" | "im_tree":
                return ForestJoin(self._pim_tree(sides), lookup_rows=self.lookup_rows)
            case "b_chain" | "ib_chain":
                immutable = self.index == "ib_chain"
                chain = TreeChain(sides=sides, length=self.chain_length, immutable=immutable)
                return ForestJoin(chain, lookup_rows=self.lookup_rows)
            case "b_plus_tree":
                return BPlusTreeJoin(self_join=self_join, lookup_rows=self.lookup_rows)
            case "bw_tree":
                return ThreadsJoin(BwTreeWindows(sides, workers=1), threads=1)
            case "nested_loop":
                return NestedLoopJoin(self_join=self_join)
            case "sorted_runs":
                return SortedRunsJoin(self_join=self_join)
        own: Any = self.index
        join: WindowJoin = own(self_join=self_join)
        return join

    def _to_share(self, sides: int) -> SharedIndex:
        """Return the index that several threads share."""
        if self.index == "bw_tree":
            return BwTreeWindows(sides, workers=self.threads)
        return PimTreeWindows(self._pim_tree(sides), nonblocking=self.merge == "nonblocking")

    def _pim_tree(self, sides: int) -> PimTree:
        return PimTree(sides=sides, merge_ratio=self.ratio, insertion_depth=self.depth)
