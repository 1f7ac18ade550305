"""Join-Matrix (Stamos and Young; Elseidy et al.): a grid of PEs, a row of them for each R tuple.

PE (i, j) of the grid joins the i-th part of R with the j-th part of S. A tuple of R goes to all PEs
of one row and a tuple of S to all PEs of one column, which the hash of its position chooses: a row
and a column cross at one PE, so every pair of tuples meets there and nowhere else::

    source -> router -+-> joiner.0  joiner.1  joiner.2 -+-> sink
                      +-> joiner.3  joiner.4  joiner.5 -+

It serves any predicate, and no value can overload a PE. With r rows and c columns a tuple of R is
shipped and stored c times and one of S r times, where a biclique (`topologies.chain_index`) stores
each tuple once but sends it to a whole side. In a self join a tuple is stored at a row and probes
at a column. Elseidy et al. reshape the grid as the streams' rates change; here it stays.
"""

from __future__ import annotations

from typing import Literal

from pydantic.dataclasses import dataclass

from actors.window_join.routing import Grid
from topologies.topology import STRICT, Job, Pes
from topologies.window_join import Layout, WindowJoin


@dataclass(frozen=True, kw_only=True, config=STRICT)
class JoinMatrixParameters:
    """What a person may set of the Join-Matrix.

    Attributes
    ----------
    grid_rows, grid_columns
        PEs that a tuple of the second stream goes to, and PEs that one of the first goes to.
    index
        Structure of the PEs' windows.
    nodes
        Machines that the PEs share in turns; None gives each a machine of its own.
    """

    grid_rows: Pes = 2
    grid_columns: Pes = 2
    index: Literal["nested_loop", "b_plus_tree"] = "nested_loop"
    nodes: Pes | None = None


class JoinMatrix(WindowJoin[JoinMatrixParameters]):
    """A grid of PEs, each joining a part of one stream with a part of the other."""

    name = "join_matrix"
    title = "Join-Matrix: a grid of PEs, a tuple goes to a row or a column of it"
    paper = "Scalable and Adaptive Online Joins (Elseidy et al., PVLDB 7(6), 2014)"
    parameters_type = JoinMatrixParameters

    def lay_out(self, job: Job, parameters: JoinMatrixParameters) -> Layout:
        """Return the grid."""
        p = parameters
        grid = Grid(rows=p.grid_rows, columns=p.grid_columns, self_join=job.query.is_self_join)
        return Layout(
            routing=grid,
            joiners={"joiner": p.grid_rows * p.grid_columns},
            index=p.index,
            nodes=p.nodes,
        )
