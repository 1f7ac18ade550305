"""The ScaleGate: what leaves it depends on the streams alone."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from actors.hosting.inline import RecordingContext
from actors.protocol import Message
from actors.stream_source import END, Rows, ScaleGate, SourceShare
from joins.batch import Batch, Schema
from joins.state import plain

SCHEMAS = tuple(Schema(stream=name, fields={}) for name in "ABC")
NAMES = ("source.A", "source.B", "source.C")


def share(arrivals: list[tuple[int, int]], first: int, stream: int, *, last: bool) -> SourceShare:
    """Return what a stream's source sends of a run of (time, stream) from arrival *first* on."""
    mine = [n for n, (_, s) in enumerate(arrivals) if s == stream]
    ts = np.array([arrivals[n][0] for n in mine], np.int64)
    seq = np.array(mine, np.int64) + first
    batch = Batch(id=seq, ts=ts, key=seq * 0)
    return SourceShare(Rows(batch, seq * 10, seq), END if last else arrivals[-1][0], last)


@given(
    arrivals=st.lists(
        st.tuples(st.sampled_from([0, 1, 2, 3, END - 1, END]), st.integers(0, 2)),
        min_size=1,
        max_size=40,
    ),
    rows=st.integers(1, 7),
    data=st.data(),
)
def test_tuples_leave_in_one_order_whatever_the_timing(
    arrivals: list[tuple[int, int]], rows: int, data: st.DataObject
) -> None:
    arrivals = sorted(arrivals)
    starts = range(0, len(arrivals), rows)
    channels = [
        [
            share(arrivals[at : at + rows], at, stream, last=at + rows >= len(arrivals))
            for at in starts
        ]
        for stream in range(3)
    ]
    gate = ScaleGate(schemas=SCHEMAS, sources=NAMES)
    context = RecordingContext("gate", {"out": ("router",)}, 0)
    order: list[int] = []
    heard = [-1, -1, -1]  # the latest time that each source has sent
    ended = [False, False, False]
    while any(channels):
        stream = data.draw(st.sampled_from([s for s in range(3) if channels[s]]))
        payload = channels[stream].pop(0)
        heard[stream], ended[stream] = payload.watermark, payload.last
        gate.receive(Message(NAMES[stream], "out", payload), context)
        for sent in context.take().sends:
            seq = np.sort(np.concatenate(sent.handle.arrivals.seq))
            for s, part in enumerate(sent.handle.arrivals.parts):
                assert [arrivals[n][1] for n in sent.handle.arrivals.seq[s]] == [s] * len(part)
                assert (part.ts < min(heard)).all() or all(ended)
            order += seq.tolist()
        if data.draw(st.booleans()):
            state = plain(gate.snapshot())
            gate = ScaleGate(schemas=SCHEMAS, sources=NAMES)
            gate.restore(state)
    assert order == list(range(len(arrivals)))
