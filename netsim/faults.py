"""Faults as data: what goes wrong with a link or an actor, from when to when in virtual time.

A fault is a row: a kind, whom it is about, a span of virtual time that may come back, an amount.
`Faults` answers what is wrong at a time. Repetition is arithmetic: no span is stored, so that a run
may last as long as it likes.

| kind | of | amount | what happens from start to end |
|---|---|---|---|
| ``loss`` | links | ``rate`` | so many frames are lost |
| ``duplicate`` | links | ``rate`` | so many frames arrive twice |
| ``reorder`` | links | ``rate``, ``delay`` | so many come later, and are overtaken |
| ``delay`` | links | ``delay`` | every frame takes so much longer |
| ``partition`` | links | | no frame gets through |
| ``bandwidth`` | links | ``factor`` | the bandwidth is multiplied by it |
| ``pause`` | actors | | no service goes on; messages still arrive |
| ``slow`` | actors | ``factor`` | service takes so many times as long, a million at the most |
| ``skew`` | actors | ``offset`` | the clock that an actor reads is ahead by so much |
| ``stall`` | sources | | no data comes: timers wait |
| ``crash`` | actors | | the process is gone; at the end it starts again |
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from fnmatch import fnmatchcase
from functools import cache, lru_cache, partial, reduce
from itertools import compress
from math import ceil, prod
from typing import Literal, NamedTuple

import numpy as np

from netsim.network import NetworkError

LinkKind = Literal["loss", "duplicate", "reorder", "delay", "partition", "bandwidth"]
ActorKind = Literal["pause", "slow", "skew", "stall", "crash"]

FOREVER_NS = 2**63
"""Later than any run, whose times are int64: the end of what has none."""

_ROUNDING_NS = 1e-6
"""What sums of fractions of a nanosecond may be off by."""

_DRAWN = 1024
"""Random moments of a fault remembered at the most: several actors ask for the same ones."""

_SLOWEST = 1e6
"""So many times as long service takes at the most, however many faults meet: beyond it no run ends.
It is also the most that a scenario may say of one fault."""

_IN_A_ROW = 100_000
"""So many spans without a gap are taken to go on for ever: it takes a tenth of a second to see."""

_MUST_END = ("partition", "pause", "stall", "crash")


@dataclass(frozen=True, kw_only=True)
class _Timed:
    """When a fault is active."""

    kind: str
    """What goes wrong, see the table above."""
    from_ns: int = 0
    to_ns: int | None = None
    """Virtual nanoseconds, the end excluded; None: to the end of the run."""
    every_ns: int | None = None
    """From the start of one span to the start of the next; None: it does not come back."""
    random: bool = False
    """In each period of *every_ns* the span begins at a moment drawn from the run's seed, not at
    the period's start."""

    def __post_init__(self) -> None:
        if self.to_ns is None:
            if self.kind in _MUST_END:
                raise NetworkError(f"a {self.kind} needs an end: nothing goes on until it is over")
            if self.every_ns is not None:
                raise NetworkError("what comes back needs an end: after it, it can come back")
            length_ns = FOREVER_NS
        else:
            length_ns = self.to_ns - self.from_ns
        if self.from_ns < 0 or length_ns < 1:
            raise NetworkError("the end must come after the start, and that at 0 or later")
        if self.every_ns is not None and self.every_ns <= length_ns:
            raise NetworkError("must come back less often than it is long: it would never be over")
        if self.random and self.every_ns is None:
            raise NetworkError("random moments need a period to be drawn in: set every")


@dataclass(frozen=True, kw_only=True)
class LinkFault(_Timed):
    """A fault of the links from sites to sites, in one direction."""

    kind: LinkKind
    sender: str = "*"
    receiver: str = "*"
    """Patterns of the sites' names, as of a shell: ``*`` is any part of a name."""
    rate: float = 0.0
    """Share of the frames, 0 to less than 1."""
    delay_ns: int = 0
    """What a frame takes longer; with ``reorder``, at most."""
    factor: float = 1.0
    """What the bandwidth is multiplied by, more than 0."""


