"""What virtual time assumes and does not measure: all of it, each with its source.

Work is priced as it was measured (`netsim.cost`). What else a simulated machine does, no
measurement of one processor can show. It is listed here, and shown with every figure that rests on
it; none of it is itself what a figure claims.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Assumption:
    """One thing that is assumed.

    Attributes
    ----------
    name
        In a word or two.
    text
        What is assumed.
    source
        Where that is from.
    profile, topologies, parameters
        Of which runs: with that cost profile, of these systems, where their parameters are so; each
        by default any.
    """

    name: str
    text: str
    source: str
    profile: str = ""
    topologies: tuple[str, ...] = ()
    parameters: Callable[[Any], bool] = lambda parameters: True

    @property
    def anchor(self) -> str:
        """Its name on a page that is referred to."""
        return f"assumed-{self.name.replace(' ', '-')}"

    def __str__(self) -> str:
        return f"Assumed, {self.name}: {self.text} ({self.source})."


ASSUMPTIONS = (
    Assumption(
        name="messages",
        text="a message costs its receiver 20 us, each tuple of it 100 ns, each byte 0.1 ns",
        source="set as for an engine that passes batches between processes; joinsim calibrate "
        "measures this project's own",
        profile="default",
    ),
    Assumption(
        name="messages within a machine",
        text="a message costs its receiver 0.1 us and each tuple 20 ns",
        source="what batches of 32 save a keyed interval join in WindFlow, 7.0 against 4.2 million "
        "tuples a second with one replica",
        profile="multicore",
    ),
    Assumption(
        name="messages in shared memory",
        text="a message is a reference and costs its receiver 1 us, each tuple 2 ns",
        source="set; no machine was measured",
        profile="shared_memory",
    ),
    Assumption(
        name="messages by remote memory access",
        text="the network writes a message into its receiver's memory, and costs the receiver "
        "2 us, each tuple 2 ns, each byte 0.06 ns",
        source="set as for InfiniBand, which PanJoin's machines have; none was measured",
        profile="rdma",
    ),
    Assumption(
        name="caches",
        text="what a structure takes beyond its least time is spent waiting for memory; with a "
        "second busy core on the site, that wait grows as it did for plain reads of as many bytes; "
        "each further core adds as much again, until all read from the farthest memory",
        source="structures were measured alone, memory on two cores: [memory] in the profile",
    ),
    Assumption(
        name="atomic operations",
        text="one on a line of memory that other cores have touched takes 20 ns",
        source="set; a machine of many cores was not at hand",
        topologies=("scale_oij", "ibwj"),
        parameters=lambda of: getattr(of, "threads", 1) > 0,
    ),
    Assumption(
        name="hyper-threads",
        text="threads that share a core gain nothing by it, where PIM-Tree's paper has 24 %",
        source="set; none are simulated",
        topologies=("ibwj",),
        parameters=lambda of: 0 < (of.cores or of.threads) < of.threads,
    ),
    Assumption(
        name="memory of threads",
        text="a second thread on an index slows the first as plain reads of as many bytes slowed "
        "each other on two cores, and each further thread adds as much again; threads also wait "
        "for locks and cache lines",
        source="one thread was measured, with the locks that it takes: [memory] in the profile",
        topologies=("ibwj",),
        parameters=lambda of: of.threads > 1,
    ),
    Assumption(
        name="contention",
        text="a look into another thread's part of a buffer takes as many atomic operations as "
        "the parameter contention says",
        source="set; the paper has no figure for it",
        topologies=("scale_oij",),
    ),
    Assumption(
        name="segments by threads",
        text="the threads of a PO-Join PE have a core each, and take the next segment in the order "
        "of counted work",
        source="SPO-Join, Algorithm 4",
        topologies=("spo_join",),
        parameters=lambda of: of.threads > 1,
    ),
    Assumption(
        name="threads of a worker",
        text="the threads of a worker share one core, so that their work is added up",
        source="set",
        topologies=("panjoin",),
        parameters=lambda of: of.threads > 1,
    ),
    Assumption(
        name="the board",
        text="its units process a tuple a clock of 252.7 MHz; eight mergers and eight probers, two "
        "channels of DDR3-1066; eight partitioners, and eight lanes of PCI Express 3",
        source="PanJoin, Table I and section IV; the last two are set, as the paper has none",
        topologies=("panjoin",),
        parameters=lambda of: of.device == "accelerator",
    ),
    Assumption(
        name="power",
        text="the board takes 7.9 W and a core 7.5 W, whatever they do; no power is measured",
        source="PanJoin, at its Figure 14: eight of 20 cores of a processor of 150 W take 60 W",
        topologies=("panjoin",),
        parameters=lambda of: of.device == "accelerator",
    ),
    Assumption(
        name="eight cores",
        text="eight cores do eight times the work of one, which the board is compared with",
        source="set: the paper's comparisons are with eight, and one was measured",
        topologies=("panjoin",),
        parameters=lambda of: of.device == "accelerator",
    ),
    Assumption(
        name="choosing a plan",
        text="a site that chooses its plan anew takes no time for it",
        source="set: it is done beside the join, once an epoch",
        topologies=("semijoin",),
        parameters=lambda of: of.replan_every is not None,
    ),
)


def assumptions_of(topology: str, profile: str, parameters: Any) -> list[Assumption]:
    """Return what is assumed of a run in virtual time.

    Parameters
    ----------
    topology, profile
        Names.
    parameters
        Of the topology.
    """
    return [
        one
        for one in ASSUMPTIONS
        if one.profile in ("", profile)
        and (not one.topologies or topology in one.topologies)
        and one.parameters(parameters)
    ]
