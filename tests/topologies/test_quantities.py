"""Quantities are read as people write them, and refused by what is allowed."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from topologies.quantities import BitsPerSecond, Duration


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Duration, "25 ms", 25_000_000),
        (Duration, "2 min", 120_000_000_000),
        (BitsPerSecond, "1 Mbps", 1_000_000),
        (BitsPerSecond, "25 Gb/s", 25_000_000_000),
    ],
)
def test_a_quantity_is_read(kind: Any, text: str, value: int) -> None:
    assert TypeAdapter(kind).validate_python(text) == value


@pytest.mark.timeout(10)  # the patterns of what reads them take minutes for so many digits
@pytest.mark.parametrize(("kind", "unit"), [(Duration, "ms"), (BitsPerSecond, "Mbps")])
def test_a_number_too_long_to_be_a_quantity_is_refused_at_once(kind: Any, unit: str) -> None:
    with pytest.raises(ValidationError, match="such as"):
        TypeAdapter(kind).validate_python(f"{'9' * 100_000} {unit}")
