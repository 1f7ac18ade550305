"""A payload's size, rows and span follow from the fields that it names."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import ClassVar, Literal, get_origin, get_type_hints

import numpy as np
import pytest

import actors
from actors.hosting.inline import RecordingContext
from actors.protocol import HEADER_BYTES, NO_SPAN, Payload
from actors.results import Answers
from actors.source import Fed
from actors.stream_source import Rows, SourceShare
from joins.arrivals import Arrivals
from joins.batch import Batch
from joins.matches import Matches
from tests.toys import Parcel


@dataclass(frozen=True, slots=True)
class _Everything(Payload):
    array: np.ndarray
    parts: tuple[Batch, ...]
    numbers: tuple[int, ...]
    number: int
    absent: np.ndarray | None
    unnamed: np.ndarray
    span: tuple[int, int]

    bytes_of = ("array", "parts", "numbers", "number", "absent")
    rows_of = ("array", "parts")


@dataclass(frozen=True, slots=True)
class _Nothing(Payload):
    unnamed: tuple[int, ...] = field(default=(1, 2))


def test_a_payload_has_the_bytes_and_rows_of_its_named_fields() -> None:
    part = Batch(id=np.arange(3), ts=np.arange(3), key=np.arange(3), fields={"x": np.arange(3)})
    payload = _Everything(np.arange(5), (part, part), (7, 8, 9), 1, None, np.arange(9), (4, 6))
    assert payload.nbytes == HEADER_BYTES + 5 * 8 + 2 * 3 * 4 * 8 + 3 * 8 + 8
    assert payload.rows == 5 + 3 + 3
    assert payload.span == (4, 6)


def test_a_payload_without_named_fields_is_its_frame() -> None:
    assert (_Nothing().nbytes, _Nothing().rows, _Nothing().span) == (HEADER_BYTES, 0, NO_SPAN)


def test_a_field_named_span_has_no_default() -> None:
    (span,) = (f for f in fields(_Everything) if f.name == "span")
    assert span.default is MISSING


SMALL = {"stream", "streams", "predicate", "share", "pe", "worker", "step", "round", "channel"}
"""Numbers of which part of the system something is: a byte or two each."""
UNSHIPPED = {"span", "born_ns"}
"""What only the trace and the measured latencies are made from."""


def payloads() -> Iterator[type[Payload]]:
    """Yield every class of payload whose size follows from the fields that it names."""
    for module in pkgutil.walk_packages(actors.__path__, "actors."):
        if not module.name.startswith("actors.hosting"):
            importlib.import_module(module.name)
    kinds = [Payload]
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        # A dataclass with slots is made anew, and the class it is made from may live on.
        ours = getattr(sys.modules[kind.__module__], kind.__name__, None) is kind
        ours &= kind.__module__.startswith("actors.") and is_dataclass(kind)
        if ours and kind.nbytes is Payload.nbytes and not kind.__subclasses__():
            yield kind


def test_what_a_payload_does_not_count_has_room_in_its_frame() -> None:
    """Three numbers in a message's frame, one in that of a part; arrays are counted, or nothing."""
    kinds = set(payloads())
    assert len(kinds) > 20
    for kind in sorted(kinds, key=lambda kind: kind.__name__):
        numbers = 0
        for name, hint in get_type_hints(kind).items():
            if get_origin(hint) is ClassVar or name in {*kind.bytes_of, *UNSHIPPED, *SMALL}:
                continue
            if kind.__name__ == "WindowUpdate" and name == "ids":
                continue  # consecutive positions, that follow on those of the update before
            assert hint in (int, bool) or get_origin(hint) is Literal, (kind, name, hint)
            numbers += hint is int
        # A part without a frame is in that of the message.
        room = {0: 2, 16: 1, HEADER_BYTES: 3}[kind.frame_bytes]
        assert numbers <= room, (kind, numbers)


def test_messages_without_tuples_have_bytes_and_tuples_their_arrival_numbers() -> None:
    nothing = np.empty(0, np.int64)
    batch = Batch(id=np.arange(3), ts=np.arange(3), key=np.arange(3), fields={})
    none = batch.take(nothing)
    assert Fed(Arrivals((none,), (nothing,)), (nothing,)).nbytes == HEADER_BYTES
    arrivals = Arrivals((batch,), (np.arange(3),))
    assert Fed(arrivals, (nothing,)).nbytes == HEADER_BYTES + batch.nbytes + 3 * 8
    assert SourceShare(Rows(none, nothing, nothing), watermark=5, last=False).nbytes == HEADER_BYTES
    found = Matches(
        stream=0,
        probe_id=np.arange(2),
        count=np.array([1, 3]),
        fingerprint=np.zeros(2, np.uint64),
    )
    assert Answers((found,), (nothing,), NO_SPAN).nbytes == HEADER_BYTES + 2 * 16 + 4 * 16


@pytest.mark.parametrize("to", [-1, 2, (0, -1)])
def test_a_receiver_that_is_not_there_is_refused(to: int | tuple[int, ...]) -> None:
    context = RecordingContext("a", {"out": ("b", "c")}, 0)
    with pytest.raises(IndexError, match=r"to = .*; it has receivers 0 to 1"):
        context.send("out", Parcel(0, 8), to=to)
