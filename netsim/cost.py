"""What work costs in virtual time: counters times a cost profile.

A unit of work does not cost the same in every structure. A comparison in a vector is not one along
pointers, an insertion into a hash table none into a tree; and the same operation costs more where
the structure no longer fits into a cache, or where a call is for few tuples that do not share what
it brings into one. So each operation of each structure has prices of its own (`StructureCost`): a
call, a tuple, a unit of each kind of work, and a table of percents by the structure's size and the
tuples of a call, in which the levels of memory show. Matches, and bytes that a merge copies, depend
on the size alone: how they lie in memory has nothing to do with calls. Work that is no step of a
known structure is charged by the prices of units (`CostProfile`).

A structure is measured alone on its processor. Where several cores of a site work at once, they
share the last cache and the way to memory (`Memory`): then what a structure costs above its least,
which is what it waits for memory, takes as much longer as reads did when all cores of a machine
read at once.

What surrounds the work differs, too, between operators. So a profile that was calibrated by live
runs also has the costs of each operator of each system (`OperatorProfile`), and of transport: a
message that stays within its process is handed over as it is; one that leaves it costs its sender
about as much as its receiver.

All is integer arithmetic: the order of events follows from it, on every machine the same.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from types import UnionType
from typing import Any, ClassVar, NamedTuple, Self

from joins.work import BYTES_COPIED, ELAPSED_NS, INSERTS, MATCHES, NO_WORK, Step, Work

PROFILES = Path(__file__).parent / "profiles"

_FRACTION_BITS = 4
"""Logarithms are in sixteenths."""
_UNITS = tuple(
    f"{unit}_ps"
    for unit in ("comparison", "insert", "move", "bit", "copied_byte", "match", "atomic")
)
"""Prices of a unit of each counter, in the order of `joins.work.COUNTERS` without time itself."""


def _check_whole(figures: Mapping[str, object]) -> None:
    """Raise :exc:`ValueError` naming the first of *figures* that is no whole number, 0 or more.

    A figure may also be a tuple of such numbers, at any depth.
    """
    for name, value in figures.items():
        if isinstance(value, tuple):
            if not all(type(one) is int and one >= 0 for one in value):
                _check_whole({f"{name}[{place}]": one for place, one in enumerate(value)})
        elif type(value) is not int or value < 0:
            unit = " of picoseconds" if "_ps" in name else ""
            raise ValueError(f"{name} is {value!r}; it must be a whole number{unit}, 0 or more")


def _ascend(sizes: Sequence[int]) -> bool:
    return bool(sizes) and all(a < b for a, b in pairwise(sizes))


def _as_tuples(value: Any) -> Any:
    """Return what a profile has as lists as tuples, at any depth."""
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What a read takes, as `joinsim calibrate` measured it."""

    cores: int
    """How many read at once where several did."""
    sizes: tuple[int, ...]
    """Bytes that a core read from, ascending."""
    wait_ps: tuple[int, ...]
    """By size what a read takes that waits for the one before it, picoseconds."""
    read_ps: tuple[int, ...]
    """The same of reads that do not wait for each other, four at a time."""
    apart_percents: tuple[int, ...]
    same_percents: tuple[int, ...]
    """What such a read takes while all cores read, each from memory of its own or all from the
    same; of what it takes alone."""

    def __post_init__(self) -> None:
        if self.cores < 1:
            raise ValueError(f"cores is {self.cores}, must be 1 or more")
        if not _ascend(self.sizes):
            raise ValueError(f"sizes are {list(self.sizes)}; they must ascend")
        for name in ("wait_ps", "read_ps", "apart_percents", "same_percents"):
            if len(getattr(self, name)) != len(self.sizes):
                raise ValueError(f"{name} must have an entry for each of sizes")
        _check_whole(vars(self))

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
    """Prices of one operation of a structure."""

    sizes: tuple[int, ...]
    rows: tuple[int, ...]
    """Tuples in the structure, and of a call, at which it was measured; both ascend."""
    percents: tuple[tuple[int, ...], ...]
    """For each size and number of rows what part of the prices is charged; between them it is
    interpolated by their logarithms, beyond them it stays."""
    call_ps: int
    row_ps: int
    """A call, and a tuple of it, picoseconds."""
    unit_ps: tuple[int, ...]
    """A unit of each counter, in the order of `joins.work.COUNTERS` without time itself."""
    copied_percents: tuple[int, ...] = ()
    match_percents: tuple[int, ...] = ()
    """The same for each size, of bytes copied and of matches; empty where it is always all."""
    tuple_bytes: int = 0
    """Bytes of the structure for each of its tuples."""
    _known: dict[tuple[int, int], Percents] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        for name in ("sizes", "rows"):
            points = getattr(self, name)
            if not points or points[0] < 1 or not _ascend(list(map(_log2, points))):
                raise ValueError(
                    f"{name} are {list(points)}; they must ascend from 1 or more, each by a "
                    "sixteenth at least"
                )
        if [len(row) for row in self.percents] != [len(self.rows)] * len(self.sizes):
            raise ValueError(
                "percents must have a row for each size, with an entry for each of rows"
            )
        lengths = {len(self.copied_percents), len(self.match_percents)}
        if not lengths <= {0, len(self.sizes)}:
            raise ValueError("copied_percents and match_percents must have an entry for each size")
        figures = vars(self) | dict(zip(_UNITS, self.unit_ps, strict=True))
        del figures["unit_ps"], figures["_known"]
        _check_whole(figures)

    @classmethod
    def read(cls, values: Mapping[str, Any], base_ps: Sequence[int]) -> StructureCost:
        """Read a table of a profile; a unit without a price there has that of *base_ps*.

        Raise :exc:`TypeError` or :exc:`ValueError` saying what is wrong with it.
        """
        table = {name: _as_tuples(value) for name, value in values.items()}
        unit_ps = tuple(
            table.pop(unit, base) for unit, base in zip(_UNITS, base_ps[:ELAPSED_NS], strict=True)
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
            for unit, ps, base in zip(_UNITS, self.unit_ps, base_ps[:ELAPSED_NS], strict=True)
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
        key = _log2(step.size), _log2(step.rows)
        percents = self._known.get(key)
        if percents is None:
            percents = self._known[key] = self.percents_at(step.size, step.rows)
        ps = (
            ps * percents.work
            + copied * copied_byte * percents.copied
            + matches * match * percents.matches
        )
        return ps // 100 + elapsed_ns * 1000

    def percents_at(self, size: int, rows: int) -> Percents:
        """Return what part of the prices a call for so many *rows* costs at a *size*."""
        at, of_size = _log2(rows), _log2(size)
        rows_at, sizes_at = list(map(_log2, self.rows)), list(map(_log2, self.sizes))
        of_sizes = [_interpolate(at, rows_at, row) for row in self.percents]
        columns = (of_sizes, self.copied_percents, self.match_percents)
        return Percents(
            *(_interpolate(of_size, sizes_at, column) if column else 100 for column in columns)
        )

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
        )

    def units_at(self, size: int) -> tuple[int, ...]:
        """Return the prices of units at a *size*, in calls as long as were measured."""
        percents = self.percents_at(size, self.rows[-1])
        of_units = [percents.work] * len(self.unit_ps)
        of_units[BYTES_COPIED], of_units[MATCHES] = percents.copied, percents.matches
        return tuple(ps * part // 100 for ps, part in zip(self.unit_ps, of_units, strict=True))

    def tuple_ps_at(self, size: int) -> int:
        """Return what a tuple costs beside its units, with its share of such a call's price."""
        rows = self.rows[-1]
        return (self.row_ps + self.call_ps // rows) * self.percents_at(size, rows).work // 100


@lru_cache(maxsize=1 << 12)
def _cost_on_cores(cost: StructureCost, cores: int, memory: Memory, same: bool) -> StructureCost:
    """Return the prices of `StructureCost.on_cores`: those of a profile take longer than a run."""
    return cost.on_cores(cores, memory, same=same)


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


@dataclass(frozen=True, kw_only=True)
class CostProfile:
    """Cost of one unit of each kind of work, in integer picoseconds.

    Integers, because sums of floats could differ in the last digit between machines, and with them
    the order of events.
    """

    name: str
    """Where the figures come from."""
    message_ps: int
    """Receiving one message, whatever its size."""
    row_ps: int
    byte_ps: int
    """Receiving one tuple, one byte."""
    comparison_ps: int
    insert_ps: int
    move_ps: int
    bit_ps: int
    copied_byte_ps: int
    match_ps: int
    atomic_ps: int
    """One unit of the counter of that name in `joins.work.Work`."""
    structures: Mapping[str, StructureCost] = field(default_factory=dict, repr=False)
    """By the name of a `joins.work.Step` what it costs."""
    memory: Memory | None = field(default=None, repr=False)
    """How fast memory is read by one core and by several; None where it was not measured."""

    charges_senders: ClassVar[bool] = False
    """Whether `sent_ns` can be more than 0."""

    def __post_init__(self) -> None:
        _check_whole({name: getattr(self, name) for name in COSTS})

    def floor_ns(self, rows: int, nbytes: int) -> int:
        """Return the least that a message of *rows* tuples and *nbytes* bytes costs to receive."""
        return (self.message_ps + rows * self.row_ps + nbytes * self.byte_ps) // 1000

    local_ns = floor_ns
    """The same of a message from the same site."""

    def sent_ns(self, rows: int, messages: int, nbytes: int) -> int:
        """Return 0: receivers pay for sending."""
        return 0

    def work_ns(self, work: Work) -> int:
        """Return what *work* costs on top of the floor, in nanoseconds."""
        ps = (
            work.comparisons * self.comparison_ps
            + work.inserts * self.insert_ps
            + work.moves * self.move_ps
            + work.bits * self.bit_ps
            + work.bytes_copied * self.copied_byte_ps
            + work.matches * self.match_ps
            + work.atomics * self.atomic_ps
        )
        return self._scaled(ps) // 1000 + work.elapsed_ns

    def _scaled(self, ps: int) -> int:
        """Scale the price of work, which is a sum over structures and units."""
        return ps

    def steps_ns(self, steps: Sequence[tuple[Step, Work]], other: Work) -> int:
        """Return what *steps* and *other* work cost on top of the floor, in nanoseconds."""
        ps = 0
        for step, work in steps:
            cost = self.structures.get(step.name)
            if cost is None:
                other += work
            else:
                ps += cost.work_ps(step, work)
        ns = self._scaled(ps) // 1000
        return ns if other is NO_WORK else ns + self.work_ns(other)

    def units_of(self, name: str, size: int) -> tuple[int, ...]:
        """Return what one unit of each counter costs in a step, in the order of `COUNTERS`.

        It is for a machine that prices parts of a step by itself, in a structure of that *size*
        and long calls. An insertion costs what belongs to a tuple, too: there is one for each.
        """
        units = list(self._units_in(name, size))
        if name in self.structures:
            units[INSERTS] += self.structures[name].tuple_ps_at(size)
        return tuple(units)

    def on_cores(self, cores: int, *, same: bool = False) -> Self:
        """Return the profile of each core while so many *cores* of its machine are at work.

        They share the last cache and the way to memory, and the structures if these are the *same*.
        """
        memory = self.memory
        if cores < 2 or memory is None:
            return self
        structures = {
            name: _cost_on_cores(cost, cores, memory, same)
            for name, cost in self.structures.items()
        }
        return replace(self, structures=structures)

    def part_ns(self, name: str, size: int, work: Work) -> float:
        """Return what *work* costs by itself that is part of a step, in a structure of that *size*.

        What else a call and a tuple cost is not in it.
        """
        units = self._units_in(name, size)
        return sum(count * ps for count, ps in zip(work, units, strict=True)) / 1000

    def _units_in(self, name: str, size: int) -> tuple[int, ...]:
        """Return the prices of units in a step that has its own, else those of all steps."""
        cost = self.structures.get(name)
        return self.unit_ps if cost is None else (*cost.units_at(size), 1000)

    @property
    def unit_ps(self) -> tuple[int, ...]:
        """What one unit of each counter costs, in the order of `joins.work.COUNTERS`."""
        return (*(getattr(self, unit) for unit in _UNITS), 1000)


COSTS = tuple(cost.name for cost in fields(CostProfile) if cost.name.endswith("_ps"))
"""Names of the prices in a profile that are not of a structure."""


def load_profile(name_or_path: str | Path = "default") -> CostProfile:
    """Read a cost profile: a committed one by name, or a TOML file by path.

    It is read once for each version of its file, and of those it has prices from, as that takes
    longer than a short run. Raise :exc:`ValueError` naming the file and what is wrong with it.
    """
    return _load(*_versions(profile_path(name_or_path)))


def profile_files(name_or_path: str | Path) -> list[Path]:
    """Return the file of a profile, and those of the profiles that it has prices from."""
    return [version.path for version in _versions(profile_path(name_or_path))]


class _Version(NamedTuple):
    """A file as it was last changed."""

    path: Path
    modified_ns: int
    size: int


def _version(path: Path) -> _Version:
    file = path.stat()
    return _Version(path, file.st_mtime_ns, file.st_size)


def _versions(path: Path) -> list[_Version]:
    """Return the version of a profile, and those of the profiles that it has prices from."""
    versions = [_version(path)]
    while like := _structures_of(_parse(versions[-1])).get("like"):
        try:
            other = _version(profile_path(like))
        except ValueError as error:
            raise ValueError(f"{versions[-1].path}: structures: {error}") from None
        if other in versions:
            raise ValueError(
                f"{versions[-1].path}: structures are like those of {like}, which has them from "
                "this profile: one of them must have its own"
            )
        versions.append(other)
    return versions


def _structures_of(written: Mapping[str, Any]) -> dict[str, Any]:
    """Return a profile's prices of structures; ``like`` names the one that has all others."""
    structures = written.get("structures", {})
    return {"like": structures} if isinstance(structures, str) else dict(structures)


@cache
def _parse(version: _Version) -> Mapping[str, Any]:
    path = version.path
    try:
        written = tomllib.loads(path.read_bytes().decode())
    except UnicodeDecodeError:
        raise ValueError(f"{path}: it is not in UTF-8") from None
    except (tomllib.TOMLDecodeError, OSError) as error:
        raise ValueError(f"{path}: {error}") from None
    for name, value, kind, words in _kinds(written):
        if not isinstance(value, kind):
            raise ValueError(f"{path}: {name} is {value!r}: it must be {words}")
    return written


def _kinds(written: Mapping[str, Any]) -> Iterator[tuple[str, object, type | UnionType, str]]:
    """Yield names and values in a profile, of which kind each must be, and that in words.

    What a table has comes after the table itself.
    """
    yield "name", written.get("name", ""), str, "text"
    for key in ("transport", "machine", "memory"):
        yield key, written.get(key, {}), dict, "a table"
    structures, operators = written.get("structures", {}), written.get("operators", {})
    yield "structures", structures, dict | str, "a table, or the name of a profile"
    for name, cost in _structures_of(written).items():
        if name == "like":
            yield f"structures.{name}", cost, str, "the name of a profile"
        elif name != "call_ps":
            yield f"structures.{name}", cost, dict | str, "a table, or the name of one"
    yield "operators", operators, dict, "a table"
    for topology, costs in operators.items():
        yield f"operators.{topology}", costs, dict, "a table"
        for role, cost in costs.items():
            yield f"operators.{topology}.{role}", cost, dict, "a table"


@cache
def _load(version: _Version, *others: _Version) -> CostProfile:
    apart = ("transport", "operators", "machine", "structures", "memory")
    path, written = version.path, _parse(version)
    values = {key: value for key, value in written.items() if key not in apart}
    structures, memory = _structures_of(written), written.get("memory")
    inherited = _load(*others) if others else None
    prices = {} if inherited is None else {cost: getattr(inherited, cost) for cost in COSTS}
    try:
        profile = CostProfile(**{"name": path.stem, **prices, **values})
    except TypeError as error:
        allowed = ", ".join(f.name for f in fields(CostProfile))
        raise ValueError(f"{path}: {error}; a cost profile has the keys {allowed}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    inherited = inherited or profile
    structures.pop("like", None)
    return replace(
        profile,
        structures=_read_structures(structures, profile, inherited.structures, path),
        memory=inherited.memory if memory is None else _read_memory(memory, path),
    )


def _read_memory(values: Mapping[str, Any], path: Path) -> Memory:
    try:
        return Memory.read(values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: memory: {error}; joinsim calibrate measures it anew") from None


def _read_structures(
    values: Mapping[str, Any],
    profile: CostProfile,
    inherited: Mapping[str, StructureCost],
    path: Path,
) -> dict[str, StructureCost]:
    """Read what steps cost, beside those that are *inherited*.

    One that is the name of another costs what that one does; one that is ``like`` another, too, but
    for what is written. A ``call_ps`` beside them is what a call costs in those inherited.
    """
    costs = dict(inherited)
    for name, cost in values.items():
        try:
            if name == "call_ps":
                costs = {step: replace(one, call_ps=cost) for step, one in costs.items()}
            elif isinstance(cost, str):
                costs[name] = _known_cost(inherited, cost)
            elif "like" in cost:
                like = _known_cost(inherited, cost["like"]).written(profile.unit_ps)
                written = {key: value for key, value in cost.items() if key != "like"}
                costs[name] = StructureCost.read(like | written, profile.unit_ps)
            else:
                costs[name] = StructureCost.read(cost, profile.unit_ps)
        except (KeyError, TypeError, ValueError) as error:
            advice = "joinsim calibrate measures it anew"
            raise ValueError(f"{path}: structures.{name}: {error}; {advice}") from None
    return costs


def _known_cost(known: Mapping[str, StructureCost], name: str) -> StructureCost:
    if name not in known:
        raise ValueError(f"there is no structure {name!r} in the profile that this one is like")
    return known[name]


def profile_path(name_or_path: str | Path) -> Path:
    """Return the file of a cost profile; raise :exc:`ValueError` when there is none."""
    path = Path(name_or_path)
    if path.suffix != ".toml":
        path = PROFILES / f"{name_or_path}.toml"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in PROFILES.glob("*.toml")))
        raise ValueError(
            f"no cost profile {str(name_or_path)!r}: give a TOML file or one of {known}"
        )
    return path


@dataclass(frozen=True, kw_only=True)
class TransportCost:
    """Costs of messages that are the same for all operators, beside those in `CostProfile`."""

    local_message_ps: int
    """Receiving one from the same site, or a timer; instead of message and bytes."""
    sent_message_ps: int
    sent_byte_ps: int
    """Sending one to another site, and each of its bytes."""

    def __post_init__(self) -> None:
        _check_whole(vars(self))


@dataclass(frozen=True, kw_only=True)
class OperatorCost:
    """What one operator costs beside the transport of its messages."""

    message_ps: int
    """Each message or timer, picoseconds."""
    row_ps: int
    """Each tuple that it receives or, as a source, sends."""
    work_percent: int
    """Its work, in percent of what it costs by structures and units."""

    def __post_init__(self) -> None:
        _check_whole(vars(self))


@dataclass(frozen=True, kw_only=True)
class OperatorProfile(CostProfile):
    """A cost profile of one operator; what receiving costs includes what the operator does."""

    transport: TransportCost
    """What its messages cost."""
    cost: OperatorCost
    """What it costs beside them."""

    charges_senders: ClassVar[bool] = True

    @classmethod
    def of(cls, base: CostProfile, transport: TransportCost, cost: OperatorCost) -> OperatorProfile:
        """Return *base* adjusted to an operator with this *cost*."""
        changed = {
            "message_ps": base.message_ps + cost.message_ps,
            "row_ps": base.row_ps + cost.row_ps,
        }
        prices = {one.name: getattr(base, one.name) for one in fields(base)}
        return cls(**prices | changed, transport=transport, cost=cost)

    def _scaled(self, ps: int) -> int:
        return ps * self.cost.work_percent // 100

    def local_ns(self, rows: int, nbytes: int) -> int:
        """Return the least that a message from the same site costs to receive."""
        message_ps = self.transport.local_message_ps + self.cost.message_ps
        return (message_ps + rows * self.row_ps) // 1000

    def sent_ns(self, rows: int, messages: int, nbytes: int) -> int:
        """Return what sending costs: a source its *rows*, anyone the *messages* to other sites."""
        transport = self.transport
        return (
            rows * self.cost.row_ps
            + messages * transport.sent_message_ps
            + nbytes * transport.sent_byte_ps
        ) // 1000


def operator_profiles(name_or_path: str | Path, topology: str) -> dict[str, OperatorProfile]:
    """Return the profiles of the operators of *topology*, by name; none where none was measured.

    Raise :exc:`ValueError` as `load_profile` does, and naming an entry that is wrong.
    """
    base, path = load_profile(name_or_path), profile_path(name_or_path)
    values = _parse(_version(path))
    measured: Mapping[str, Any] = values.get("operators", {}).get(topology, {})
    if not measured:
        return {}
    place = "transport"
    try:
        transport = TransportCost(**values.get("transport", {}))
        profiles = {}
        for role, cost in measured.items():
            place = f"operators.{topology}.{role}"
            profiles[role] = OperatorProfile.of(base, transport, OperatorCost(**cost))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {place}: {error}") from None
    return profiles
