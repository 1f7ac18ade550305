"""Interval joins: how far two tuples may be apart in event time, as spelt and as evaluated."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from joins.codes import GREATEST, LEAST
from joins.queries.conditions import Field
from joins.queries.windows import ExtentError, read_extent
from joins.state import storable

TIME_FIELD = "ts"
"""A stream's column of event times, int64 nanoseconds. A query may spell them so, whatever column
of the raw data they came from."""

_FARTHEST = 2**62
"""A bound nearer than this (146 years) fits any arithmetic on event times."""


@storable
@dataclass(frozen=True, kw_only=True)
class IntervalEnd:
    """One end of an interval as spelt: a sign (``+``, ``-``, or none) and a quantity of time."""

    sign: str = ""
    extent: str = ""

    def __str__(self) -> str:
        return f" {self.sign} INTERVAL '{self.extent}'" if self.sign else ""

    @property
    def ns(self) -> int:
        """Its distance from the base tuple's event time, in nanoseconds.

        Raise :exc:`ExtentError` when it is no time, or too far.
        """
        if not self.sign:
            return 0
        kind, distance = read_extent(self.extent)
        if kind != "time":
            raise ExtentError(f"{self.extent!r} has no unit: write a time, as in '100 ms'")
        if abs(distance) >= _FARTHEST:
            raise ExtentError(f"{self.extent!r} is too far: a bound is less than 146 years")
        return -distance if self.sign == "-" else distance


@storable
@dataclass(frozen=True, kw_only=True)
class IntervalClause:
    """``probe.ts BETWEEN base.ts + lower AND base.ts + upper``, as a query spells it.

    Each event time is called `TIME_FIELD`, or by the name of the raw data's column.
    """

    probe: Field
    base: Field
    """The event times of the two streams: *probe*'s is within the interval around *base*'s."""
    lower: IntervalEnd
    upper: IntervalEnd
    """The ends; a quantity may be a name that `bind` replaces."""
    place: int = field(default=0, compare=False)
    """How many predicates the query spells before it."""

    def __str__(self) -> str:
        base = self.base.text
        return f"{self.probe.text} BETWEEN {base}{self.lower} AND {base}{self.upper}"

    @property
    def fields(self) -> tuple[Field, Field]:
        """The event times of both streams."""
        return self.probe, self.base

    @property
    def names(self) -> set[str]:
        """The quantities as spelt, among them the names that may be bound."""
        return {end.extent for end in (self.lower, self.upper) if end.sign}

    def bind(self, values: dict[str, str]) -> IntervalClause:
        """Replace names among the quantities by their values."""
        lower, upper = (
            replace(end, extent=values.get(end.extent, end.extent))
            for end in (self.lower, self.upper)
        )
        return replace(self, lower=lower, upper=upper)

    @property
    def interval(self) -> Interval:
        """The interval; raise :exc:`ExtentError` when no pair of tuples can satisfy it."""
        lower_ns, upper_ns = self.lower.ns, self.upper.ns
        if lower_ns > upper_ns:
            raise ExtentError("its first end is after its second: no tuple is between them")
        return Interval(base=self.base.stream, lower_ns=lower_ns, upper_ns=upper_ns)


@storable
@dataclass(frozen=True, kw_only=True)
class Interval:
    """``base.ts + lower_ns <= probe.ts <= base.ts + upper_ns`` (PPOIJ, equation 1)."""

    base: int
    """Position of the base stream in the query; the other one is the probe stream."""
    lower_ns: int
    upper_ns: int
    """Nanoseconds, of any sign."""

    def offsets(self, stream: int) -> tuple[int, int]:
        """Return how much earlier and later a partner of a tuple of *stream* may be at the most.

        Both in nanoseconds, of any sign, added to its event time.
        """
        if stream == self.base:
            return self.lower_ns, self.upper_ns
        return -self.upper_ns, -self.lower_ns

    def horizon(self, stream: int, watermark: int) -> int:
        """Return the least event time of a stored tuple of *stream* that may still find a partner.

        Every tuple that is yet to come is as new as *watermark* or newer.
        """
        _, upper = self.offsets(stream)
        return max(LEAST, min(GREATEST, watermark - upper))
