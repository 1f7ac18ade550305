"""Windows, how queries spell them, and which stored positions each tuple sees through them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
from quantiphy import Quantity, UnitConversion, UnknownConversion, UnknownScaleFactor

from joins.arrivals import Arrivals
from joins.codes import GREATEST, LEAST
from joins.sliding_column import SlidingColumn
from joins.state import Stateful, storable

_NUMBER = re.compile(r"\d+")
_NAME = re.compile(r"[A-Za-z_]\w*")
_BEFORE_UNIT = re.compile(r"[+-]?[\d.,_]+([eE][+-]?\d+)?")

QUANTITY_MAX = 100
"""Characters of a number with its unit: quantiphy takes seconds to read some thousand digits."""

_LENGTH_END = 2**62
"""A window is shorter than this (146 years), so that sums of its length and slide fit in int64."""


class _Time(Quantity):
    """A quantity in whose units no letter is a factor: ``min`` is not thousandths of an ``in``."""


_Time.set_prefs(known_units="min minute minutes h d")
UnitConversion("s", "h", 3_600)
UnitConversion("s", "d", 86_400)


class ExtentError(ValueError):
    """An impossible window or interval; names the value and what is allowed."""


def read_extent(text: str) -> tuple[str, int]:
    """Read a length or a slide: ``("count", tuples)`` or ``("time", nanoseconds)``.

    Raise :exc:`ExtentError` for a name without a value, and for what is neither.
    """
    if _NAME.fullmatch(text):
        raise ExtentError(
            f"{text!r} has no value: bind it to a number of tuples or a time, as in "
            f"bind={{{text!r}: 1000}} or --set bind.{text}=1000"
        )
    try:
        if _NUMBER.fullmatch(text):
            return "count", int(text)  # Python reads no number of thousands of digits
        if len(text) > QUANTITY_MAX:
            raise ValueError
        return "time", _nanoseconds(text)
    except (ValueError, OverflowError, UnknownConversion, UnknownScaleFactor):
        raise ExtentError(
            f"{text!r} is neither a number of tuples ('1000') nor a time "
            "('2 hours', '10 min', '25 ms')"
        ) from None


def _nanoseconds(text: str) -> int:
    """Return a time with its unit in whole nanoseconds; raise what `_seconds` does."""
    seconds = _seconds(text)
    number = _BEFORE_UNIT.match(text)
    if number is None or not 1e-9 <= abs(seconds) < 1e300:
        return round(seconds * 1e9)
    # Of some months, neighbouring nanoseconds are the same float: only the unit goes through one.
    unit = Decimal(repr(_seconds("1" + text[number.end() :])))
    return round(Decimal(re.sub("[,_]", "", number[0])) * unit.scaleb(9))


def _seconds(text: str) -> float:
    """Return a time with its unit in seconds, as quantiphy reads it; raise its errors."""
    quantity = _Time(text)
    return float(quantity if quantity.units == "s" else quantity.scale("s"))


@storable
@dataclass(frozen=True, kw_only=True)
class Window:
    """A sliding window over one stream."""

    kind: str
    """``count``: length and slide are numbers of tuples; ``time``: nanoseconds of event time."""
    length: int
    slide: int
    """W_L and W_s, at least 1; the length is a whole number of slides, because windows expire by
    whole slides."""
    semantics: str = "sliding"
    """``sliding``: a tuple that k tuples of the window's stream precede sees positions from floor(k
    / W_s) * W_s - (W_L - W_s) on; by time, event times from the same formula in its own.
    ``precise`` (time only): exactly the event times in [ts - W_L, ts)."""

    def __post_init__(self) -> None:
        unit = {"count": "tuples", "time": "ns"}.get(self.kind)
        if unit is None:
            raise ExtentError(f"window of kind {self.kind!r}: must be count or time")
        if self.length < 1 or self.slide < 1:
            raise ExtentError(
                f"window of length {self.length} {unit} and slide {self.slide} {unit}: both must "
                "be at least 1"
            )
        if self.length >= _LENGTH_END:
            raise ExtentError(
                f"window of length {self.length} {unit}: it must be less than {_LENGTH_END}"
            )
        if self.slide > self.length:
            raise ExtentError(
                f"the slide of {self.slide} {unit} is longer than the window of {self.length} "
                f"{unit}: it may be {self.length} {unit} at the most"
            )
        if self.length % self.slide:
            near = self.length // self.slide * self.slide
            raise ExtentError(
                f"the window of {self.length} {unit} is not a whole number of slides of "
                f"{self.slide} {unit}: {near} or {near + self.slide} {unit} would be"
            )
        if self.semantics not in ("sliding", "precise"):
            raise ExtentError(f"window semantics {self.semantics!r}: must be sliding or precise")
        if self.semantics == "precise" and self.kind != "time":
            raise ExtentError("a precise window is a window of time; this one counts tuples")

    def bound(self, at: np.ndarray) -> np.ndarray:
        """Return the least position (count) or event time (time) seen from *at*, int64.

        *at* is the number of tuples that precede, or the probing tuple's own event time; nothing
        is before the least int64.
        """
        back: int | np.ndarray = self.length
        if self.semantics == "sliding":
            back = self.length - self.slide + at % self.slide
        first_seen: np.ndarray = np.maximum(at, LEAST + back) - back
        return first_seen

    def seen_until(self, at: np.ndarray) -> np.ndarray:
        """Return the greatest event time from which *at*, event times too, is still seen.

        No event time is after the greatest int64.
        """
        ahead: int | np.ndarray = self.length
        if self.semantics == "sliding":
            ahead = self.length - 1 - at % self.slide
        last_seen: np.ndarray = np.minimum(at, GREATEST - ahead) + ahead
        return last_seen

    def seen(
        self, times: np.ndarray, first: int, at: np.ndarray, preceding: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions that tuples see: the first, and the one after the last; int64.

        *at* are their event times, *preceding* how many tuples of the window's stream precede each,
        and *times* that stream's event times from position *first* on; by count it needs none.
        """
        if self.kind == "count":
            return np.maximum(self.bound(preceding), 0), preceding
        if self.semantics == "precise":
            preceding = np.minimum(preceding, first + np.searchsorted(times, at))
        return np.minimum(first + np.searchsorted(times, self.bound(at)), preceding), preceding


