"""Which process an actor lives in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping


def pack(roles: Mapping[str, str], sites: Mapping[str, str], processes: int) -> dict[str, int]:
    """Return which process each actor lives in: sites stay whole, and operators are dealt out.

    A site goes where the fewest PEs of its first actor's operator are, and of such processes where
    the fewest actors are. So PEs that are neighbours in rank, which get their messages one after
    the other, work side by side.

    Parameters
    ----------
    roles
        Actor name to operator, in the order of rank.
    sites
        Actor name to the machine it lives on.
    processes
        How many processes to use at the most.
    """
    residents: dict[str, list[str]] = {}
    for actor in roles:
        residents.setdefault(sites[actor], []).append(actor)
    held: list[Counter[str]] = [Counter() for _ in range(processes)]
    homes: dict[str, int] = {}
    for actors in residents.values():
        operator = roles[actors[0]]
        home = min(range(processes), key=lambda i: (held[i][operator], held[i].total()))
        held[home].update(roles[actor] for actor in actors)
        homes |= dict.fromkeys(actors, home)
    return homes
