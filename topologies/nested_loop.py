"""The plainest window join: one PE compares every tuple with every one in its window.

SPO-Join's section 5.4 and PIM-Tree's NLWJ measure against it; no structure is kept but the window
itself, so that a tuple costs as many comparisons as it sees tuples::

    source -> router -> joiner -> sink
"""

from __future__ import annotations

from topologies.topology import Job
from topologies.window_join import Layout, NoParameters, WindowJoin, at_one_pe


class NestedLoop(WindowJoin[NoParameters]):
    """One PE, one list per stream."""

    name = "nested_loop"
    title = "Nested loop: one PE compares each tuple with its whole window"
    paper = "Evaluating Window Joins over Unbounded Streams (Kang, Naughton and Viglas, ICDE 2003)"
    parameters_type = NoParameters

    def lay_out(self, job: Job, parameters: NoParameters) -> Layout:
        """Return one PE."""
        return at_one_pe("nested_loop")
