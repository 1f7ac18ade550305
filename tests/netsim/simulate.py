"""Runs toy actors over a network and returns what happened."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow as pa
import pyarrow.parquet as pq

from actors.hosting.inline import InlineHost
from actors.protocol import ActorSpec, Host, Progress, Wiring
from actors.results import ResultEpochs
from netsim.cost import CostProfile
from netsim.faults import Fault, Faults
from netsim.faulty_kernel import FaultyKernel, Transport
from netsim.kernel import Kernel
from netsim.network import Latency, Link, full_mesh
from netsim.outcome import Outcome
from netsim.recovering_kernel import STORAGE_BPS, Guarantee, RecoveringKernel
from netsim.trace import Trace, trace_names

MESSAGE_NS = 10
"""What receiving a message costs with `PROFILE`; a comparison costs 1 ns, all else nothing."""

PROFILE = CostProfile(
    name="test",
    message_ps=MESSAGE_NS * 1000,
    row_ps=0,
    byte_ps=0,
    comparison_ps=1000,
    insert_ps=0,
    move_ps=0,
    bit_ps=0,
    copied_byte_ps=0,
    match_ps=0,
    atomic_ps=0,
)


def link(latency_ns: int, bandwidth_bps: int = 8_000_000_000, **latency: Any) -> Link:
    """Return a link on which a byte takes a nanosecond, unless said otherwise."""
    return Link(latency=Latency(mean_ns=latency_ns, **latency), bandwidth_bps=bandwidth_bps)


class TooLongError(Exception):
    """A run that went past its limit of virtual time."""


@dataclass(frozen=True)
class Simulated:
    outcome: Outcome
    emitted: list[Any]
    trace: pa.Table
    host: Host


def simulate(
    specs: Mapping[str, ActorSpec],
    wiring: Wiring,
    *,
    path: Path,
    network: nx.Graph | None = None,
    placement: Mapping[str, str] | None = None,
    seed: int = 1,
    inbox_messages: int = 16,
    host: Host | None = None,
    until_ns: int | None = None,
    profile: CostProfile = PROFILE,
    faults: Sequence[Fault] | None = None,
    transport: Transport = "reliable",
    guarantee: Guarantee | None = None,
    collect: Callable[[list[Any]], None] = lambda emitted: None,
    **more: Any,
) -> Simulated:
    """Run *specs*, each on a site of its own and 1 µs apart unless said otherwise.

    With *faults*, even with none, the kernel is the one that has them; with a *guarantee* too, it
    recovers from crashes, with a snapshot every 2 µs. What is emitted goes to *collect* too; *more*
    is the kernel's. Raise :exc:`TooLongError` past *until_ns*.
    """
    placement = placement or {name: name for name in specs}
    network = network or full_mesh(dict.fromkeys(placement.values()), link(1_000))
    host = host or InlineHost(specs, wiring, seed, serialise=True)
    emitted: list[Any] = []

    def take(results: list[Any]) -> None:
        emitted.extend(results)
        collect(results)

    system: Callable[..., Kernel] = partial(Kernel, collect=take)
    if faults is not None:
        fed = {name for ports in wiring.values() for to in ports.values() for name in to}
        sources = [name for name in specs if name not in fed]
        rows = Faults(faults, placement=placement, sources=sources, seed=seed)
        faulty: dict[str, Any] = {"faults": rows, "transport": transport}
        system = partial(FaultyKernel, collect=take, **faulty)
        if guarantee is not None:
            system = partial(
                RecoveringKernel,
                guarantee=guarantee,
                interval_ns=2_000,
                storage_bps=STORAGE_BPS,
                results=ResultEpochs(take, at_once=guarantee != "exactly_once"),
                **faulty,
            )

    def limit(at: Progress) -> None:
        if until_ns is not None and at.now_ns > until_ns:
            raise TooLongError

    with Trace(trace_names(wiring), path) as trace:
        kernel = system(
            wiring=wiring,
            placement=placement,
            network=network,
            profile=profile,
            host=host,
            seed=seed,
            trace=trace,
            inbox_messages=inbox_messages,
            **more,
        )
        outcome = kernel.run(progress=limit)
    return Simulated(outcome, emitted, pq.read_table(path), host)
