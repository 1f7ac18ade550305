"""Fields as queries name them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Field:
    """A field of one side of a predicate.

    Attributes
    ----------
    stream
        Position of its stream in the query.
    name
        The column.
    role
        In a self join 1 for the newer tuple, which probes, and 2 for the earlier one, which is
        stored; 0 in a join of several streams.
    text
        As the query spells it.
    """

    stream: int
    name: str
    role: int
    text: str
