"""Tuples gather until the first has waited long enough, and more of them while a source waits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from actors.feed import StreamTable
from actors.hosting.inline import Cell
from actors.protocol import NS_PER_S, START, TIMER, ActorSpec, Wiring
from actors.source import Fed, Feeding, Source
from actors.stream_source import StreamSource
from joins.batch import Schema

WIRING: Wiring = {"source": {"out": ("sink",)}}


def files(rows: int) -> tuple[StreamTable, ...]:
    ts = np.arange(rows, dtype=np.int64)
    schema = Schema(stream="R", fields={"x": "int64"})
    return (StreamTable(schema=schema, table=pa.table({"ts": ts, "x": ts})),)


def run(feeding: Feeding, rows: int, *, late_ns: int = 0) -> list[tuple[int, Fed]]:
    """Return all messages with the times of sending; each timer fires *late_ns* late."""
    spec = ActorSpec(actor=Source, arguments={"files": files(rows), "feeding": feeding})
    cell = Cell("source", spec, WIRING, 1)
    sent, now, port = [], 0, START
    while True:
        reply = cell.deliver("source", port, None, now)
        sent += [(now, one.handle) for one in reply.sends]
        if not reply.timers:
            return sent
        ((at, name),) = reply.timers
        now, port = max(now, at) + late_ns, TIMER + name


def test_no_tuple_waits_longer_than_the_linger_time() -> None:
    feeding = Feeding(rate_tps=40_000, linger_ns=2_000_000)
    sent = run(feeding, 1_000)
    assert [len(fed.arrivals) for _, fed in sent] == [80] * 12 + [40]
    for now, fed in sent:
        assert now - int(fed.born_ns[0][0]) <= feeding.linger_ns


@pytest.mark.parametrize("batch_rows", [1, 7, None])
def test_a_message_leaves_as_its_last_tuple_comes_into_being(batch_rows: int | None) -> None:
    """Not as the one behind it does: at 8 tuples a second that would take 125 ms more."""
    for now, fed in run(Feeding(rate_tps=8, batch_rows=batch_rows), 25):
        assert now == int(fed.born_ns[0][-1])


def test_without_a_linger_time_each_tuple_leaves_alone() -> None:
    assert len(run(Feeding(rate_tps=1_000, linger_ns=0), 25)) == 25


def test_while_a_source_waits_what_comes_into_being_gathers() -> None:
    """Its receiver takes a message in 10 ms, in which 1,000 tuples come into being."""
    sent = run(Feeding(rate_tps=100_000, linger_ns=1_000_000), 60_000, late_ns=10_000_000)
    sizes = [len(fed.arrivals) for _, fed in sent]
    assert sizes[0] == 100
    assert 900 <= np.median(sizes) <= 1_200
    now, last = sent[-1]
    behind_ns = now - int(last.born_ns[0][-1])
    assert behind_ns < NS_PER_S // 10, "it catches up"


def test_at_full_speed_messages_grow_until_the_stages_of_a_system_would_wait_for_each_other() -> (
    None
):
    sizes = [len(fed.arrivals) for _, fed in run(Feeding(), 100_000)]
    assert sizes[:3] == [4_096, 8_192, 12_500]
    assert max(sizes) == 100_000 // 8
    assert sum(sizes) == 100_000


@pytest.mark.parametrize("feeding", [Feeding(), Feeding(rate_tps=50_000)], ids=str)
def test_sources_of_an_interval_join_take_the_same_runs(feeding: Feeding) -> None:
    """However late each is, since their turns alternate at the replicas."""
    runs: list[list[Any]] = []
    for late_ns in (0, 7_000_000):
        arguments = {"files": files(30_000) * 2, "feeding": feeding, "stream": 0}
        spec = ActorSpec(actor=StreamSource, arguments=arguments | {"replica": 0, "replicas": 1})
        cell = Cell("source", spec, WIRING, 1)
        now, port, sizes = 0, START, []
        while True:
            reply = cell.deliver("source", port, None, now)
            sizes += [len(one.handle.data) for one in reply.sends]
            if not reply.timers:
                break
            ((at, name),) = reply.timers
            now, port = max(now, at) + late_ns, TIMER + name
        runs.append(sizes)
    assert runs[0] == runs[1]
    assert len(runs[0]) > 5