@storable
@dataclass(frozen=True, kw_only=True)
class WindowClause:
    """A window as a query spells it; *slide* and *length* may be names for `bind` to replace.

    A plain number counts tuples and a quantity such as ``10 min`` is event time. SPO-Join's Q1
    writes ``'10' ON '60'`` and means minutes in its text, but its experiments run that query over
    windows by count; so a number without a unit is a count here.
    """

    slide: str
    length: str
    precise: bool = False

    def __str__(self) -> str:
        precise = " PRECISE" if self.precise else ""
        return f"SLIDE INTERVAL '{self.slide}' ON '{self.length}'{precise}"

    @property
    def names(self) -> set[str]:
        """Slide and length as spelt, among them the names that may be bound."""
        return {self.slide, self.length}

    def bind(self, values: dict[str, str]) -> WindowClause:
        """Replace names by their values."""
        return replace(
            self,
            slide=values.get(self.slide, self.slide),
            length=values.get(self.length, self.length),
        )

    @property
    def window(self) -> Window:
        """The window.

        Raise :exc:`ExtentError` when a name is not bound, or the window is impossible.
        """
        slide_kind, slide = read_extent(self.slide)
        length_kind, length = read_extent(self.length)
        if slide_kind != length_kind:
            raise ExtentError("slide and length must both count tuples or both be times")
        return Window(
            kind=length_kind,
            length=length,
            slide=slide,
            semantics="precise" if self.precise else "sliding",
        )


