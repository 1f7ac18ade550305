"""A site's part in a one-way join S_1 → S_2: as its source N_1 or as its destination N_2."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from actors.protocol import FEEDBACK, Context
from actors.semijoins.execution import Execution
from actors.semijoins.payloads import Combinations, Shipment
from joins.batch import Batch, Schema
from joins.queries.windows import Window
from joins.semijoins.attributes import JoinAttributes
from joins.semijoins.held import HeldTuples
from joins.semijoins.horizon import Horizon
from joins.semijoins.joined import Joined
from joins.semijoins.one_way_join import OneWayJoin
from joins.semijoins.operand_window import OperandWindow
from joins.work import Work


@dataclass(frozen=True, kw_only=True)
class OneWayStep:
    """A one-way join of a plan, with all that its two sites must know of it.

    Attributes
    ----------
    number
        Its place in the list of all steps of the plan.
    algorithm
        By which it is computed.
    source, destination
        Sites N_1 and N_2, as positions of the streams that arrive there.
    streams
        Streams joined before, the head first; in a tree the operand S_1.
    stored
        S_2: the destination's stream, or in a tree an operand that is there.
    attributes
        Where they are compared with S_2.
    window, schema
        Of S_2.
    following
        Number of the next step in the sequence; None after the last.
    output
        Number of the output stream that the results are of; None where they leave the system.
    late_ns
        How long after an interval's end S_2 has all of it in the paper's model.
    """

    number: int
    algorithm: OneWayJoin
    source: int
    destination: int
    streams: tuple[int, ...]
    stored: int
    attributes: JoinAttributes
    window: Window | OperandWindow
    schema: Schema
    following: int | None = None
    output: int | None = None
    late_ns: int = 0

    @property
    def is_last(self) -> bool:
        """Whether its results leave the system."""
        return self.following is None and self.output is None

    def held(self) -> HeldTuples:
        """Return a place for tuples of S_2."""
        return HeldTuples(stream=self.stored, schema=self.schema, attributes=self.attributes)


@dataclass(frozen=True, slots=True)
class Output:
    """What a step made of an interval's tuples, or of some of them."""

    step: int
    tick: int
    final: bool
    joined: Joined


class Desk:
    """Where the parts of a site lay what they want done while it takes one message.

    Parameters
    ----------
    context
        The site's.
    site, execution
        Position of the site's stream, and how its parts learn that they have heard everything.
    horizon
        Of the site's stream.
    """

    def __init__(self, context: Context, site: int, execution: Execution, horizon: Horizon) -> None:
        self._context = context
        self._site = site
        self.execution = execution
        self.horizon = horizon
        self.outputs: list[Output] = []

    @property
    def now(self) -> int:
        """Virtual nanoseconds."""
        return self._context.now

    def ship(self, site: int, payload: Shipment) -> None:
        """Send *payload* to another site.

        Sites send to each other in both directions, so that none may wait for another's room.
        """
        self._context.send(FEEDBACK, payload, to=site - (site > self._site))

    def charge(self, work: Work) -> None:
        """Add *work* to what the message costs."""
        self._context.charge(work)

    def put(self, output: Output) -> None:
        """Hand on what a step made."""
        self.outputs.append(output)


class Part(ABC):
    """Either part; state changes only through its methods."""

    def __init__(self, step: OneWayStep) -> None:
        self.step = step

    @abstractmethod
    def hear(self, payload: Any, desk: Desk) -> None:
        """Take a message from the other site."""

    @abstractmethod
    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain data and records."""

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""


class SourcePart(Part):
    """The part of N_1, where the tuples of S_1 are.

    Attributes
    ----------
    delayed
        Whether tuples must wait for what N_2 ships of its own accord (Constraint 1).
    heard
        The latest interval of which N_2 has told.
    """

    delayed = False
    heard = -1

    @property
    def waits(self) -> bool:
        """Whether tuples wait here for an answer of N_2."""
        return False

    @abstractmethod
    def start(self, joined: Joined, tick: int, final: bool, desk: Desk) -> None:
        """Take an interval's tuples, or some of them, in the order of intervals."""

    def put(self, joined: Joined, tick: int, final: bool, desk: Desk) -> None:
        """Hand on results made here."""
        desk.put(Output(self.step.number, tick, final, joined))

    def ship(self, payload: Shipment, desk: Desk) -> None:
        """Send to N_2."""
        desk.ship(self.step.destination, payload)


class DestinationPart(Part):
    """The part of N_2, where the tuples of S_2 arrive; keeps its window W_2.

    Attributes
    ----------
    done
        The latest interval of which all that looks into W_2 has come.
    """

    def __init__(self, step: OneWayStep) -> None:
        super().__init__(step)
        self.window = step.held()
        self.done = -1

    @abstractmethod
    def insert(self, batch: Batch, tick: int, keep_from: int, desk: Desk) -> None:
        """Take the interval's tuples of S_2, and remove positions below *keep_from*."""

    def join(self, message: Combinations, desk: Desk) -> None:
        """Join full tuples of S_1 with W_2, limited to what each may see, and hand the results on.

        That ends an interval when the message does.
        """
        found, work = self.window.join(message.joined, self.step.window, desk.horizon.line)
        desk.charge(work)
        desk.put(Output(self.step.number, message.tick, message.final, found))
        if message.final:
            self.done = message.tick

    def update(self, batch: Batch, keep_from: int, desk: Desk) -> Batch:
        """Update W_2 and return what expired."""
        desk.charge(self.window.insert(batch))
        expired, work = self.window.expire(keep_from)
        desk.charge(work)
        return expired

    def ship(self, payload: Shipment, desk: Desk) -> None:
        """Send to N_1."""
        desk.ship(self.step.source, payload)

    def snapshot(self) -> dict[str, Any]:
        """Return the window."""
        return {"window": self.window.snapshot(), "done": self.done}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self.window.restore(state["window"])
        self.done = state["done"]
