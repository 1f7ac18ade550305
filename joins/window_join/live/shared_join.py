"""What all joins have in common whose index several threads share."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from joins.window_join.live.bw_tree_windows import BwTreeWindows
from joins.window_join.live.shared_windows import SharedWindows

Windows = TypeVar("Windows", SharedWindows, BwTreeWindows)


class SharedJoin(Generic[Windows]):
    """Between batches nothing is left of what threads do, so that its state is its windows."""

    _windows: Windows

    @property
    def nbytes(self) -> int:
        """Bytes that the windows and their indexes occupy."""
        return self._windows.nbytes

    def snapshot(self) -> dict[str, Any]:
        """Return the windows."""
        return self._windows.snapshot()

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self._windows.restore(state)
