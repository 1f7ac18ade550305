"""PanJoin against joins that scan their windows, in virtual time, at the window of Figure 15e.

In the clock: nothing of this machine; rates are those of virtual time.

Run: ``python -m benchmarks.panjoin_peers [--window-bits 23] [--selectivity 1] [--json]``
"""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from actors.feed import StreamFile
from actors.handshake import LEFTWARD, RIGHTWARD, Flow
from actors.hosting.inline import RecordingContext
from actors.panjoin.messages import Commands
from actors.protocol import Actor, Message, Payload
from actors.results import Answers
from actors.source import Fed, Feeding, Probes
from actors.window_join import Share
from benchmarks.measure import Result, check_equal, command_line, report
from benchmarks.pim_tree import KEY_BITS, make_keys
from joins.arrivals import Arrivals
from joins.batch import Batch, Schema
from joins.indexes.panjoin.subwindow import STRUCTURES
from joins.queries.parser import parse_query
from netsim.cost import load_profile
from netsim.network import PRESETS
from topologies import TOPOLOGIES
from topologies.actor_graph import ActorGraph
from topologies.topology import Job

PES = 16
BATCH = 32_768
SLICE = 1_024
PEERS = {"low_latency_handshake_join": "core.8", "split_join": "joiner.8", "scale_join": "joiner.8"}
"""Topology to the PE that is looked at."""
PE = 8
TARGETS = {"bi_sort": 1_000.0, "rap_table": 100.0, "wib_tree": 100.0}
"""What the paper has over nested loops at S = 1."""

ASSUMPTIONS = f"""\
Virtual time: counted work times the cost profile 'default', one core a PE; InfiniBand, 100 Gb/s.
Two streams in turns, uniform values, band join; windows full before anything is counted.
PanJoin: {PES} workers with a subwindow of each stream, batches of {BATCH:,} tuples of each stream.
  All {PES} workers and the manager are run; the busiest of them, or of their ports, sets the rate.
Nested loops: {PES} PEs with equal shares of both windows, every tuple probes at each: so one of
  them stands for all, and nothing else counts beside its scans. {SLICE:,} tuples of each stream
  are joined; a batch of {BATCH:,} takes as long per tuple, but for a message's 20 us.
Sources and the sink are taken to keep up.
"""


@dataclass(frozen=True)
class Case:
    """Two streams with full windows, and what follows."""

    window: int
    selectivity: int

    @property
    def band(self) -> int:
        """Return the reach that gives *selectivity* matches in a full subwindow."""
        return (1 << KEY_BITS) * self.selectivity // (2 * self.window // PES)

    @property
    def job(self) -> Job:
        """Return what the systems are built for."""
        query = parse_query(
            f"SELECT * FROM R, S WHERE ABS(R.v - S.v) <= {self.band} "
            f"WINDOW AS (SLIDE INTERVAL '1' ON '{self.window}')"
        )
        files = tuple(
            StreamFile(schema=Schema(stream=name, fields={"v": "int64"}), directory=Path())
            for name in query.streams
        )
        return Job(query=query, files=files, feeding=Feeding())

    def probes(self, keys: np.ndarray, stream: int, ids: np.ndarray) -> Probes:
        """Return tuples of a stream with their windows."""
        batch = Batch(id=ids, ts=ids, key=ids * 0, fields={"v": keys[2 * ids + stream]})
        stop = ids + stream  # of the other stream's tuples, so many came before
        start = np.maximum(self.job.query.windows[stream].bound(stop), 0)
        return Probes(batch, start, stop, ids * 0)

    def pairs(self, keys: np.ndarray, probing: tuple[Probes, ...], pe: int | None) -> int:
        """Return by numpy how many matches *probing* tuples have, in all or stored at one PE."""
        found = 0
        for stream, probes in enumerate(probing):
            order = np.argsort(keys[1 - stream :: 2], kind="stable")
            values = keys[1 - stream :: 2][order]
            begin = np.searchsorted(values, probes.batch.fields["v"] - self.band, "left")
            count = np.searchsorted(values, probes.batch.fields["v"] + self.band, "right") - begin
            row = np.repeat(np.arange(len(probes)), count)
            match = order[
                np.arange(count.sum()) + np.repeat(begin - np.cumsum(count) + count, count)
            ]
            seen = (match >= probes.start[row]) & (match < probes.stop[row])
            found += int((seen if pe is None else seen & (match % PES == pe)).sum())
        return found


Delivery = tuple[str, str, str, Payload]
"""A message: its sender, its receiver, its port and what it has."""


