"""BiStream (Lin, Ooi, Wang and Yu): a biclique of units, each with a chained index.

Every unit belongs to one stream and stores a share of it. A tuple is stored at one unit of its own
side, in turns, and probes at all units of the other side::

    source -> router -+-> R_unit.0, R_unit.1, ... -+-> sink
                      +-> S_unit.0, S_unit.1, ... -+

No tuple is stored twice, and units do not talk to each other; a tuple costs as many messages as the
other side has units, and one more. A unit's index is a chain of B+-trees: tuples enter the last,
and expire by whole trees. In a self join the two sides are one, and a tuple probes at all units of
it. The original ends a tree after a period of time; here it ends after a number of tuples.

BiStream's subgroups, which route by value within a side, are for equalities and are left out.
"""

from __future__ import annotations

from typing import Annotated

from annotated_types import Interval
from pydantic.dataclasses import dataclass

from actors.window_join.routing import RoundRobin
from topologies.topology import STRICT, Job, Pes
from topologies.window_join import Layout, WindowJoin, chain_options


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ChainIndexParameters:
    """What a person may set of the chain index.

    Attributes
    ----------
    units
        Units on each side.
    sub_index
        Tuples of a sub-index; None takes a unit's share of a slide, or of a sixteenth of the window
        if that is more, when windows count tuples, and the index's default
        (`joins.indexes.windows.chain_index.LENGTH`) when they are of time.
    nodes
        Machines that the PEs share in turns; None gives each a machine of its own.
    """

    units: Pes = 2
    sub_index: Annotated[int, Interval(ge=1, le=2**40)] | None = None
    nodes: Pes | None = None


class ChainIndex(WindowJoin[ChainIndexParameters]):
    """Units of two sides, each with a chain of B+-trees over its share of its own stream."""

    name = "chain_index"
    title = "Chain index: a biclique of units, each with a chain of B+-trees"
    paper = "Scalable Distributed Stream Join Processing (Lin, Ooi, Wang and Yu, SIGMOD 2015)"
    parameters_type = ChainIndexParameters

    def lay_out(self, job: Job, parameters: ChainIndexParameters) -> Layout:
        """Return the units of every stream, side by side."""
        p, streams = parameters, job.query.streams
        begins = range(0, p.units * len(streams), p.units)
        return Layout(
            routing=RoundRobin(sides=tuple(range(begin, begin + p.units) for begin in begins)),
            joiners={f"{stream}_unit": p.units for stream in streams},
            index="chain_index",
            options=chain_options(job.query, p.units, p.sub_index),
            nodes=p.nodes,
        )
