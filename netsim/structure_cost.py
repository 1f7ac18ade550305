"""What one operation of a structure costs, by its size and the tuples of a call; what memory adds.

A unit of work does not cost the same in every structure. A comparison in a vector is not one along
pointers, an insertion into a hash table none into a tree; and the same operation costs more where
the structure no longer fits into a cache, or where a call is for few tuples that do not share what
it brings into one. So each operation of each structure has prices of its own (`StructureCost`): a
call, a tuple, a unit of each kind of work, and a table of percents by the structure's size and the
tuples of a call, in which the levels of memory show. Matches, and bytes that a merge copies, depend
on the size alone: how they lie in memory has nothing to do with calls.

A structure is measured alone on its processor. Where several cores of a site work at once, they
share the last cache and the way to memory (`Memory`): then what a structure costs above its least,
which is what it waits for memory, takes as much longer as reads did when all cores of a machine
read at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any, NamedTuple

from joins.work import BYTES_COPIED, ELAPSED_NS, INSERTS, MATCHES, Step, Work

_FRACTION_BITS = 4
"""Logarithms are in sixteenths."""
UNITS = tuple(
    f"{unit}_ps"
    for unit in ("comparison", "insert", "move", "bit", "copied_byte", "match", "atomic")
)
"""Prices of a unit of each counter, in the order of `joins.work.COUNTERS` without time itself."""


def are_whole(*figures: object) -> bool:
    """Whether all *figures* are whole numbers, 0 or more: what prices and percents must be."""
    return all(type(figure) is int and figure >= 0 for figure in figures)


def _ascend(sizes: Sequence[int]) -> bool:
    return bool(sizes) and all(a < b for a, b in pairwise(sizes))


def _as_tuples(value: Any) -> Any:
    """Return what a profile has as lists as tuples, at any depth."""
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


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
        if not _ascend(self.sizes):
            raise ValueError(f"sizes are {list(self.sizes)}; they must ascend")
        for name in ("wait_ps", "read_ps", "apart_percents", "same_percents"):
            column = getattr(self, name)
            if len(column) != len(self.sizes) or not are_whole(*column):
                raise ValueError(f"{name} must be a whole number, 0 or more, for each of sizes")

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Memory:
        """Read a table of a profile; raise :exc:`TypeError` or :exc:`ValueError` if it is wrong."""
        return cls(**{name: _as_tuples(value) for name, value in values.items()})

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


class Percents(NamedTuple):
    """What part of its prices a call costs: of bytes copied, of matches, and of all else."""

    work: int
    copied: int
    matches: int


@dataclass(frozen=True, kw_only=True)
class StructureCost:
    """Prices of one operation of a structure.

    Attributes
    ----------
    sizes, rows
        Tuples in the structure, and of a call, at which it was measured; both ascend.
    percents
        For each size and number of rows what part of the prices is charged; between them it is
        interpolated by their logarithms, beyond them it stays.
    copied_percents, match_percents
        The same for each size, of bytes copied and of matches; empty where it is always all.
    call_ps, row_ps
        A call, and a tuple of it, picoseconds.
    unit_ps
        A unit of each counter, in the order of `joins.work.COUNTERS` without time itself.
    tuple_bytes
        Bytes of the structure for each of its tuples.
    """

    sizes: tuple[int, ...]
    rows: tuple[int, ...]
    percents: tuple[tuple[int, ...], ...]
    call_ps: int
    row_ps: int
    unit_ps: tuple[int, ...]
    copied_percents: tuple[int, ...] = ()
    match_percents: tuple[int, ...] = ()
    tuple_bytes: int = 0
    _known: dict[tuple[int, int], Percents] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("sizes", "rows"):
            points = getattr(self, name)
            if not _ascend(points) or points[0] < 1:
                raise ValueError(f"{name} are {list(points)}; they must ascend, from 1 or more")
        if [len(row) for row in self.percents] != [len(self.rows)] * len(self.sizes):
            raise ValueError(
                "percents must have a row for each size, with an entry for each of rows"
            )
        lengths = {len(self.copied_percents), len(self.match_percents)}
        if not lengths <= {0, len(self.sizes)}:
            raise ValueError("copied_percents and match_percents must have an entry for each size")
        percents = chain(*self.percents, self.copied_percents, self.match_percents)
        if not are_whole(self.call_ps, self.row_ps, *self.unit_ps, self.tuple_bytes, *percents):
            raise ValueError("prices, percents and tuple_bytes must be whole numbers, 0 or more")

    @classmethod
    def read(cls, values: Mapping[str, Any], base_ps: Sequence[int]) -> StructureCost:
        """Read a table of a profile; a unit without a price there has that of *base_ps*.

        Raise :exc:`TypeError` or :exc:`ValueError` saying what is wrong with it.
        """
        table = {name: _as_tuples(value) for name, value in values.items()}
        unit_ps = tuple(
            table.pop(unit, base) for unit, base in zip(UNITS, base_ps[:ELAPSED_NS], strict=True)
        )
        return cls(unit_ps=unit_ps, **table)

    def written(self, base_ps: Sequence[int]) -> dict[str, Any]:
        """Return the table of a profile that `read` reads; what is as in *base_ps* is left out."""
        values = {
            one.name: value
            for one in fields(self)
            if one.name not in ("unit_ps", "_known") and (value := getattr(self, one.name)) != ()
        }
        units = {
            unit: ps
            for unit, ps, base in zip(UNITS, self.unit_ps, base_ps[:ELAPSED_NS], strict=True)
            if ps != base
        }
        return values | units

    def work_ps(self, step: Step, work: Work, calls: int = 1) -> int:
        """Return what *calls* alike of this operation cost together, in picoseconds.

        *step* is one of them, *work* what all of them counted. Without tuples it is all they cost.
        """
        comparisons, inserts, moves, bits, copied, matches, atomics, elapsed_ns = work
        comparison, insert, move, bit, copied_byte, match, atomic = self.unit_ps
        ps = (
            comparisons * comparison
            + inserts * insert
            + moves * move
            + bits * bit
            + atomics * atomic
        )
        if step.rows:
            ps += calls * (self.call_ps + step.rows * self.row_ps)
        percents = self.percents_at(step.size, step.rows)
        ps = (
            ps * percents.work
            + copied * copied_byte * percents.copied
            + matches * match * percents.matches
        )
        return ps // 100 + elapsed_ns * 1000

    def percents_at(self, size: int, rows: int) -> Percents:
        """Return what part of the prices a call for so many *rows* costs at a *size*."""
        key = (_log2(size), _log2(rows))
        known = self._known.get(key)
        if known is None:
            at = [_log2(one) for one in self.rows]
            sizes = [_log2(one) for one in self.sizes]
            of_sizes = [_interpolate(key[1], at, row) for row in self.percents]
            columns = (of_sizes, self.copied_percents, self.match_percents)
            known = Percents(
                *(_interpolate(key[0], sizes, column) if column else 100 for column in columns)
            )
            self._known[key] = known
        return known

    def on_cores(self, cores: int, memory: Memory, *, same: bool) -> StructureCost:
        """Return the prices while so many *cores* of a machine with that *memory* are at work.

        Each has a structure of its own, or all the *same* one. What a call for as many tuples
        costs above its least, at any size, it waits for memory: that part takes longer.
        """
        waits = [
            memory.percent_of_wait(size * self.tuple_bytes, cores, same=same) for size in self.sizes
        ]

        def longer(column: Sequence[int]) -> tuple[int, ...]:
            least = min(column, default=0)
            return tuple(
                least + (one - least) * wait // 100
                for one, wait in zip(column, waits[: len(column)], strict=True)
            )

        columns = [longer(column) for column in zip(*self.percents, strict=True)]
        return replace(
            self,
            percents=tuple(zip(*columns, strict=True)),
            copied_percents=longer(self.copied_percents),
            match_percents=longer(self.match_percents),
            _known={},
        )

    def units_at(self, size: int) -> tuple[int, ...]:
        """Return the prices of units at a *size*, in calls as long as were measured.

        An insertion includes a tuple's price, and its share of the call's.
        """
        rows = self.rows[-1]
        percents = self.percents_at(size, rows)
        of_units = [percents.work] * len(self.unit_ps)
        of_units[BYTES_COPIED], of_units[MATCHES] = percents.copied, percents.matches
        units = [ps * part // 100 for ps, part in zip(self.unit_ps, of_units, strict=True)]
        units[INSERTS] += (self.row_ps + self.call_ps // rows) * percents.work // 100
        return tuple(units)


@lru_cache(maxsize=1 << 16)
def _log2(number: int) -> int:
    """Return the logarithm of *number*, at least 1, in sixteenths: linear between powers of 2."""
    number = max(1, number)
    bits = number.bit_length() - 1
    return (bits << _FRACTION_BITS) + (number << _FRACTION_BITS >> bits) - (1 << _FRACTION_BITS)


def _interpolate(at: int, points: Sequence[int], values: Sequence[int]) -> int:
    """Return the value at a place between *points*; beyond the first and last it is theirs."""
    for (low, least), (high, most) in pairwise(zip(points, values, strict=True)):
        if at < high:
            return least + (most - least) * (max(at, low) - low) // (high - low)
    return values[-1]
