"""One-way joins S_1 → S_2 between two sites: what their halves have in common, and what they ship.

Each algorithm (`actors.semijoins.algorithms`) has a half at the source N_1, where the tuples of S_1
are, and one at the destination N_2, where the window over S_2 is. Every message names its step and
the execution interval it belongs to, as the time *tick* at which that ends. The last one of a step
and interval is *final*. How a site learns that an interval is complete is its `Execution`: by
waiting δ, or by punctuations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from actors.protocol import FEEDBACK, NO_SPAN, Context, Payload
from joins.batch import Batch, Schema
from joins.queries.windows import Window
from joins.semijoins.bloom_filter import BloomFilter
from joins.semijoins.combinations import Combinations
from joins.semijoins.distinct_values import ValueChanges
from joins.semijoins.one_way_join import JoinAttributes, OneWayJoin
from joins.semijoins.operand_windows import Horizon, OperandWindow, Timeline
from joins.semijoins.stored_tuples import StoredTuples
from joins.state import Stateful
from joins.work import Work

FOREVER = 2**62
"""Later than any interval."""


@dataclass(frozen=True, kw_only=True)
class Execution:
    """When a one-way join may look into a window, and when a window may forget.

    In the paper's model what happened at t is known everywhere at t + δ (section 2.2). That is
    exact as long as no message takes longer; later ones are lost results.

    *punctuated* execution is the paper's future work: messages state up to which interval they are
    complete. It is exact whatever the latencies: a probe waits until the other site has announced
    its interval, and a tuple is removed when every site that may look for it has announced that it
    needs it no more. Every site announces every interval in which some stream has a tuple, at the
    cost of a message header.
    """

    punctuated: bool
    """Whether sites wait for punctuations; else for time to pass. Where they do, an interval
    without tuples is shipped, too: as a punctuation."""
    delta_ns: int
    """δ, by which probes of a copy of another site's window are delayed (Constraint 1)."""
    removal_ns: int
    """By which removals are delayed (Constraint 2). The paper says δ. That is too short where a
    probe has waited δ itself before it is shipped on: its tuples arrive up to 2 δ late. In a tree
    it is as much again for every join below."""

    def complete_at(self, tick: int, late_ns: int) -> int | None:
        """Return when an interval is complete; None where messages announce it.

        *late_ns* is what it takes after the interval's end: an output stream of a tree must be
        made, a copy of a window must be sent.
        """
        return None if self.punctuated else tick + late_ns

    def is_complete(self, tick: int, late_ns: int, heard: int, now: int) -> bool:
        """Return whether an interval is complete, where *heard* is the latest one announced."""
        at = self.complete_at(tick, late_ns)
        return heard >= tick if at is None else now >= at

    def may_remove(self, tick: int, done: int) -> int:
        """Return up to which interval what expired may be removed, when the one at *tick* ends.

        *done* is the latest interval of which all probes have come.
        """
        return done if self.punctuated else tick - self.removal_ns


@dataclass(frozen=True, kw_only=True)
class OneWayStep:
    """A one-way join of a plan, with all that its two sites need to carry it out."""

    number: int
    """Its place in the list of all steps of the plan."""
    algorithm: OneWayJoin
    """By which it is computed."""
    source: int
    destination: int
    """Sites N_1 and N_2, as positions of the streams that arrive there."""
    streams: tuple[int, ...]
    """Streams joined before, the head first; in a tree the operand S_1."""
    stored: int
    """S_2: the destination's stream, or in a tree an operand that is there."""
    attributes: JoinAttributes
    """Where they are compared with S_2."""
    window: Window | OperandWindow
    schema: Schema
    """Of S_2."""
    following: int | None = None
    """Number of the next step in the sequence; None after the last."""
    output: int | None = None
    """Number of the output stream that the results are of; None where they leave the system."""
    late_ns: int = 0
    """How long after an interval's end S_2 has all of it in the paper's model."""

    @property
    def is_last(self) -> bool:
        """Whether its results leave the system."""
        return self.following is None and self.output is None

    def tuple_store(self) -> StoredTuples:
        """Return an empty store of tuples of S_2."""
        return StoredTuples(stream=self.stored, schema=self.schema, attributes=self.attributes)


