"""What is assumed and not measured: all of it, each with its source.

Work is priced as it was measured (`netsim.cost`). What else a simulated machine does, no
measurement of one processor can show. It is listed here, and shown with every figure that rests on
it; none of it is itself what a figure claims.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from joins.work import ATOMICS, MATCHES
from netsim.cost import CostProfile, StructureCost


@dataclass(frozen=True, kw_only=True)
class Assumption:
    """One thing that is assumed."""

    name: str
    """In a word or two."""
    text: str
    """What is assumed."""
    source: str
    """Where that is from."""
    costs: Callable[[CostProfile], bool] = lambda costs: True
    topologies: tuple[str, ...] | None = None
    parameters: Callable[[Any], bool] = lambda parameters: True
    """Of which runs: where work costs that, of these systems, where their parameters are so; each
    by default any. No topologies at all: not of runs, but of the surveys that name it."""

    @property
    def anchor(self) -> str:
        """Its name on a page that is referred to."""
        return f"assumed-{self.name.replace(' ', '-')}"

    def __str__(self) -> str:
        return f"Assumed, {self.name}: {self.text} ({self.source})."


def _messages(*prices_ps: int) -> Callable[[CostProfile], bool]:
    """Return whether a message, each of its tuples and each of its bytes cost that."""
    return lambda costs: (costs.message_ps, costs.row_ps, costs.byte_ps) == prices_ps


def _has_free_calls(costs: CostProfile) -> bool:
    steps = costs.structures.values()
    return bool(steps) and not any(step.call_ps for step in steps)


def _work(
    structure: str, costs_so: Callable[[StructureCost], bool]
) -> Callable[[CostProfile], bool]:
    """Return whether a structure's work costs so; a profile without it says no."""
    return lambda costs: structure in costs.structures and costs_so(costs.structures[structure])


ASSUMPTIONS = (
    Assumption(
        name="messages",
        text="a message costs its receiver 20 us, each tuple of it 100 ns, each byte 0.1 ns",
        source="set as for an engine that passes batches between processes; joinsim calibrate "
        "measures this project's own",
        costs=_messages(20_000_000, 100_000, 100),
    ),
    Assumption(
        name="messages within a machine",
        text="a message costs its receiver 0.1 us and each tuple 20 ns",
        source="what batches of 32 save a keyed interval join in WindFlow, 7.0 against 4.2 million "
        "tuples a second with one replica",
        costs=_messages(100_000, 20_000, 0),
    ),
    Assumption(
        name="messages in shared memory",
        text="a message is a reference and costs its receiver 1 us, each tuple 2 ns, each "
        "byte 0.06 ns",
        source="set; no machine was measured",
        costs=_messages(1_000_000, 2_000, 60),
    ),
    Assumption(
        name="messages by remote memory access",
        text="the network writes a message into its receiver's memory, and costs the receiver "
        "2 us, each tuple 2 ns, each byte 0.06 ns",
        source="set as for InfiniBand, which PanJoin's machines have; none was measured",
        costs=_messages(2_000_000, 2_000, 60),
    ),
    Assumption(
        name="free messages",
        text="a message, its tuples and its bytes cost their receiver nothing",
        source="set, to find out what messages have to do with a figure",
        costs=_messages(0, 0, 0),
    ),
    Assumption(
        name="free calls",
        text="a call of a structure costs no more than its tuples and their work",
        source="set, to find out what a figure owes to its structures' work alone",
        costs=_has_free_calls,
    ),
    Assumption(
        name="slow merges",
        text="building a segment's permutation takes 100 ms more than was measured",
        source="set, to find out what the time of a merge has to do with a figure",
        costs=_work("order_arrays.permutation", lambda work: work.call_ps == 100_000_000_000),
    ),
    Assumption(
        name="even merges",
        text="a byte that a merge of a PIM-Tree or an IM-Tree copies costs the same in every "
        "window; measured, it costs more in small ones",
        source="set, to find out what the time of a merge has to do with a figure",
        costs=_work("ibwj_pim_tree.join", lambda work: set(work.copied_percents) == {100}),
    ),
    Assumption(
        name="free matches",
        text="to list a match costs a window join over a B+-tree, an IM-Tree or a PIM-Tree nothing",
        source="set, to find out what listing matches has to do with a figure",
        costs=_work("ibwj_pim_tree.join", lambda work: work.unit_ps[MATCHES] == 0),
    ),
    Assumption(
        name="slow matches",
        text="to list a match costs a RaP-Table, a WiB+-Tree and nested loops 30 ns",
        source="set, to find out what listing matches has to do with a figure",
        costs=_work("rap_table.probe", lambda work: work.unit_ps[MATCHES] == 30_000),
    ),
    Assumption(
        name="slow atomic operations",
        text="one takes a thread that shares an index 200 ns, and not some 20",
        source="set, to find out what sharing has to do with a figure",
        costs=_work("ibwj_shared_pim_tree.join", lambda work: work.unit_ps[ATOMICS] == 200_000),
    ),
    Assumption(
        name="priced pairs",
        text="each pair costs a replica of an interval join 30 ns, as where an engine makes a "
        "tuple of it",
        source="what WindFlow's rates at two and at 20 pairs a tuple come to",
        costs=_work("interval_join.join", lambda work: work.unit_ps[MATCHES] == 30_000),
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
        text="threads that share a core take turns on it, also while they wait for each other: "
        "they gain nothing by it, where PIM-Tree's paper has 24 %",
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
    Assumption(
        name="speed of a drift",
        text="at r = 1 the mean of Figure 13 moves by 32 standard deviations with windows of 2^14, "
        "by 52 with 2^16 and by 90 with 2^20; at other r by r times that",
        source="fitted so that 77 % of the inserts go to one subindex, as in PIM-Tree's Figure "
        "13a; the text that was at hand does not say how far it moves",
        topologies=(),
    ),
)


def assumptions_of(topology: str, costs: CostProfile, parameters: Any) -> list[Assumption]:
    """Return what is assumed of a run in virtual time, by the name of its topology."""
    return [
        one
        for one in ASSUMPTIONS
        if one.costs(costs)
        and (one.topologies is None or topology in one.topologies)
        and one.parameters(parameters)
    ]
