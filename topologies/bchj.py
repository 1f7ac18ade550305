"""Broadcast hash join (BCHJ), as in SPO-Join's section 5.4: stored everywhere, probed once.

Every tuple is broadcast to all PEs and stored at each of them; it probes at one, which the hash of
its id chooses. Each PE stores the whole window, and compares a k-th of the tuples with all of it by
nested loops::

    source -> router -+-> joiner.0 -+-> sink
                      +-> joiner.1 -+
                      +-> ...      -+

The paper says of it only that it broadcasts each tuple to all PEs, where SplitJoin deals them out
in turns. Were a tuple stored at one PE and probed at all, this would be SplitJoin with another
dealing. So it is read as what databases call a broadcast join: one side is replicated, the other
partitioned by hash; in a stream every tuple is in turn both. Against SplitJoin it has the same
messages to the PEs and the same comparisons, k times the inserts and the memory, and one answer a
tuple, not k.
"""

from __future__ import annotations

from actors.window_join.routing import Replicated
from topologies.topology import Job
from topologies.window_join import Layout, PeParameters, WindowJoin


class Bchj(WindowJoin[PeParameters]):
    """The window replicated to all PEs, the probes dealt out by hash."""

    name = "bchj"
    title = "Broadcast hash join: every PE stores everything, and a tuple probes at one of them"
    paper = "SPO-Join: Efficient Stream Inequality Join, section 5.4 and Figures 11b and 11d"
    parameters_type = PeParameters

    def lay_out(self, job: Job, parameters: PeParameters) -> Layout:
        """Return PEs that all store everything."""
        return Layout(
            routing=Replicated(pes=parameters.pes),
            joiners={"joiner": parameters.pes},
            index="nested_loop",
            nodes=parameters.nodes,
        )
