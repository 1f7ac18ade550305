"""Quantities as people write them: ``"25 ms"``, ``"1 Mbps"``, ``"200 K"``."""

from __future__ import annotations

from math import isfinite
from typing import Annotated

from pydantic import BeforeValidator
from quantiphy import Quantity, UnknownConversion, UnknownScaleFactor

_DAY_NS = 86_400_000_000_000
"""The longest duration: the sum of many stays far inside virtual time, which is int64."""


def nanoseconds(value: object) -> object:
    """Read a duration such as ``"25 ms"`` as integer nanoseconds; pass whole numbers on.

    Raise :exc:`ValueError` saying what is allowed.
    """
    duration_ns = _read(value, "s", 1_000_000_000, 'a duration such as "25 ms", "10 us" or "2 s"')
    if isinstance(duration_ns, int) and duration_ns > _DAY_NS:
        raise ValueError(f"{value!r} is more than a day")
    return duration_ns


def bits_per_second(value: object) -> object:
    """Read a bandwidth such as ``"1 Mbps"`` as integer bits per second; pass whole numbers on.

    Raise :exc:`ValueError` saying what is allowed.
    """
    return _read(value, "bps", 1, 'a bandwidth in bits per second such as "1 Mbps" or "25 Gbps"')


def _read(value: object, unit: str, factor: int, allowed: str) -> object:
    if not isinstance(value, str):
        return value
    try:
        quantity = Quantity(value.replace("b/s", "bps").replace("µ", "u"))
        if quantity.units != unit:
            quantity = quantity.scale(unit)
        if not isfinite(quantity):
            raise ValueError
    except (ValueError, UnknownConversion, UnknownScaleFactor):
        raise ValueError(f"{value!r} is not {allowed}") from None
    return round(float(quantity) * factor)


Nanoseconds = Annotated[int, BeforeValidator(nanoseconds)]
BitsPerSecond = Annotated[int, BeforeValidator(bits_per_second)]
