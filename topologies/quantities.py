"""Quantities among the parameters of topologies, as people write them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, GetCoreSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema, core_schema

from joins.queries.windows import WindowError, read_extent

_DAY_NS = 86_400_000_000_000


@dataclass(frozen=True)
class Extent:
    """For ``Annotated[str, Extent(...)]``: a part of a window, or one of some words.

    Attributes
    ----------
    words
        What is allowed beside a number of tuples and a time.
    """

    words: tuple[str, ...] = ()

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
        except WindowError:
            size = 0
        if size < 1:
            words = "".join(f"{word!r}, " for word in self.words)
            raise ValueError(
                f"must be {words}a number of tuples such as '1000' or a time such as '25 ms', and "
                "more than nothing"
            )
        return text


def _nanoseconds(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        kind, size = read_extent(value)
    except WindowError:
        kind, size = "", 0
    if kind != "time":
        raise ValueError("must be a time such as '25 ms'")
    return size


def _at_most_a_day(nanoseconds: int) -> int:
    if not 1 <= nanoseconds <= _DAY_NS:
        raise ValueError("must be at least 1 ns and at most a day")
    return nanoseconds


Duration = Annotated[
    int,
    BeforeValidator(_nanoseconds),
    AfterValidator(_at_most_a_day),
    WithJsonSchema({"type": ["string", "integer"], "format": "duration"}),
]
"""For parameters: a time such as "25 ms", or whole nanoseconds; at least 1 ns, at most a day."""
