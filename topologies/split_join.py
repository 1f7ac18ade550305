"""SplitJoin (Najafi, Sadoghi and Jacobsen): every PE stores a share and probes with everything.

Storing and probing are split: a tuple reaches all PEs, probes at every one of them, and is stored
at one, in turns. No PE is told which: it knows its own number, and the tuple's position tells. With
a *fanout* messages come down a tree of distributors and results go up a tree of collectors, as in
the original; without it the router reaches each PE itself::

    source -> router -> (distributors) -+-> joiner.0 -+-> (collectors) -> sink
                                        +-> joiner.1 -+
                                        +-> ...      -+

A tuple costs a message to each of the k PEs and an answer from each; the k windows together hold it
once. The original's storage and processing cores work side by side; here they are the two steps of
one message. Its punctuations, which order the results of different cores, are left out: a result
names its tuples.
"""

from __future__ import annotations

from typing import Literal

from pydantic.dataclasses import dataclass

from actors.window_join.routing import RoundRobin
from topologies.topology import STRICT, Job
from topologies.window_join import Fanout, Layout, PeParameters, WindowJoin, chain_options


@dataclass(frozen=True, kw_only=True, config=STRICT)
class StoringInTurns(PeParameters):
    """What a person may set of systems whose PEs store in turns.

    Attributes
    ----------
    index
        Structure of the PEs' windows: nested loops in the originals and in SPO-Join's section 5.4;
        later work puts an index there.
    """

    index: Literal["nested_loop", "b_plus_tree", "chain_index"] = "nested_loop"

    def layout(self, job: Job, *, fanout: int | None = None) -> Layout:
        """Return PEs that all store both streams, with trees of *fanout* around them."""
        return Layout(
            routing=RoundRobin(sides=(range(self.pes),) * len(job.query.streams)),
            joiners={"joiner": self.pes},
            index=self.index,
            options=chain_options(job.query, self.pes) if self.index == "chain_index" else {},
            nodes=self.nodes,
            fanout=fanout,
        )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SplitJoinParameters(StoringInTurns):
    """What a person may set of SplitJoin.

    Attributes
    ----------
    fanout
        Most branches of a node in the two trees; None goes without trees.
    """

    fanout: Fanout | None = None


class SplitJoin(WindowJoin[SplitJoinParameters]):
    """Windows split in turns over PEs, probed by all tuples."""

    name = "split_join"
    title = "SplitJoin: PEs store tuples in turns, and every tuple probes at all of them"
    paper = (
        "SplitJoin: A Scalable, Low-latency Stream Join Architecture with Adjustable Ordering "
        "Precision (Najafi, Sadoghi and Jacobsen, USENIX ATC 2016)"
    )
    parameters_type = SplitJoinParameters

    def lay_out(self, job: Job, parameters: SplitJoinParameters) -> Layout:
        """Return PEs that all store both streams, between the trees."""
        return parameters.layout(job, fanout=parameters.fanout)
