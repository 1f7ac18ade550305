"""Quantities as people write them in configurations: ``"25 ms"``, ``"1 Mbps"``, ``"10 min"``."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, GetCoreSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema, core_schema
from quantiphy import Quantity

from joins.queries.windows import QUANTITY_MAX, ExtentError, read_extent

_DAY_NS = 86_400_000_000_000


@dataclass(frozen=True)
class Extent:
    """For ``Annotated[str, Extent(...)]``: a part of a window, or one of some words."""

    words: tuple[str, ...] = ()
    """What is allowed beside a number of tuples and a time."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Return how pydantic checks values of this kind."""
        return core_schema.no_info_before_validator_function(self._check, handler(source))

    def _check(self, value: object) -> object:
        text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
        if not isinstance(text, str) or text in self.words:
            return text
        try:
            _, size = read_extent(text)
        except ExtentError:
            size = 0
        if size < 1:
            words = "".join(f"{word!r}, " for word in self.words)
            raise ValueError(
                f"must be {words}a number of tuples such as '1000' or a time such as '25 ms', and "
                "more than nothing"
            )
        return text


def _no_truth(value: object) -> object:
    """Refuse true and false, which pydantic takes for 1 and 0."""
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return value


NUMBER = BeforeValidator(_no_truth)
"""For ``Annotated[int, NUMBER]``: true is no number."""


def _nanoseconds(value: object) -> object:
    """Read a time as integer nanoseconds, in the words of a query's window; pass numbers on."""
    if isinstance(value, str):
        try:
            kind, size = read_extent(value)
        except ExtentError:
            kind, size = "", 0
        if kind != "time":
            raise ValueError("must be a time such as '25 ms', '10 us' or '2 s'")
        value = size
    if isinstance(value, int) and value > _DAY_NS:
        raise ValueError("must be at most a day")
    return value


def _at_least(least_ns: int, words: str) -> AfterValidator:
    """Return a check that a time is not shorter; pydantic's own would show bare nanoseconds."""

    def check(nanoseconds: int) -> int:
        if nanoseconds < least_ns:
            raise ValueError(f"must be at least {words} and at most a day")
        return nanoseconds

    return AfterValidator(check)


def _bound(value: object) -> object:
    """Refuse what is neither text nor a whole number in one message; pydantic has one per type."""
    if not isinstance(value, (str, int)) or isinstance(value, bool):
        raise ValueError("must be a number of tuples such as '1000' or a time such as '25 ms'")
    return value


Bound = Annotated[str | int, BeforeValidator(_bound)]
"""What is put for a query's placeholder."""


def _bits_per_second(value: object) -> object:
    """Read a bandwidth such as ``"1 Mbps"`` as integer bits per second; pass numbers on."""
    if not isinstance(value, str):
        return value
    try:
        if len(value) > QUANTITY_MAX:
            raise ValueError
        quantity = Quantity(value.replace("b/s", "bps"))
        if quantity.units != "bps" or not isfinite(quantity):
            raise ValueError
    except ValueError:
        raise ValueError(
            "must be a bandwidth in bits per second such as '1 Mbps' or '25 Gbps'"
        ) from None
    return round(float(quantity))


_TIME = WithJsonSchema({"type": ["string", "integer"], "format": "duration"})

Nanoseconds = Annotated[int, BeforeValidator(_nanoseconds), NUMBER, _TIME]
"""A time such as "25 ms", or whole nanoseconds; at most a day, so that the sum of many stays far
inside virtual time, which is int64."""

Duration = Annotated[Nanoseconds, _at_least(1, "1 ns"), _TIME]
"""The same, of at least 1 ns."""

TimeFromZero = Annotated[Nanoseconds, _at_least(0, "0"), _TIME]
"""The same, or nothing."""

Patience = Annotated[Nanoseconds, _at_least(3_000_000_000, "3 s"), _TIME]
"""The same, of at least 3 s."""

BitsPerSecond = Annotated[
    int,
    BeforeValidator(_bits_per_second),
    NUMBER,
    WithJsonSchema({"type": ["string", "integer"], "format": "bandwidth"}),
]
"""A bandwidth such as "1 Mbps", or whole bits per second."""
