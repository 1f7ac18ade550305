"""What travels along the chain."""

from __future__ import annotations

from dataclasses import dataclass

from actors.probes import Probes
from actors.protocol import HEADER_BYTES

RIGHTWARD, LEFTWARD = 0, 1
"""The two flows: R enters at the first core, S at the last."""

_NUMBERS_BYTES = 24


@dataclass(frozen=True, slots=True)
class Flow:
    """Tuples of one flow on their way to the next core; there may be none.

    Attributes
    ----------
    direction
        `RIGHTWARD` or `LEFTWARD`.
    part
        The tuples, each with the window it sees in the other flow.
    passed
        How far the other flow had come when these tuples left: rightward, positions below it have
        reached the core that sends; leftward, they had reached the last core when this entered.
    horizon
        The least position of the other flow that any tuple behind these can see.
    last
        Whether nothing enters behind these.
    span
        First and last arrival number of the batch that set them in motion.
    """

    direction: int
    part: Probes
    passed: int
    horizon: int
    last: bool
    span: tuple[int, int]

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        return HEADER_BYTES + _NUMBERS_BYTES + self.part.nbytes

    @property
    def rows(self) -> int:
        """Number of tuples."""
        return len(self.part)
