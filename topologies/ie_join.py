"""Batch IE-Join, applied to a stream: one PE joins each batch of tuples with its whole window.

IE-Join is made for data that stay as they are: it sorts all of it, relates the orders by
permutation and offset arrays, and scans a bit array. On a stream the arrays are stale as soon as a
tuple comes, so they are made anew for every batch; SPO-Join exists to avoid just that::

    source -> router -> joiner -> sink
"""

from __future__ import annotations

from topologies.topology import Job
from topologies.window_join import Layout, NoParameters, WindowJoin, at_one_pe


class IeJoin(WindowJoin[NoParameters]):
    """One PE, sorting its whole window for every batch."""

    name = "ie_join"
    title = "IE-Join: one PE sorts its whole window anew for each batch"
    paper = "Fast and Scalable Inequality Joins (Khayyat et al., VLDB Journal 2017)"
    parameters_type = NoParameters

    def lay_out(self, job: Job, parameters: NoParameters) -> Layout:
        """Return one PE."""
        return at_one_pe("ie_join")
