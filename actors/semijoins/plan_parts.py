"""A site's parts in the one-way joins of one plan."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from actors.semijoins.part import Desk, DestinationPart, OneWayStep, Output, Part, SourcePart
from actors.semijoins.parts import PARTS


class PlanParts:
    """The parts by the numbers of their steps.

    Parameters
    ----------
    stream
        Position of the stream that arrives at the site.
    steps
        All of the plan.

    Attributes
    ----------
    first
        Of the sequence that the stream heads, the number of the first step; in a tree also of the
        one-way join that each output stream at the site goes through. By the stream's number.
    last
        The last execution interval whose tuples go by this plan; None while that is not known.
    """

    def __init__(self, stream: int, steps: Iterable[OneWayStep]) -> None:
        steps = tuple(steps)
        self.first = {
            step.streams[0]: step.number
            for step in steps
            if step.source == stream and len(step.streams) == 1
        }
        self.sources: dict[int, SourcePart] = {
            step.number: PARTS[step.algorithm][0](step) for step in steps if step.source == stream
        }
        self.destinations: dict[int, DestinationPart] = {
            step.number: PARTS[step.algorithm][1](step)
            for step in steps
            if step.destination == stream
        }
        self.parts: dict[int, Part] = {**self.sources, **self.destinations}
        self.last: int | None = None
        self._begun = dict.fromkeys(self.sources, -1)

    def looking_into(self, stream: int) -> list[DestinationPart]:
        """Return the parts that keep a window over a stream at the site."""
        return [part for part in self.destinations.values() if part.step.stored == stream]

    def start(self, waiting: Output, desk: Desk) -> None:
        """Let combinations begin a step."""
        self.sources[waiting.step].start(waiting.joined, waiting.tick, waiting.final, desk)
        if waiting.final:
            self._begun[waiting.step] = waiting.tick

    @property
    def is_over(self) -> bool:
        """Whether all of its intervals are done at this site, as punctuations tell."""
        last = self.last
        return (
            last is not None
            and all(part.done >= last for part in self.destinations.values())
            and all(
                self._begun[number] >= last and not part.waits
                for number, part in self.sources.items()
            )
        )

    def snapshot(self) -> dict[str, Any]:
        """Return the parts, and how far they are."""
        return {
            "last": self.last,
            "begun": list(self._begun.values()),
            "parts": [part.snapshot() for part in self.parts.values()],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self.last = state["last"]
        self._begun = dict(zip(self._begun, state["begun"], strict=True))
        for part, kept in zip(self.parts.values(), state["parts"], strict=True):
            part.restore(kept)
