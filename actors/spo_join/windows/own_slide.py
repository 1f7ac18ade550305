"""Section 4.2's first way: a new permutation array says that the PE's oldest has expired."""

from __future__ import annotations

from actors.spo_join.payloads import Permutations
from actors.spo_join.windows.state import WindowState


class OwnSlide(WindowState):
    """Keeps the last epochs that were assigned to this PE, and asks nobody.

    Epochs are dealt out in turns, so a PE learns that the window has moved only when its own turn
    comes: up to as many merges late as there are PEs. The paper says that the new array replaces
    the existing slide, which supposes a PE for every slide of the window; here a PE keeps as many
    as can fall to it, so that a smaller number of PEs loses nothing.

    Parameters
    ----------
    pes
        Number of PO-Join PEs.
    kept
        Epochs of the window that fall to one PE at most, the newest included.
    """

    state = ("_newest",)

    def __init__(self, *, pes: int, kept: int) -> None:
        self._reach = pes * kept
        self._newest = -1

    def assigned(self, arrays: Permutations) -> None:
        """Move on to the epoch of a new array."""
        self._newest = max(self._newest, arrays.epoch)

    def is_expired(self, stream: int, epoch: int, stop: int) -> bool:
        """Return whether enough newer epochs were assigned to this PE."""
        return epoch <= self._newest - self._reach
