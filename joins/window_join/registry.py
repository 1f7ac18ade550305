"""The indexes of the window join, and which of them several threads can share.

To add one, write its file, and enter its name and its makers here. Whatever runs it then takes it:
the topology `ibwj` (``--set index=NAME``), the machine, and the tests that every index has to pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

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


@dataclass(frozen=True, kw_only=True)
class Making:
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
        alone, shared = INDEXES[self.index] if isinstance(self.index, str) else (_own, None)
        sides = 1 if self_join else 2
        if not self.threads:
            return alone(self, sides)
        if shared is None:
            raise ValueError(
                f"index {self.index_name} cannot be shared by threads; these can: {SHARED}"
            )
        if unit_ps is None:
            ratio = self.merge_ratio or THREADS_MERGE_RATIO
            windows = shared(replace(self, merge_ratio=ratio), sides)
            task_rows = self.task_rows or THREAD_TASK_ROWS
            return ThreadsJoin(windows, threads=self.threads, task_rows=task_rows)
        return CoresJoin(
            shared(self, sides),
            unit_ps=unit_ps,
            threads=self.threads,
            cores=self.cores,
            task_rows=self.task_rows or CORE_TASK_ROWS,
        )


def _own(making: Making, sides: int) -> WindowJoin:
    """Return a join of the caller's own class."""
    own: Any = making.index
    return own(self_join=sides == 1)


def _forest(making: Making, sides: int) -> PimTree:
    return PimTree(sides=sides, merge_ratio=making.ratio, insertion_depth=making.depth)


def _forest_join(making: Making, sides: int) -> WindowJoin:
    return ForestJoin(_forest(making, sides), lookup_rows=making.lookup_rows)


def _shared_forest(making: Making, sides: int) -> SharedIndex:
    return PimTreeWindows(_forest(making, sides), nonblocking=making.merge == "nonblocking")


def _chain(making: Making, sides: int) -> WindowJoin:
    immutable = making.index == "ib_chain"
    chain = TreeChain(sides=sides, length=making.chain_length, immutable=immutable)
    return ForestJoin(chain, lookup_rows=making.lookup_rows)


def _b_plus_tree(making: Making, sides: int) -> WindowJoin:
    return BPlusTreeJoin(self_join=sides == 1, lookup_rows=making.lookup_rows)


Alone = Callable[[Making, int], WindowJoin]
"""Makes the join of one thread, given what to make and the number of sides."""
Shared = Callable[[Making, int], SharedIndex]
"""Makes the index that several threads share."""

INDEXES: dict[IndexName, tuple[Alone, Shared | None]] = {
    "pim_tree": (_forest_join, _shared_forest),
    "im_tree": (_forest_join, _shared_forest),
    "b_plus_tree": (_b_plus_tree, None),
    "bw_tree": (
        lambda _, sides: ThreadsJoin(BwTreeWindows(sides, workers=1), threads=1),
        lambda making, sides: BwTreeWindows(sides, workers=making.threads),
    ),
    "ib_chain": (_chain, None),
    "b_chain": (_chain, None),
    "nested_loop": (lambda _, sides: NestedLoopJoin(self_join=sides == 1), None),
    "sorted_runs": (lambda _, sides: SortedRunsJoin(self_join=sides == 1), None),
}
"""Of each index how one thread joins over it, and how several share it where they can."""

SHARED = tuple(name for name, (_, shared) in INDEXES.items() if shared)
"""Indexes that several threads can share."""
