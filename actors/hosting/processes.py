"""Processes that actors live in: what hosts need of them, who lives where, and their names."""

from __future__ import annotations

import socket
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

from actors.protocol import ActorSpec
from joins.errors import JoinsimError

EACH: Literal["each"] = "each"
"""In place of a number of processes: every actor has a process of its own."""

ProcessCount = int | Literal["each"]
"""A number of processes, or `EACH`."""

_CONNECT_S = 5.0
"""Seconds for a cluster to answer; one that takes longer is of no use to a run."""
_NAMED_ACTORS = 4
"""A process that has more actors is named after the first of them: names are for lists on a
terminal."""


class RayUnavailableError(JoinsimError):
    """Ray could not be started or reached, or went away; names where, and what to do.

    Examples
    --------
    >>> import joinsim as js
    >>> try:
    ...     with js.ray_cluster("nowhere"):  # is no HOST:PORT
    ...         there = True
    ... except js.RayUnavailableError:
    ...     there = False
    """


def check_reachable(address: str) -> None:
    """Connect to a cluster at *address*, and hang up: Ray itself would try for minutes.

    Raise :exc:`ValueError` saying how an address is written, and :exc:`ConnectionError` where
    nothing answers at this one. With ``auto``, Ray looks for it.
    """
    if address == "auto":
        return
    try:
        at = urlsplit(address if "://" in address else f"ray://{address}")
        if not (at.hostname and at.port):
            raise ValueError
    except ValueError:
        raise ValueError("write it as HOST:PORT, ray://HOST:PORT or auto") from None
    try:
        socket.create_connection((at.hostname, at.port), _CONNECT_S).close()
    except (OSError, UnicodeError) as error:  # Python refuses some names of hosts as text
        reason = getattr(error, "strerror", None) or error
        raise ConnectionError(f"nothing answers there ({reason})") from None


class Processes(Protocol):
    """Some processes in a mesh with this one; `actors.hosting.ray_processes` has one kind."""

    count: int
    """How many they are, numbered from 0."""

    def serve(self, server: Callable[..., None], *arguments: Any) -> None:
        """Have every process run *server* on its mesh, with *arguments*; once only."""

    def send(self, process: int, value: Any) -> None:
        """Send *value* to a process; raise as `receive` does."""

    def receive(self, timeout_s: float | None = None) -> tuple[int, Any] | None:
        """Return the number of a process and the next frame it sent here; None if none in time.

        Raise :exc:`ActorError` when an actor in a process raised, and an error of the kind of
        process when one of them is gone.
        """


def pack(
    roles: Mapping[str, str],
    sites: Mapping[str, str],
    processes: ProcessCount,
    loads: Mapping[str, float] = MappingProxyType({}),
) -> dict[str, int]:
    """Return the process of each actor: sites stay whole, and operators are spread evenly.

    A site goes where its first actor's operator has the least to do, or less than one average actor
    more; of such processes, to the one that has the least to do in all. Sites with more to do go
    first. So PEs that have as much to do and are neighbours in rank, which get their messages one
    after the other, work side by side.

    Parameters
    ----------
    roles
        Actor name to operator, in the order of rank.
    sites
        Actor name to the machine it lives on.
    processes
        How many processes to use at the most; with `EACH` every actor has one of its own.
    loads
        Actor name to its load, relative to the average of its operator; by default 1.
    """
    if processes == EACH:
        return {actor: place for place, actor in enumerate(roles)}
    residents: dict[str, list[str]] = {}
    for actor in roles:
        residents.setdefault(sites[actor], []).append(actor)
    load_of = {actor: loads.get(actor, 1.0) for actor in roles}
    of_each: list[dict[str, float]] = [
        defaultdict(float) for _ in range(min(processes, len(roles)))
    ]
    homes: dict[str, int] = {}
    for actors in sorted(residents.values(), key=lambda actors: -load_of[actors[0]]):
        operator = roles[actors[0]]
        least = min(process[operator] for process in of_each)
        fitting = [i for i, process in enumerate(of_each) if process[operator] < least + 1]
        home = min(fitting, key=lambda i: sum(of_each[i].values()))
        for actor in actors:
            of_each[home][roles[actor]] += load_of[actor]
        homes |= dict.fromkeys(actors, home)
    return homes


@dataclass(frozen=True, kw_only=True)
class Label:
    """How a process is listed, for instance by ``ray list actors``."""

    kind: str
    """The classes of its actors, such as ``PoJoinPE``."""
    name: str
    """The system and its actors, such as ``spo_join/po_join.2``."""


def label_processes(
    system: str, specs: Mapping[str, ActorSpec], homes: Mapping[str, int]
) -> list[Label]:
    """Return the label of each process; *homes* is actor name to process."""
    residents: list[list[str]] = [[] for _ in range(max(homes.values()) + 1)]
    for actor in specs:
        residents[homes[actor]].append(actor)
    return [
        Label(
            kind=_join(list(dict.fromkeys(specs[actor].actor.__name__ for actor in actors))),
            name=f"{system}/{_join(actors)}",
        )
        for actors in residents
    ]


def _join(names: Sequence[str]) -> str:
    more = len(names) - _NAMED_ACTORS
    return "+".join([*names[:_NAMED_ACTORS], *([f"{more} more"] if more > 0 else [])])