@dataclass
class Meter:
    """Delivers messages at once, and adds up what they cost."""

    graph: ActorGraph
    busy_ns: Counter[str] = field(default_factory=Counter)
    port_ns: Counter[tuple[str, str]] = field(default_factory=Counter)
    pairs: int = 0

    def __post_init__(self) -> None:
        self.profile = load_profile()
        self.bandwidth_bps = PRESETS["infiniband"].bandwidth_bps
        self.actors: dict[str, Actor] = {}
        self.contexts = {n: RecordingContext(n, self.graph.wiring[n], 0) for n in self.graph}

    def deliver(
        self, sender: str, receiver: str, port: str, payload: Payload
    ) -> Iterator[Delivery]:
        """Let *receiver* take a message; return what it sends, as messages, answers aside."""
        if receiver not in self.actors:
            self.actors[receiver] = self.graph.specs[receiver].build()
        context = self.contexts[receiver]
        self.actors[receiver].receive(Message(sender, port, payload), context)
        reply = context.take()
        cost_ns = self.profile.floor_ns(payload.rows, payload.nbytes)
        self.busy_ns[receiver] += cost_ns + self.profile.steps_ns(reply.steps, reply.work)
        for sent in reply.sends:
            for to in sent.receivers:
                wire_ns = sent.nbytes * 8_000_000_000 // self.bandwidth_bps
                self.port_ns[receiver, "out"] += wire_ns
                if isinstance(sent.handle, Answers):
                    self.pairs += sum(matches.total for matches in sent.handle.matches)
                else:
                    self.port_ns[to, "in"] += wire_ns
                    yield receiver, to, sent.port, sent.handle

    def reset(self) -> None:
        """Forget what has been counted."""
        self.busy_ns.clear()
        self.port_ns.clear()
        self.pairs = 0

    @property
    def bottleneck(self) -> tuple[float, str]:
        """Return the seconds that the busiest actor or port took, and which it was."""
        times = {**self.busy_ns, **{f"{a}, port {way}": t for (a, way), t in self.port_ns.items()}}
        name = max(times, key=lambda one: times[one])
        return times[name] / 1e9, name


def panjoin_rate(case: Case, structure: str, keys: np.ndarray) -> tuple[float, str]:
    """Return tuples a virtual second of PanJoin with full windows, and what bounds them."""
    topology = TOPOLOGIES["panjoin"]
    batch = min(BATCH, case.window // PES)
    parameters = topology.parameters_type(
        workers=PES, structure=structure, subwindow=case.window // PES, batch_count=batch
    )
    meter = Meter(topology.build(case.job, parameters))
    fill = case.window // batch
    batches = case.window // PES // batch  # a subwindow: its worker stores, the others only probe
    probed: list[list[np.ndarray]] = [[], []]
    for number in range(fill + batches):
        if number == fill:
            meter.reset()
        ids = np.arange(number * batch, (number + 1) * batch)
        parts = tuple(case.probes(keys, stream, ids).batch for stream in (0, 1))
        fed = Fed(Arrivals(parts, (2 * ids, 2 * ids + 1)), (ids * 0, ids * 0))
        messages: deque[Delivery] = deque([("source", "manager", "out", fed)])
        while messages:
            sender, receiver, port, payload = messages.popleft()
            if isinstance(payload, Commands):
                if number < fill:
                    nobody = tuple(part.slice(0, 0) for part in payload.probe)
                    payload = replace(payload, probe=nobody)
                elif receiver == "worker.0":  # as every other worker
                    for ids_of, part in zip(probed, payload.probe, strict=True):
                        ids_of.append(part.batch.id)
            messages += meter.deliver(sender, receiver, port, payload)
    probing = tuple(
        case.probes(keys, stream, np.concatenate(ids_of)) for stream, ids_of in enumerate(probed)
    )
    check_equal(structure, meter.pairs, case.pairs(keys, probing, None))
    seconds, name = meter.bottleneck
    return sum(len(part) for part in probing) / seconds, name


def peer_rate(case: Case, name: str, keys: np.ndarray) -> float:
    """Return tuples a virtual second of a system that scans its windows, once they are full."""
    topology = TOPOLOGIES[name]
    meter = Meter(topology.build(case.job, topology.parameters_type(pes=PES)))
    stored = np.arange(PE, case.window, PES)
    slice_ids = np.arange(case.window, case.window + SLICE)
    for blind, ids in ((True, stored), (False, slice_ids)):
        meter.reset()
        parts = tuple(case.probes(keys, stream, ids) for stream in (0, 1))
        # The slice sees what was there before it, which alone is at rest at this PE.
        sees = 0 if blind else case.window
        parts = tuple(replace(part, stop=np.minimum(part.stop, sees)) for part in parts)
        if name == "low_latency_handshake_join":
            left = Flow(LEFTWARD, parts[LEFTWARD], case.window, 0, False, (0, 0))
            right = Flow(RIGHTWARD, parts[RIGHTWARD], 0, 0, False, (0, 0))
            messages: list[Payload] = [left, right]
        else:
            messages = [Share(parts, (0, 0), (0, 0))]
        for message in messages:
            deque(meter.deliver("upstream", PEERS[name], "in", message), maxlen=0)
    check_equal(name, meter.pairs, case.pairs(keys, parts, PE))
    return 2 * SLICE / meter.bottleneck[0]


def main() -> None:
    """Measure, verify and print."""
    parser = command_line(__doc__)
    parser.add_argument("--window-bits", type=int, default=23, help="window length 2^BITS (23)")
    parser.add_argument("--selectivity", type=int, default=1, help="matches in a subwindow (1)")
    options = parser.parse_args()
    case = Case(1 << options.window_bits, options.selectivity)
    keys = make_keys(2 * (case.window + max(SLICE, case.window // PES)))
    if not options.json:
        print(ASSUMPTIONS, file=sys.stderr)
    scans = {name: peer_rate(case, name, keys) for name in PEERS}
    unit = "tuples/s (virtual)"
    results = [
        Result.of(f"{name}, nested loops", [rate], unit=unit) for name, rate in scans.items()
    ]
    for structure in STRUCTURES:
        rate, bound = panjoin_rate(case, structure, keys)
        results.append(Result.of(f"panjoin, {structure}", [rate], unit=unit, note=f"by {bound}"))
        for name, peer in scans.items():
            ratio = f"panjoin, {structure}, over {name}"
            results.append(Result.of(ratio, [rate / peer], unit="x", target=TARGETS[structure]))
    report("panjoin_peers", results)


if __name__ == "__main__":
    main()