@storable
@dataclass(frozen=True, kw_only=True)
class StreamWindows:
    """A window for each stream: ``WINDOW R AS (...), S AS (...)``."""

    streams: tuple[str, ...]
    clauses: tuple[WindowClause, ...]
    """Names as the query lists them here, and the window of each."""

    def __str__(self) -> str:
        return ", ".join(
            f"{stream} AS ({clause})"
            for stream, clause in zip(self.streams, self.clauses, strict=True)
        )

    @property
    def names(self) -> set[str]:
        """Slides and lengths as spelt, among them the names that may be bound."""
        return {name for clause in self.clauses for name in clause.names}

    def bind(self, values: dict[str, str]) -> StreamWindows:
        """Replace names by their values."""
        return replace(self, clauses=tuple(clause.bind(values) for clause in self.clauses))


class WindowBounds(Stateful):
    """Turns windows into bounds of position, for arrivals in their order.

    Only an actor that receives all arrivals in order can do so; those behind it need no window
    state. Memory is bounded by the windows: the event times of each stream that can still be seen.

    Joins drop what the latest probes no longer see. While one stream is silent nothing probes the
    other, and a join would store all of it: `overdue` is what to drop then. It moves up to the
    horizon when more tuples of a stream have come since the last probe, or since it moved last,
    than its largest window and the latest arrivals have together. It does not move while both
    streams flow.

    Parameters
    ----------
    windows
        One per stream, over that stream: two, or one of a stream that probes itself.
    """

    state = ("_arrived", "_first", "_ts", "_largest", "_reached", "_overdue")

    def __init__(self, windows: Sequence[Window]) -> None:
        self._windows = tuple(windows)
        streams = len(self._windows)
        self._arrived = [0] * streams
        self._first = [0] * streams
        self._ts = [SlidingColumn(np.int64) for _ in self._windows]
        self._largest = [one.length if one.kind == "count" else 0 for one in self._windows]
        self._reached = [0] * streams  # by the last probe, or by what is overdue
        self._overdue = [0] * streams

    def advance(self, arrivals: Arrivals) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the bounds of the next *arrivals*.

        Per probing stream for each new tuple the positions it sees in the stream it probes: the
        first, and the one after the last; int64.
        """
        latest = []
        before = list(self._arrived)
        for stream, part in enumerate(arrivals.parts):
            self._arrived[stream] += len(part.ts)
            if self._windows[stream].kind == "time":
                self._ts[stream].append(part.ts)
            latest += part.ts[-1:].tolist()
        bounds = []
        for stream, (part, seq) in enumerate(zip(arrivals.parts, arrivals.seq, strict=True)):
            probed = len(self._windows) - 1 - stream
            preceding = before[probed] + arrivals.seq[probed].searchsorted(seq)
            times, first = self._ts[probed].values, self._first[probed]
            start, stop = self._windows[probed].seen(times, first, part.ts, preceding)
            bounds.append((start, stop))
            if len(stop):
                self._reached[probed] = max(self._reached[probed], int(stop[-1]))
        if latest:
            self._forget(max(latest))
        self._find_overdue(sum(map(len, arrivals.parts)))
        return bounds

    @property
    def horizon(self) -> tuple[int, ...]:
        """Per stream the least position that any later arrival can see."""
        horizon = list(self._first)
        for stream, window in enumerate(self._windows):
            if window.kind == "count":
                horizon[stream] = max(0, int(window.bound(np.array(self._arrived[stream]))))
        return tuple(horizon)

    @property
    def overdue(self) -> tuple[int, ...]:
        """Per stream the position below which to drop it, though no probe shows it; 0 at first."""
        return tuple(self._overdue)

    def _find_overdue(self, latest_rows: int) -> None:
        for stream, arrived in enumerate(self._arrived):
            if arrived - self._reached[stream] > self._largest[stream] + latest_rows:
                self._reached[stream] = arrived
                self._overdue[stream] = self.horizon[stream]

    def _forget(self, latest: int) -> None:
        """Drop event times that no tuple from *latest* on can see, whichever stream it is of."""
        for stream, window in enumerate(self._windows):
            if window.kind == "time":
                times, oldest = self._ts[stream], window.bound(np.array([latest]))
                unseen = int(np.searchsorted(times.values, oldest, "left")[0])
                times.drop(unseen)
                self._first[stream] += unseen
                self._largest[stream] = max(self._largest[stream], len(times))
