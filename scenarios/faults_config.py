"""The rows ``[[faults]]`` of a scenario: keys, units, and the names that they may mention."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from joins.errors import suggest
from netsim.faults import ActorFault, ActorKind, Fault, LinkFault, LinkKind
from netsim.network import NetworkError
from topologies.quantities import Duration, Nanoseconds, TimeFromZero

_NAMES = {
    "kind": "kind", "start": "from_ns", "end": "to_ns", "every": "every_ns", "random": "random",
    "rate": "rate", "delay": "delay_ns", "factor": "factor", "offset": "offset_ns",
}  # fmt: skip
"""Keys of faults, and their names in the simulation."""

Rate = Annotated[float, Field(ge=0, lt=1)]


class FaultConfig(BaseModel, ABC):
    """When a fault is active."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    start: TimeFromZero = 0
    """Virtual time at which it begins."""
    end: Duration | None = None
    """Virtual time at which it ends; by default with the run."""
    every: Duration | None = None
    """Time from one start of the span to the next; by default it comes once."""
    random: bool = False
    """In each period of *every* the span begins at a moment drawn from the run's seed."""

    @model_validator(mode="after")
    def _means_something(self) -> FaultConfig:
        self.rows()
        return self

    @abstractmethod
    def rows(self) -> tuple[Fault, ...]:
        """Return what it is for the simulation; raise :exc:`NetworkError` if that means nothing."""

    @property
    def _values(self) -> dict[str, Any]:
        """What, when and how much, by its names in the simulation."""
        return {name: getattr(self, key) for key, name in _NAMES.items() if hasattr(self, key)}


class LinkFaultConfig(FaultConfig):
    """A fault of links: from sites to sites, or both ways between some and others.

    Attributes
    ----------
    rate
        Share of the frames that are hit.
    delay
        How much later frames come.
    factor
        What the bandwidth is multiplied by.
    """

    kind: LinkKind
    """What goes wrong; it decides which of rate, delay and factor there are."""
    sender: str | None = None
    """Pattern of the sending sites' names such as ``joiner.*``; by default all."""
    receiver: str | None = None
    """Pattern of the receiving sites' names; by default all."""
    between: tuple[str, str] | None = None
    """Two patterns, in place of sender and receiver: the fault is active both ways."""

    def rows(self) -> tuple[LinkFault, ...]:
        """Return one row for each direction."""
        ways = {(self.sender or "*", self.receiver or "*"): None}
        if self.between:
            if self.sender or self.receiver:
                raise NetworkError("between names both ends: leave out sender and receiver")
            ways = dict.fromkeys((self.between, self.between[::-1]))
        return tuple(LinkFault(sender=a, receiver=b, **self._values) for a, b in ways)


class Loss(LinkFaultConfig):
    """Frames that are lost."""

    kind: Literal["loss"]
    rate: Rate


class Duplicate(LinkFaultConfig):
    """Frames that arrive twice."""

    kind: Literal["duplicate"]
    rate: Rate


class Reorder(LinkFaultConfig):
    """Frames that come up to *delay* later, and are overtaken meanwhile."""

    kind: Literal["reorder"]
    rate: Rate
    delay: Duration


class Delay(LinkFaultConfig):
    """A delay spike: every frame takes *delay* longer."""

    kind: Literal["delay"]
    delay: Duration


class Partition(LinkFaultConfig):
    """No frame gets through, until it heals."""

    kind: Literal["partition"]


class Bandwidth(LinkFaultConfig):
    """The bandwidth, multiplied by *factor*."""

    kind: Literal["bandwidth"]
    factor: Annotated[float, Field(ge=1e-6, le=1e6)]


class ActorFaultConfig(FaultConfig):
    """A fault of actors: of those whose name, and whose site's name, the patterns match.

    Attributes
    ----------
    factor
        How many times as long service takes.
    offset
        How far a clock is ahead.
    """

    kind: ActorKind
    """What goes wrong; it decides which of factor and offset there are."""
    actor: str | None = None
    """Pattern of the actors' names such as ``joiner.*``; by default all."""
    site: str | None = None
    """Pattern of the names of the sites that they are at; by default all."""

    def rows(self) -> tuple[ActorFault, ...]:
        """Return its one row."""
        return (ActorFault(actor=self.actor or "*", site=self.site or "*", **self._values),)


class Pause(ActorFaultConfig):
    """A process that pauses, as in a long garbage collection; messages still arrive."""

    kind: Literal["pause"]


class Slow(ActorFaultConfig):
    """Service that takes *factor* times as long."""

    kind: Literal["slow"]
    factor: Annotated[float, Field(ge=1, le=1e6)]


class Skew(ActorFaultConfig):
    """A clock that is ahead by *offset*; behind where it is negative (nanoseconds)."""

    kind: Literal["skew"]
    offset: Nanoseconds


class Stall(ActorFaultConfig):
    """A source without new data; its tuples come into being meanwhile, and are late."""

    kind: Literal["stall"]


class Crash(ActorFaultConfig):
    """A process that is gone from *start* to *end*, and then starts again."""

    kind: Literal["crash"]


AnyFault = Annotated[
    Loss
    | Duplicate
    | Reorder
    | Delay
    | Partition
    | Bandwidth
    | Pause
    | Slow
    | Skew
    | Stall
    | Crash,
    Field(discriminator="kind"),
]


def fault_rows(faults: Iterable[FaultConfig]) -> list[Fault]:
    """Return the faults of a configuration as rows for the simulation."""
    return [row for fault in faults for row in fault.rows()]


def check_names(
    faults: Sequence[FaultConfig], actors: Collection[str], sites: Collection[str]
) -> None:
    """Raise :exc:`NetworkError` where a fault is about nobody: a pattern that matches no name."""
    for place, fault in enumerate(faults):
        for key in ("sender", "receiver", "between", "actor", "site"):
            patterns = getattr(fault, key, None) or ()
            names, of = (actors, "actor") if key == "actor" else (sites, "site")
            for pattern in (patterns,) if isinstance(patterns, str) else patterns:
                if not any(fnmatchcase(name, pattern) for name in names):
                    raise NetworkError(
                        f"faults.{place}.{key}: no {of} is called {pattern!r}; "
                        f"{suggest(pattern, dict.fromkeys(names))}"
                    )
