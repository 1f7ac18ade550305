"""How fast memory is read, by how much is read from: what cores take from each other.

A structure is measured alone on its processor, and its table of percents has the levels of memory
in it (`netsim.cost`). Where several cores of a site work at once, they share the last cache
and the way to memory: then what a structure costs above its least, which is what it waits for
memory, takes as much longer as reads did when all cores of a machine read at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What a read takes, as `joinsim calibrate` measured it.

    Attributes
    ----------
    cores
        How many read at once where several did.
    sizes
        Bytes that a core read from, ascending.
    wait_ps
        By size what a read takes that waits for the one before it, picoseconds.
    read_ps
        The same of reads that do not wait for each other, four at a time.
    apart_percents, same_percents
        What such a read takes while all cores read, each from memory of its own or all from the
        same; of what it takes alone.
    """

    cores: int
    sizes: tuple[int, ...]
    wait_ps: tuple[int, ...]
    read_ps: tuple[int, ...]
    apart_percents: tuple[int, ...]
    same_percents: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.cores < 1:
            raise ValueError(f"cores is {self.cores}, must be 1 or more")
        if not self.sizes or any(a >= b for a, b in pairwise(self.sizes)):
            raise ValueError(f"sizes are {list(self.sizes)}; they must ascend")
        for name in ("wait_ps", "read_ps", "apart_percents", "same_percents"):
            column = getattr(self, name)
            if len(column) != len(self.sizes) or any(type(n) is not int or n < 0 for n in column):
                raise ValueError(f"{name} must be a whole number, 0 or more, for each of sizes")

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Memory:
        """Read a table of a profile; raise :exc:`TypeError` or :exc:`ValueError` if it is wrong."""
        everything: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values.items()
        }
        return cls(**everything)

    def percent_of_wait(self, nbytes: int, cores: int, *, same: bool = False) -> int:
        """Return what a wait for memory takes, in percent of alone, while several *cores* read.

        Each reads from *nbytes* of its own, or all from the *same*. More cores than were measured
        add as much each as those did, until a read takes as long as one of the largest size.
        """
        last = len(self.sizes) - 1
        at = min(sum(size < nbytes for size in self.sizes), last)
        percents = self.same_percents if same else self.apart_percents

        def beside(place: int) -> int:
            return 100 + (percents[place] - 100) * (cores - 1) // max(1, self.cores - 1)

        slowest = beside(last) * self.read_ps[last] // max(1, self.read_ps[at])
        return min(beside(at), max(percents[at], slowest))