@dataclass(frozen=True, slots=True)
class PartialTuples(Payload):
    """Distinct join attribute values, a column per attribute: K_1, K'_1 or ΔV'_2."""

    values: tuple[np.ndarray, ...]

    frame_bytes = 0
    bytes_of = ("values",)

    def __len__(self) -> int:
        return len(self.values[0])


def _no_positions() -> np.ndarray:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowUpdate(Payload):
    """What happened to the next stream's window, for a site that stores a part of it."""

    expired: int = 0
    """k, tuples removed that had been shipped (Algorithm 8)."""
    values: ValueChanges | None = None
    """v_J and v_C (Algorithm 9)."""
    tuples: Batch | None = None
    """s_F, new tuples of values that were shipped before."""
    keep_from: int = 0
    """Positions below it are gone."""
    ids: np.ndarray = field(default_factory=_no_positions)
    ts: np.ndarray = field(default_factory=_no_positions)
    """int64, positions and event times of all new tuples, for count windows only: how many tuples
    precede a probing one cannot be seen in a part of the window, which the paper's section 3.3
    overlooks. Positions are consecutive, so that they need no bytes."""

    frame_bytes = 0
    bytes_of = ("values", "tuples", "ts")

    def __len__(self) -> int:
        values = len(self.values.counts) if self.values else 0
        return values + (len(self.tuples) if self.tuples else 0)