@dataclass(frozen=True, kw_only=True)
class ActorFault(_Timed):
    """A fault of actors, or of all that live at a site."""

    kind: ActorKind
    actor: str = "*"
    site: str = "*"
    """Patterns of names, as of a shell; an actor is meant where both match."""
    factor: float = 1.0
    """How many times as long service takes, 1 or more."""
    offset_ns: int = 0
    """How far the clock is ahead; behind where it is negative."""


Fault = LinkFault | ActorFault


class FaultSpans:
    """The spans of virtual time in which one fault is active; they do not overlap."""

    __slots__ = ("_every_ns", "_found", "_found_ns", "_from_ns", "_length_ns", "_start_ns")

    def __init__(self, fault: Fault, seed: Sequence[int]) -> None:
        self._from_ns = fault.from_ns
        self._length_ns = (FOREVER_NS if fault.to_ns is None else fault.to_ns) - fault.from_ns
        self._every_ns = fault.every_ns
        drawn = partial(self._drawn_ns, seed)
        self._start_ns = lru_cache(_DRAWN)(drawn) if fault.random else self._regular_ns
        self._found_ns, self._found = 0, (0, 0)

    def at(self, now: int) -> tuple[int, int]:
        """Return start and end of the span that *now* is in, or of the next one.

        Both are `FOREVER_NS` where none comes any more.
        """
        if not self._found_ns <= now < self._found[1]:  # most ask about the same span again
            self._found_ns, self._found = now, self._find(now)
        return self._found

    def _find(self, now: int) -> tuple[int, int]:
        if self._every_ns is None:
            end_ns = self._from_ns + self._length_ns
            return (self._from_ns, end_ns) if now < end_ns else (FOREVER_NS, FOREVER_NS)
        number = max(0, (now - self._from_ns) // self._every_ns)
        start_ns = self._start_ns(number)
        if now >= start_ns + self._length_ns:
            start_ns = self._start_ns(number + 1)
        return start_ns, start_ns + self._length_ns

    def active(self, now: int) -> bool:
        """Return whether the fault is active at *now*."""
        return self.at(now)[0] <= now

    def until(self, end_ns: int) -> Iterator[tuple[int, int]]:
        """Yield the spans that begin before *end_ns*, in order."""
        start_ns, stop_ns = self.at(0)
        while start_ns < end_ns:
            yield start_ns, stop_ns
            start_ns, stop_ns = self.at(stop_ns)

    def _regular_ns(self, number: int) -> int:
        """Return the start of a span that comes back, by its number."""
        assert self._every_ns is not None
        return self._from_ns + number * self._every_ns

    def _drawn_ns(self, seed: Sequence[int], number: int) -> int:
        """Return the start of one that begins at a random moment of its period."""
        assert self._every_ns is not None
        rng = np.random.default_rng([*seed, number])
        return self._regular_ns(number) + int(rng.integers(self._every_ns - self._length_ns + 1))


class LinkState(NamedTuple):
    """What is wrong with a link, in one direction, at a time."""

    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    """Shares of the frames, 0 to less than 1."""
    reorder_ns: int = 0
    """How much later a frame that is reordered comes, at most."""
    delay_ns: int = 0
    """How much longer every frame takes."""
    cut: bool = False
    """Whether no frame gets through."""
    bandwidth: float = 1.0
    """What the bandwidth is multiplied by."""


SOUND = LinkState()
"""Nothing is wrong."""


class LinkFaults:
    """The faults of a link in one direction; where several meet, they add up."""

    def __init__(self, rows: Sequence[tuple[LinkFault, FaultSpans]]) -> None:
        faults = [fault for fault, _ in rows]
        self._spans = [spans for _, spans in rows]
        self._state = cache(lambda *there: _together(compress(faults, there)))
        self._cuts = [spans for fault, spans in rows if fault.kind == "partition"]

    def at(self, now: int) -> LinkState:
        """Return what is wrong at a time.

        Raise :exc:`NetworkError` where partitions follow on each other for ever.
        """
        state = self._state(*[spans.at(now)[0] <= now for spans in self._spans])
        if state.cut:
            _over("partition", self._cuts, now)
        return state


def _together(faults: Iterable[LinkFault]) -> LinkState:
    """Return what is wrong where all of *faults* are there."""
    of_kind: defaultdict[str, list[LinkFault]] = defaultdict(list)
    for fault in faults:
        of_kind[fault.kind].append(fault)

    def rate(kind: LinkKind) -> float:
        """Return the chance that at least one fault of a kind happens."""
        return reduce(lambda one, fault: 1 - (1 - one) * (1 - fault.rate), of_kind[kind], 0.0)

    return LinkState(
        loss=rate("loss"),
        duplicate=rate("duplicate"),
        reorder=rate("reorder"),
        reorder_ns=max((fault.delay_ns for fault in of_kind["reorder"]), default=0),
        delay_ns=sum(fault.delay_ns for fault in of_kind["delay"]),
        cut="partition" in of_kind,
        bandwidth=prod(fault.factor for fault in of_kind["bandwidth"]),
    )


class ActorFaults:
    """The faults of one actor; where several meet, they add up.

    What asks them raises :exc:`NetworkError` where pauses, stalls or crashes follow on each other
    for ever.
    """

    def __init__(self, rows: Sequence[tuple[ActorFault, FaultSpans]]) -> None:
        self._pauses, self._stalls, self._crashes = (
            [spans for fault, spans in rows if fault.kind == kind]
            for kind in ("pause", "stall", "crash")
        )
        self.skews = [(fault.offset_ns, spans) for fault, spans in rows if fault.kind == "skew"]
        """How far the clock is ahead, and when."""
        self._slows = [(fault.factor, spans) for fault, spans in rows if fault.kind == "slow"]
        self._stretching = [row for row in rows if row[0].kind in ("pause", "slow")]
        self.stretches = bool(self._stretching)
        """Whether service can take longer than its work."""
        self._periods = _Periods.of(self._stretching)

    def paused_until(self, now: int) -> int:
        """Return when a pause is over; *now* where there is none."""
        return _over("pause", self._pauses, now)

    def stalled_until(self, now: int) -> int:
        """Return when a source has data again; *now* where it has."""
        return _over("stall", self._stalls, now)

    def crash(self, now: int) -> tuple[int, int] | None:
        """Return when the next crash is, at *now* or later, and when the actor starts again."""
        found = [(one, *one.at(now)) for one in self._crashes]
        starts_ns = [one.at(end)[0] if start < now else start for one, start, end in found]
        start_ns = min(starts_ns, default=FOREVER_NS)
        if start_ns == FOREVER_NS:
            return None
        return start_ns, _over("crash", self._crashes, start_ns)

    def offset_ns(self, now: int) -> int:
        """Return how far the actor's clock is ahead of virtual time."""
        return sum(offset_ns for offset_ns, spans in self.skews if spans.active(now))

    def slowed(self, now: int) -> float:
        """Return how many times as long service takes."""
        factor = 1.0
        for one, spans in self._slows:
            if spans.active(now):
                factor *= one
        return min(factor, _SLOWEST)

    def done_ns(self, started_ns: int, work_ns: int) -> int:
        """Return when a service of *work_ns* is done, given its pauses and slow-downs.

        It is `FOREVER_NS` or later where that is after the end of virtual time.
        """
        now, left_ns = started_ns, float(work_ns)
        while left_ns > _ROUNDING_NS and now < FOREVER_NS:
            paused_until = self.paused_until(now)
            if paused_until > now:
                now = paused_until
                continue
            factor, change_ns = self.slowed(now), self.next_change(now)
            if self._periods:
                change_ns = min(change_ns, self._periods.next(now))
            needed_ns = ceil(left_ns * factor - _ROUNDING_NS)
            if now + needed_ns <= change_ns:
                return now + needed_ns
            left_ns -= (change_ns - now) / factor
            now = change_ns
            if self._periods:
                now, left_ns = self._periods.skip(now, left_ns)
        return now

    def next_change(self, now: int) -> int:
        """Return the next time after *now* at which a pause or a slow-down begins or ends."""
        change_ns = FOREVER_NS
        for _, spans in self._stretching:
            for at_ns in spans.at(now):
                if now < at_ns < change_ns:
                    change_ns = at_ns
        return change_ns


def _over(kind: str, rows: Sequence[FaultSpans], now: int) -> int:
    """Return when none of the spans is active any more; one may begin where another ends."""
    for _ in range(_IN_A_ROW):
        before_ns = now
        for spans in rows:
            start_ns, end_ns = spans.at(now)
            if start_ns <= now:
                now = end_ns
        if now == before_ns:
            return now
    raise NetworkError(
        f"faults of kind {kind} follow on each other for ever, so that nothing goes on: leave some "
        "time in which none of them is active"
    )


class _Periods:
    """The periods of the pause or slow-down that comes back most often, to pass over many at once.

    A span lies within its period, so that all periods in which nothing else changes do equal work.
    """

    def __init__(self, fault: ActorFault, others: ActorFaults) -> None:
        assert fault.every_ns is not None
        assert fault.to_ns is not None
        self._from_ns, self._every_ns = fault.from_ns, fault.every_ns
        length_ns = fault.to_ns - fault.from_ns
        served_ns = length_ns / fault.factor if fault.kind == "slow" else 0
        self._work_ns = fault.every_ns - length_ns + served_ns
        self._others = others

    @classmethod
    def of(cls, rows: Sequence[tuple[ActorFault, FaultSpans]]) -> _Periods | None:
        """Return the most frequent repeating fault; None if none repeats."""
        repeated = [row for row in rows if row[0].every_ns]
        if not repeated:
            return None
        often = min(repeated, key=lambda row: row[0].every_ns or 0)
        return cls(often[0], ActorFaults([row for row in rows if row is not often]))

    def next(self, now: int) -> int:
        """Return when the next one begins, after *now*."""
        return now + self._every_ns - (now - self._from_ns) % self._every_ns

    def skip(self, now: int, left_ns: float) -> tuple[int, float]:
        """Return *now* after the periods in which not all of the work is done, and what is left.

        Before the first one, and within one, nothing is passed over.
        """
        others = self._others
        if (
            now < self._from_ns
            or (now - self._from_ns) % self._every_ns
            or others.paused_until(now) > now
        ):
            return now, left_ns
        work_ns = self._work_ns / others.slowed(now)
        unchanged = (others.next_change(now) - now) // self._every_ns
        number = max(0, min(unchanged, int(left_ns / work_ns) - 1))
        return now + number * self._every_ns, left_ns - number * work_ns


@dataclass(eq=False)
class Faults:
    """All faults of a run."""

    faults: Sequence[Fault]
    """What goes wrong."""
    _: KW_ONLY
    placement: Mapping[str, str]
    """Actor name to the site it lives on."""
    sources: Collection[str]
    """Actors that feed the others; they alone can stall."""
    seed: int
    """The run's: random moments are drawn from it, and the row's place."""

    def __post_init__(self) -> None:
        self.rows = [
            (fault, FaultSpans(fault, [self.seed, at])) for at, fault in enumerate(self.faults)
        ]
        """The faults in their order, each with when it is active."""

    def on_link(self, sender: str, receiver: str) -> LinkFaults | None:
        """Return the faults of the way from one site to another; None where there never are any."""
        rows = [
            (fault, spans)
            for fault, spans in self.rows
            if isinstance(fault, LinkFault)
            and fnmatchcase(sender, fault.sender)
            and fnmatchcase(receiver, fault.receiver)
        ]
        return LinkFaults(rows) if rows else None

    def on_actor(self, name: str) -> ActorFaults | None:
        """Return the faults of an actor; None where there never are any."""
        site = self.placement[name]
        rows = [
            (fault, spans)
            for fault, spans in self.rows
            if isinstance(fault, ActorFault)
            and fnmatchcase(name, fault.actor)
            and fnmatchcase(site, fault.site)
            and (fault.kind != "stall" or name in self.sources)
        ]
        return ActorFaults(rows) if rows else None
