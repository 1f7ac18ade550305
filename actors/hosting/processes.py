"""Processes as hosts see them: a number of them, in a mesh with the one that asked for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Processes(Protocol):
    """Where actors can live; `actors.hosting.ray_processes.RayProcesses` is one kind.

    Attributes
    ----------
    count
        How many they are, numbered from 0.
    """

    count: int

    def serve(self, server: Callable[..., None], *arguments: Any) -> None:
        """Have every process run *server* on its mesh, with *arguments*; once only."""

    def send(self, process: int, value: Any) -> None:
        """Send *value* to a process; raise as `receive` does."""

    def receive(self, timeout_s: float | None = None) -> tuple[int, Any] | None:
        """Return the number of a process and the next frame it sent here; None if none in time.

        Raise :exc:`ActorError` when an actor in a process raised, and what it means here that a
        process is gone.
        """
