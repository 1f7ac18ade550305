"""One PE that stores whole windows in one structure: the baselines.

They differ in the structure alone (`joins.indexes.windows`)::

    source -> router -> joiner -> sink
"""

from __future__ import annotations

from typing import ClassVar

from topologies.topology import Job
from topologies.window_join import Layout, NoParameters, WindowJoin, at_one_pe


class SinglePe(WindowJoin[NoParameters]):
    """One PE, one index over each stream's whole window."""

    parameters_type = NoParameters
    index: ClassVar[str]
    """Key of `joins.indexes.windows.window_indexes.WINDOW_INDEXES`."""

    def lay_out(self, job: Job, parameters: NoParameters) -> Layout:
        """Return one PE."""
        return at_one_pe(self.index)


class NestedLoop(SinglePe):
    """The plainest window join: the PE compares every tuple with every one in its window.

    SPO-Join's section 5.4 and PIM-Tree's NLWJ measure against it. No structure is stored but the
    window itself, so that a tuple costs as many comparisons as it sees tuples.
    """

    name = "nested_loop"
    title = "Nested loop: one PE compares each tuple with its whole window"
    paper = "Evaluating Window Joins over Unbounded Streams (Kang, Naughton and Viglas, ICDE 2003)"
    index = "nested_loop"


class BPlusTreeJoin(SinglePe):
    """B+-trees over each stream's whole window: what SPO-Join calls the B+-tree join.

    It is PIM-Tree's index-based window join (section 2.2.1): every tuple is inserted, every expired
    one deleted, and a probe scans the leaves of a range.
    """

    name = "b_plus_tree"
    title = "B+-tree join: one PE indexes its whole window"
    paper = (
        "Parallel Index-based Stream Join on a Multicore CPU (Shahvarani and Jacobsen, SIGMOD "
        "2020), section 2.2.1"
    )
    index = "b_plus_tree"


class IeJoin(SinglePe):
    """Batch IE-Join, applied to a stream: the PE joins each batch of tuples with its whole window.

    IE-Join is made for data that stay as they are: it sorts all of it, relates the orders by
    permutation and offset arrays, and scans a bit array. On a stream the arrays are stale as soon
    as a tuple comes, so they are made anew for every batch; SPO-Join exists to avoid just that.
    """

    name = "ie_join"
    title = "IE-Join: one PE sorts its whole window anew for each batch"
    paper = "Fast and Scalable Inequality Joins (Khayyat et al., VLDB Journal 2017)"
    index = "ie_join"