Content = Combinations | Batch | PartialTuples | BloomFilter | WindowUpdate
ContentT_co = TypeVar("ContentT_co", bound=Content, covariant=True)
OtherT = TypeVar("OtherT", bound=Content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipment(Payload, Generic[ContentT_co]):
    """Input, shipment or output of a plan's step for one execution interval."""

    step: int
    """Number of the one-way join in the plan."""
    tick: int
    """End of the execution interval it belongs to, virtual nanoseconds."""
    final: bool
    """Whether nothing more of this kind and interval follows."""
    content: ContentT_co
    """Full tuples of the streams joined so far (`Combinations`: B_1, or B'_1 where a semijoin
    reduced it) or of the next stream (`Batch`: B_2, or ΔW'_2), or what stands for them."""

    bytes_of = ("content",)
    rows_of = ("content",)

    @property
    def span(self) -> tuple[int, int]:
        """First and last arrival number of the newest tuples, where those are shipped."""
        if not (isinstance(self.content, Combinations) and len(self.content)):
            return NO_SPAN
        return int(self.content.seq.min()), int(self.content.seq.max())

    def of(self, content: OtherT) -> Shipment[OtherT]:
        """Return a copy with another content."""
        return Shipment(step=self.step, tick=self.tick, final=self.final, content=content)


@dataclass(frozen=True, slots=True)
class SiteContext:
    """What the halves of a site may use while it handles one message."""

    of_actor: Context
    """The site's own context."""
    site: int
    execution: Execution
    """Position of the site's stream, and how its halves learn that intervals are complete."""
    horizon: Horizon
    """Of the site's stream."""
    outputs: list[Shipment[Combinations]] = field(default_factory=list)
    """What steps made, for the site to pass on."""

    @property
    def now(self) -> int:
        """Virtual nanoseconds."""
        return self.of_actor.now

    def ship(self, site: int, payload: Shipment[Content]) -> None:
        """Send *payload* to another site.

        Sites send to each other in both directions, so that none may wait for another's room.
        """
        self.of_actor.send(FEEDBACK, payload, to=site - (site > self.site))

    def send(self, port: str, payload: Payload) -> None:
        """Send *payload* from another port."""
        self.of_actor.send(port, payload)

    def charge(self, work: Work) -> None:
        """Add *work* to what the message costs."""
        self.of_actor.charge(work)

    def wake_at(self, at: int | None, name: str) -> None:
        """Set a timer, where there is a time to wait for."""
        if at is not None and at > self.now:
            self.of_actor.set_timer(at, name)


class Half(Stateful, ABC):
    """Either half of the one-way join *step*; the other one is at *other_site*."""

    state: ClassVar[tuple[str, ...]] = ("complete",)

    def __init__(self, step: OneWayStep, other_site: int) -> None:
        self.step = step
        self.complete = -1
        """The latest interval of which all that the other half ships has come."""
        self._other_site = other_site

    def receive(self, shipment: Shipment[Any], context: SiteContext) -> None:
        """Handle a message from the other half."""
        self.on_shipment(shipment, context)
        if shipment.final:
            self.complete = max(self.complete, shipment.tick)

    def on_shipment(self, shipment: Shipment[Any], context: SiteContext) -> None:
        """Refuse a message: an algorithm whose other half ships anything overrides this."""
        raise ValueError(f"{type(self).__name__} was sent {shipment}")

    def is_done(self, last: int) -> bool:
        """Return whether it is done with all intervals up to *last*."""
        return self.complete >= last

    def ship(self, payload: Shipment[Content], context: SiteContext) -> None:
        """Send the other half a message."""
        context.ship(self._other_site, payload)

    def join(
        self,
        new: Shipment[Combinations],
        window: StoredTuples,
        line: Timeline,
        context: SiteContext,
    ) -> None:
        """Join tuples with what is here of W_2, limited to what each may see; pass results on."""
        joined, work = window.join(new.content, self.step.window, line)
        context.charge(work)
        context.outputs.append(new.of(joined))


class SourceHalf(Half):
    """The half at N_1, where the tuples of S_1 are."""

    state: ClassVar[tuple[str, ...]] = ("begun",)

    def __init__(self, step: OneWayStep) -> None:
        super().__init__(step, step.destination)
        self.begun = -1
        """The latest interval whose tuples have all begun the step."""

    @property
    def waits(self) -> bool:
        """Whether tuples wait here for an answer of N_2."""
        return False

    def is_done(self, last: int) -> bool:
        """Return whether it is done with all intervals up to *last*."""
        return self.begun >= last and not self.waits

    def begin(self, new: Shipment[Combinations], context: SiteContext) -> None:
        """Begin the step with an interval's tuples, or some of them, in the order of intervals."""
        self.start(new, context)
        if new.final:
            self.begun = new.tick

    @abstractmethod
    def start(self, new: Shipment[Combinations], context: SiteContext) -> None:
        """Do what the algorithm does with new tuples."""

    def ship_tuples(self, left: Shipment[Combinations], context: SiteContext) -> None:
        """Send N_2 what is left of new tuples, if anything or if punctuated."""
        if len(left.content) or context.execution.punctuated:
            self.ship(left, context)


class DestinationHalf(Half):
    """The half at N_2, where the tuples of S_2 arrive; stores its window W_2 and joins."""

    state: ClassVar[tuple[str, ...]] = ("window",)

    def __init__(self, step: OneWayStep) -> None:
        super().__init__(step, step.source)
        self.window = step.tuple_store()

    def insert(self, batch: Batch, tick: int, keep_from: int, context: SiteContext) -> None:
        """Insert the interval's tuples of S_2, and remove positions below *keep_from*."""
        self.update_window(batch, keep_from, context)

    def update_window(self, batch: Batch, keep_from: int, context: SiteContext) -> int:
        """Update W_2 and return how many tuples expired."""
        context.charge(self.window.insert(batch))
        expired, work = self.window.expire(keep_from)
        context.charge(work)
        return expired

    def on_shipment(self, shipment: Shipment[Any], context: SiteContext) -> None:
        """Join full tuples of S_1 with W_2."""
        self.join(shipment, self.window, context.horizon.line, context)

    def window_update(self, batch: Batch, keep_from: int, **what: Any) -> WindowUpdate:
        """Return the update after new tuples *batch*, with their times if N_1 must count them."""
        if self.step.window.kind == "count":
            what |= {"ids": batch.id, "ts": batch.ts}
        return WindowUpdate(keep_from=keep_from, **what)

    def announce(
        self, change: Batch | BloomFilter | WindowUpdate, tick: int, context: SiteContext
    ) -> None:
        """Send N_1 what happened to the window in an interval."""
        self.ship(Shipment(step=self.step.number, tick=tick, final=True, content=change), context)
