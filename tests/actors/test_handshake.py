"""Handshake joins as actors alone: whatever the timing, who meets whom, when, and what is kept."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.feed import StreamFile
from actors.handshake import Core
from actors.hosting.inline import RecordingContext
from actors.protocol import Actor, Message
from actors.results import Answers
from actors.source import Fed, Feeding, as_probes
from joins.arrivals import Arrivals
from joins.batch import Batch, Schema
from joins.queries.parser import parse_query
from joins.queries.windows import WindowBounds
from joins.state import plain, revive
from topologies import TOPOLOGIES
from topologies.topology import Job

SYSTEMS = ["handshake_join", "low_latency_handshake_join"]
Pair = tuple[int, int, int]
"""Probing stream, probing tuple, match."""


def make_job(streams: tuple[str, ...], slide: str, length: str) -> Job:
    a, b = ("R.v", "S.v") if len(streams) == 2 else ("T.v1", "T.v2")
    query = parse_query(
        f"SELECT * FROM {', '.join(streams)} WHERE {a} <= {b} "
        f"WINDOW AS (SLIDE INTERVAL '{slide}' ON '{length}')"
    )
    files = tuple(
        StreamFile(schema=Schema(stream=name, fields={"v": "int64"}), directory=Path())
        for name in streams
    )
    return Job(query=query, files=files, feeding=Feeding(), pairs=True)


@dataclass
class Chain:
    """A driver and its cores; messages wait until they are delivered, in order on each channel."""

    name: str
    job: Job
    pes: int
    index: str = "nested_loop"
    waiting: dict[tuple[str, str, str], deque[object]] = field(default_factory=dict)
    found: list[Pair] = field(default_factory=list)

    def __post_init__(self) -> None:
        topology = TOPOLOGIES[self.name]
        parameters = topology.parameters_type(pes=self.pes, index=self.index)
        self.graph = topology.build(self.job, parameters)
        self.actors: dict[str, Actor] = {n: spec.build() for n, spec in self.graph.specs.items()}
        self.contexts = {n: RecordingContext(n, self.graph.wiring[n], 0) for n in self.graph}

    @property
    def cores(self) -> list[Core]:
        return [actor for actor in self.actors.values() if isinstance(actor, Core)]

    def receive(self, receiver: str, message: Message) -> None:
        self.actors[receiver].receive(message, self.contexts[receiver])
        for sent in self.contexts[receiver].take().sends:
            for to in sent.receivers:
                if isinstance(sent.handle, Answers):
                    self._collect(sent.handle)
                else:
                    self.waiting.setdefault((receiver, to, sent.port), deque()).append(sent.handle)

    def deliver(self, choose: Callable[[int], int]) -> bool:
        """Deliver one message of the channel that *choose* names; say whether there was one."""
        channels = [channel for channel, queue in self.waiting.items() if queue]
        if not channels:
            return False
        sender, receiver, port = channels[choose(len(channels))]
        payload = self.waiting[sender, receiver, port].popleft()
        self.receive(receiver, Message(sender, port, payload))
        return True

    def deliver_all(self) -> None:
        while self.deliver(lambda _: 0):
            pass

    def _collect(self, answers: Answers) -> None:
        for matches in answers.matches:
            assert (matches.count > 0).all()
            probes, ids = matches.pairs()
            self.found += [
                (matches.stream, int(p), int(m)) for p, m in zip(probes, ids, strict=True)
            ]


def batches(columns: list[list[tuple[int, int]]], rows: int) -> list[Fed]:
    """Cut streams, given as columns of (time, value), into batches of *rows* arrivals."""
    order = sorted(
        (ts, s, i) for s, column in enumerate(columns) for i, (ts, _) in enumerate(column)
    )
    feds = []
    for first in range(0, len(order), rows):
        chosen = order[first : first + rows]
        parts, numbers = [], []
        for stream, column in enumerate(columns):
            places = [(n, i) for n, (_, s, i) in enumerate(chosen, first) if s == stream]
            ids = np.array([i for _, i in places], np.int64)
            parts.append(
                Batch(
                    id=ids,
                    ts=np.array([column[i][0] for i in ids], np.int64),
                    key=np.zeros_like(ids),
                    fields={"v": np.array([column[i][1] for i in ids], np.int64)},
                )
            )
            numbers.append(np.array([n for n, _ in places], np.int64))
        born_ns = tuple(np.zeros(len(part), np.int64) for part in parts)
        last = first + rows >= len(order)
        feds.append(Fed(Arrivals(tuple(parts), tuple(numbers)), born_ns, last=last))
    return feds


def expected(job: Job, feds: list[Fed], columns: list[list[tuple[int, int]]]) -> Counter[Pair]:
    """Return the pairs by trying every tuple of a window."""
    bounds = WindowBounds(job.query.windows)
    pairs: Counter[Pair] = Counter()
    for fed in feds:
        for stream, part in enumerate(as_probes(fed, bounds)):
            other = job.query.stored_stream(stream)
            for probe, start, stop in zip(part.batch.id, part.start, part.stop, strict=True):
                for match in range(start, stop):
                    a, b = columns[stream][probe][1], columns[other][match][1]
                    if (a <= b) if stream == 0 else (b <= a):
                        pairs[stream, int(probe), int(match)] += 1
    return pairs


column = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=25).map(
    lambda rows: [
        (int(ts), v) for ts, (_, v) in zip(np.cumsum([gap for gap, _ in rows]), rows, strict=True)
    ]
)


@pytest.mark.parametrize("name", SYSTEMS)
@given(data=st.data())
def test_tuples_meet_once_however_they_cross(name: str, data: st.DataObject) -> None:
    """Any message may be slow: on each channel they stay in order, and nothing else is sure."""
    streams = data.draw(st.sampled_from([("R", "S"), ("T",)]))
    unit = data.draw(st.sampled_from(["", " ns"]))
    slide = data.draw(st.integers(1, 4))
    length = slide * data.draw(st.integers(1, 5))
    job = make_job(streams, f"{slide}{unit}", f"{length}{unit}")
    columns = [data.draw(column) for _ in streams]
    feds = batches(columns, data.draw(st.integers(1, 9)))
    index = data.draw(st.sampled_from(["nested_loop", "b_plus_tree"]))
    chain = Chain(name, job, data.draw(st.integers(1, 5)), index)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    patience = data.draw(st.floats(0, 1))
    for fed in feds:
        chain.receive("driver", Message("source", "out", fed))
        while rng.random() < patience and chain.deliver(rng.integers):
            if rng.random() < 0.05:
                _restart(chain)
    while chain.deliver(rng.integers):
        pass
    assert Counter(chain.found) == expected(job, feds, columns)


def _restart(chain: Chain) -> None:
    for name, actor in chain.actors.items():
        if isinstance(actor, Core):
            state = plain(actor.snapshot())
            chain.actors[name] = chain.graph.specs[name].build()
            chain.actors[name].restore(state)


def long_streams(rows: int) -> list[list[tuple[int, int]]]:
    return [[(i, i % 7) for i in range(rows)] for _ in "RS"]


def test_a_low_latency_join_has_found_all_pairs_when_messages_have_gone_through() -> None:
    job, columns = make_job(("R", "S"), "1", "40"), long_streams(120)
    feds = batches(columns, 8)
    chains = {name: Chain(name, job, 4) for name in SYSTEMS}
    waited = False
    for number, fed in enumerate(feds, 1):
        for chain in chains.values():
            chain.receive("driver", Message("source", "out", fed))
            chain.deliver_all()
        so_far = expected(job, feds[:number], columns)
        assert Counter(chains["low_latency_handshake_join"].found) == so_far
        waited |= len(chains["handshake_join"].found) < so_far.total()
    assert waited
    assert Counter(chains["handshake_join"].found) == so_far


def _stored(core: Core) -> list[int]:
    """Return how many tuples are in each segment of a core, copies in flight last."""
    state = core.snapshot()
    segments = [*state["_segments"], *([state["_in_flight"]] if "_in_flight" in state else [])]
    return [len(revive(segment)) for segment in segments]


@pytest.mark.parametrize("unit", ["", " ns"])
@pytest.mark.parametrize("name", SYSTEMS)
def test_what_a_core_keeps_is_its_share_of_the_windows(name: str, unit: str) -> None:
    window, pes, rows = 40, 4, 8
    chain = Chain(name, make_job(("R", "S"), f"1{unit}", f"{window}{unit}"), pes)
    most = np.zeros((pes, 3), int)
    for fed in batches(long_streams(400), rows)[:-1]:
        chain.receive("driver", Message("source", "out", fed))
        chain.deliver_all()
        for core, held in enumerate(map(_stored, chain.cores)):
            most[core, : len(held)] = np.maximum(most[core, : len(held)], held)
    # A batch more than its share, and in flight no more than a batch or what moves on with it.
    assert (most[:, :2] <= window // pes + 2 * rows).all(), most
    assert (most[:, 2] <= rows).all(), most
    assert most[:, :2].sum() >= 2 * (window - rows)


@pytest.mark.parametrize("silent", [0, 1])
@pytest.mark.parametrize("name", SYSTEMS)
def test_nothing_piles_up_while_one_stream_is_silent(name: str, silent: int) -> None:
    columns = long_streams(400)
    columns[silent] = []
    chain = Chain(name, make_job(("R", "S"), "1 ns", "40 ns"), 4)
    for fed in batches(columns, 8)[:-1]:
        chain.receive("driver", Message("source", "out", fed))
        chain.deliver_all()
        assert sum(sum(_stored(core)) for core in chain.cores) <= 40 + 4 * 2 * 8
