"""One PE with B+-trees over the whole window: what SPO-Join calls the B+-tree join.

It is PIM-Tree's index-based window join (section 2.2.1): every tuple is inserted, every expired one
deleted, and a probe scans the leaves of a range::

    source -> router -> joiner -> sink
"""

from __future__ import annotations

from topologies.topology import Job
from topologies.window_join import Layout, NoParameters, WindowJoin, at_one_pe


class BPlusTreeJoin(WindowJoin[NoParameters]):
    """One PE, B+-trees over each stream's whole window."""

    name = "b_plus_tree"
    title = "B+-tree join: one PE indexes its whole window"
    paper = (
        "Parallel Index-based Stream Join on a Multicore CPU (Shahvarani and Jacobsen, SIGMOD "
        "2020), section 2.2.1"
    )
    parameters_type = NoParameters

    def lay_out(self, job: Job, parameters: NoParameters) -> Layout:
        """Return one PE."""
        return at_one_pe("b_plus_tree")
