"""A payload's size, rows and span follow from the fields that it names."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields

import numpy as np

from actors.protocol import HEADER_BYTES, NO_SPAN, Payload
from joins.batch import Batch


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
