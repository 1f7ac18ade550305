"""The window join of one machine: what it stores while one of its streams is silent."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from actors.hosting.inline import RecordingContext
from actors.ibwj import Machine
from actors.protocol import Message
from actors.source import Fed
from joins.arrivals import Arrivals
from joins.batch import Batch, Schema
from joins.oracle.evaluation import expected
from joins.queries.parser import parse_query
from joins.queries.query import JoinQuery
from joins.window_join.shared_join import ThreadsJoin
from joins.window_join.window_join_spec import INDEXES, SHARED, WindowJoinSpec
from netsim.cost import load_profile

WINDOW, BATCH, SILENCE = 256, 64, 100
"""Tuples of a window and of a batch; windows for which one stream is silent."""
BOTH = 4 * WINDOW
"""Tuples before and after the silence, of either stream by chance."""
QUERY = "SELECT R.x FROM R, S WHERE {} WINDOW AS (SLIDE INTERVAL {})"
CLOSE, DIFFERENT = "ABS(R.x - S.x) <= 2", "R.x < S.x AND R.x != S.x"
BY_COUNT, BY_TIME = f"'1' ON '{WINDOW}'", f"'1 ns' ON '{WINDOW} ns'"
SCHEMAS = tuple(Schema(stream=name, fields={"x": "int64"}) for name in "RS")


@cache
def arrivals(silent: int) -> list[Arrivals]:
    """Return batches of both streams, then of one while the other is silent, then of both."""
    rng = np.random.default_rng(silent)
    alone = np.full(SILENCE * WINDOW, 1 - silent)
    stream = np.concatenate([rng.integers(0, 2, BOTH), alone, rng.integers(0, 2, BOTH)])
    number, x = np.arange(len(stream)), rng.integers(0, 1000, len(stream))
    position = np.where(stream == 0, (stream == 0).cumsum(), (stream == 1).cumsum()) - 1
    batches = []
    for begin in range(0, len(stream), BATCH):
        rows = number[begin : begin + BATCH]
        mine = [rows[stream[rows] == side] for side in (0, 1)]
        parts = tuple(
            Batch(id=position[at], ts=at, key=np.zeros_like(at), fields={"x": x[at]}) for at in mine
        )
        batches.append(Arrivals(parts, tuple(mine)))
    return batches


@cache
def right_answer(predicates: str, window: str, silent: int) -> list[list[tuple[int, int]]]:
    """Return the count and the fingerprint of each tuple's matches, stream by stream."""
    query = parse_query(QUERY.format(predicates, window))
    answer: list[list[tuple[int, int]]] = [[], []]
    for part in expected(query, SCHEMAS, arrivals(silent)):
        answer[part.stream] += zip(part.count.tolist(), part.fingerprint.tolist(), strict=True)
    return answer


def make_machine(query: JoinQuery, spec: WindowJoinSpec, *, live: bool) -> Machine:
    unit_ps = None if live else tuple(load_profile().unit_ps)
    machine = Machine(query=query, schemas=SCHEMAS, spec=spec, unit_ps=unit_ps, pairs=False)
    if live:  # with room for far less than `SLACK`, which is 64 windows
        assert isinstance(machine._join, ThreadsJoin)
        machine._join = ThreadsJoin(machine._join.windows, threads=spec.threads, slack=BATCH)
    return machine


SPECS: dict[str, tuple[WindowJoinSpec, bool]] = {
    **{index: (WindowJoinSpec(index=index), False) for index in INDEXES},
    **{f"{index}-cores": (WindowJoinSpec(index=index, threads=3), False) for index in SHARED},
    **{f"{index}-threads": (WindowJoinSpec(index=index, threads=2), True) for index in SHARED},
    "blocking-cores": (WindowJoinSpec(threads=3, merge="blocking"), False),
}


@pytest.mark.parametrize(("window", "silent"), [(BY_COUNT, 1), (BY_TIME, 0)])
@pytest.mark.parametrize("name", SPECS)
def test_nothing_piles_up_while_one_stream_is_silent(name: str, window: str, silent: int) -> None:
    spec, live = SPECS[name]
    check_silence(
        lambda query: make_machine(query, spec, live=live), CLOSE, window=window, silent=silent
    )


@pytest.mark.parametrize("window", [BY_COUNT, BY_TIME])
def test_nor_do_fields_that_other_predicates_compare(window: str) -> None:
    check_silence(
        lambda query: make_machine(query, WindowJoinSpec(index="nested_loop"), live=False),
        DIFFERENT,
        window=window,
        silent=1,
    )


def check_silence(
    make: Callable[[JoinQuery], Machine], predicates: str, *, window: str, silent: int
) -> None:
    """Check that a machine's state grows no more after ten windows of silence, and its answers."""
    machine = make(parse_query(QUERY.format(predicates, window)))
    context = RecordingContext("machine", {"sink": ("sink",)}, 0)
    nbytes = []
    answer: list[list[tuple[int, int]]] = [[], []]
    for batch in arrivals(silent):
        born_ns = tuple(np.zeros(len(part), np.int64) for part in batch.parts)
        machine.receive(Message("source", "out", Fed(batch, born_ns)), context)
        nbytes.append(machine.nbytes)
        (sent,) = context.take().sends
        for part in sent.handle.matches:
            answer[part.stream] += zip(part.count.tolist(), part.fingerprint.tolist(), strict=True)
    soon = (BOTH + 10 * WINDOW) // BATCH
    assert max(nbytes) <= 1.25 * max(nbytes[:soon])
    assert answer == right_answer(predicates, window, silent)
