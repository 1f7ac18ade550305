"""What a drawing of a topology is made of. Lengths are inches, y grows upwards."""

from __future__ import annotations

from dataclasses import dataclass, field

BOX_HEIGHT = 0.36
ROW = 0.46
HEADER = 0.26
MARGIN = 0.12
SPACE = 0.3

Channel = tuple[str, str, str]
"""Sender, receiver and port."""
Key = tuple[str, ...]
"""Of what takes room in a column: a role, or a bundle's sender, receiver and port."""
Point = tuple[float, float, int]
"""x, y, and the direction in which a wire passes: 1 to the right, -1 to the left."""


@dataclass(frozen=True, kw_only=True)
class Box:
    """One PE, or all PEs of an operator; x and y are its centre."""

    label: str
    role: str
    actors: tuple[str, ...]
    x: float
    y: float
    width: float

    @property
    def left(self) -> float:
        """Where wires come in."""
        return self.x - self.width / 2

    @property
    def right(self) -> float:
        """Where wires go out."""
        return self.x + self.width / 2


@dataclass(frozen=True, kw_only=True)
class Group:
    """The frame around an operator's PEs."""

    role: str
    count: int
    left: float
    right: float
    bottom: float
    top: float


@dataclass(frozen=True, kw_only=True)
class Wire:
    """A line through *points*, which stands for one or more channels of one port."""

    port: str
    channels: tuple[Channel, ...]
    points: tuple[Point, ...]
    arrives: bool
    """Whether it ends at a box, with an arrowhead."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Everything there is to draw, and the corners of it all."""

    boxes: tuple[Box, ...]
    groups: tuple[Group, ...]
    wires: tuple[Wire, ...]
    ports: tuple[str, ...]
    left: float
    right: float
    bottom: float
    top: float
    collapsed: tuple[str, ...]
    """Operators whose PEs share one box."""


@dataclass(kw_only=True)
class Item:
    """What takes room in a column: an operator, or a lane for wires that pass through."""

    key: Key
    height: float
    y: float = 0.0
    order: float = 0.0


@dataclass(kw_only=True)
class Bundle:
    """All channels of one port between two operators."""

    sender: str
    receiver: str
    port: str
    channels: list[Channel] = field(default_factory=list)

    @property
    def lane(self) -> Key:
        """What tells it from other bundles; also the key of its lanes."""
        return (self.sender, self.receiver, self.port)
