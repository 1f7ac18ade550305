"""What work costs in virtual time: counters times a cost profile.

The operations of known structures have prices of their own (`netsim.structure_cost`). Work that is
no step of one is charged by the prices of units (`CostProfile`).

What surrounds the work differs, too, between operators. So a profile that was calibrated by live
runs also has the costs of each operator of each system (`OperatorProfile`), and of transport: a
message that stays within its process is handed over as it is; one that leaves it costs its sender
about as much as its receiver.

All is integer arithmetic: the order of events follows from it, on every machine the same.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from joins.work import NO_WORK, Step, Work
from netsim.structure_cost import UNITS, Memory, StructureCost, are_whole

PROFILES = Path(__file__).parent / "profiles"

TRANSPORT, OPERATORS = "transport", "operators"
"""Keys of a profile that was measured operator by operator (see `operator_profiles`)."""

MACHINE = "machine"
"""Key of what a profile was measured on."""
LIKE = "like"
"""Among the prices of structures, the name of a profile that has the others."""
CALL = "call_ps"
"""Among the prices of structures, what a call costs in those of that other profile."""
STRUCTURES = "structures"
"""Key of the prices of structures, by operation; or the name of a profile that has them."""
MEMORY = "memory"
"""Key of how fast the machine's memory is."""


@dataclass(frozen=True, kw_only=True)
class CostProfile:
    """Cost of one unit of each kind of work, in integer picoseconds.

    Integers, because sums of floats could differ in the last digit between machines, and with them
    the order of events.

    Attributes
    ----------
    name
        Where the figures come from.
    message_ps
        Receiving one message, whatever its size.
    row_ps, byte_ps
        Receiving one tuple, one byte.
    comparison_ps, insert_ps, move_ps, bit_ps, copied_byte_ps, match_ps, atomic_ps
        One unit of the counter of that name in `joins.work.Work`.
    structures
        By the name of a `joins.work.Step` what it costs.
    memory
        How fast memory is read by one core and by several; None where it was not measured.
    """

    name: str
    message_ps: int
    row_ps: int
    byte_ps: int
    comparison_ps: int
    insert_ps: int
    move_ps: int
    bit_ps: int
    copied_byte_ps: int
    match_ps: int
    atomic_ps: int
    structures: Mapping[str, StructureCost] = field(default_factory=dict, repr=False)
    memory: Memory | None = field(default=None, repr=False)

    charges_senders: ClassVar[bool] = False
    """Whether `sent_ns` can be more than 0."""

    def __post_init__(self) -> None:
        self._check_prices({name: getattr(self, name) for name in COSTS})

    def _check_prices(self, prices: Mapping[str, object]) -> None:
        for name, value in prices.items():
            if not are_whole(value):
                raise ValueError(
                    f"cost profile {self.name!r}: {name} is {value!r}; it must be a whole number "
                    "of picoseconds, 0 or more"
                )

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
        and long calls. An insertion costs what belongs to a tuple, too.
        """
        cost = self.structures.get(name)
        return self.unit_ps if cost is None else (*cost.units_at(size), 1000)

    def on_cores(self, cores: int, *, same: bool = False) -> Self:
        """Return the profile of each core while so many *cores* of its machine are at work.

        They share the last cache and the way to memory, and the structures if these are the *same*.
        """
        memory = self.memory
        if cores < 2 or memory is None:
            return self
        structures = {
            name: cost.on_cores(cores, memory, same=same) for name, cost in self.structures.items()
        }
        return replace(self, structures=structures)

    def part_ns(self, name: str, size: int, work: Work) -> float:
        """Return what *work* costs that is part of a step, in a structure of that *size*."""
        units = self.units_of(name, size)
        return sum(count * ps for count, ps in zip(work, units, strict=True)) / 1000

    @property
    def unit_ps(self) -> tuple[int, ...]:
        """What one unit of each counter costs, in the order of `joins.work.COUNTERS`."""
        return (*(getattr(self, unit) for unit in UNITS), 1000)


COSTS = tuple(cost.name for cost in fields(CostProfile) if cost.name.endswith("_ps"))
"""Names of the prices in a profile that are not of a structure."""


def load_profile(name_or_path: str | Path = "default") -> CostProfile:
    """Read a cost profile: a committed one by name, or a TOML file by path.

    It is read once for each version of its file, and of those it has prices from, as that takes
    longer than a short run. Raise :exc:`ValueError` naming the file and what is wrong with it.
    """
    return _load(*_versions(profile_path(name_or_path)))


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
    version = _version(path)
    like = _structures_of(_parse(version)).get(LIKE)
    return [version, *(_versions(profile_path(like)) if like else ())]


def _structures_of(written: Mapping[str, Any]) -> dict[str, Any]:
    structures = written.get(STRUCTURES, {})
    return {LIKE: structures} if isinstance(structures, str) else dict(structures)


@cache
def _parse(version: _Version) -> Mapping[str, Any]:
    return tomllib.loads(version.path.read_text())


@cache
def _load(version: _Version, *others: _Version) -> CostProfile:
    apart = (TRANSPORT, OPERATORS, MACHINE, STRUCTURES, MEMORY)
    path, written = version.path, _parse(version)
    values = {key: value for key, value in written.items() if key not in apart}
    structures, memory = _structures_of(written), written.get(MEMORY)
    try:
        profile = CostProfile(**{"name": path.stem, **values})
    except TypeError as error:
        allowed = ", ".join(f.name for f in fields(CostProfile))
        raise ValueError(f"{path}: {error}; a cost profile has the keys {allowed}") from None
    inherited = _load(*others) if others else profile
    structures.pop(LIKE, None)
    return replace(
        profile,
        structures=_read_structures(structures, profile, inherited.structures, path),
        memory=inherited.memory if memory is None else _read_memory(memory, path),
    )


def _read_memory(values: Mapping[str, Any], path: Path) -> Memory:
    try:
        return Memory.read(values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {MEMORY}: {error}; joinsim calibrate measures it anew") from None


def _read_structures(
    values: Mapping[str, Any],
    profile: CostProfile,
    inherited: Mapping[str, StructureCost],
    path: Path,
) -> dict[str, StructureCost]:
    """Read what steps cost, beside those that are *inherited*.

    One that is the name of another costs what that one does; the price `CALL` is for all of them.
    """
    costs = dict(inherited)
    for name, cost in values.items():
        try:
            if name == CALL:
                costs = {step: replace(one, call_ps=cost) for step, one in costs.items()}
            elif isinstance(cost, str):
                costs[name] = inherited[cost]
            else:
                costs[name] = StructureCost.read(cost, profile.unit_ps)
        except (KeyError, TypeError, ValueError) as error:
            advice = "joinsim calibrate measures it anew"
            raise ValueError(f"{path}: {STRUCTURES}.{name}: {error}; {advice}") from None
    return costs


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
class Transport:
    """Costs of messages that are the same for all operators, beside those in `CostProfile`.

    Attributes
    ----------
    local_message_ps
        Receiving one from the same site, or a timer; instead of message and bytes.
    sent_message_ps, sent_byte_ps
        Sending one to another site, and each of its bytes.
    """

    local_message_ps: int
    sent_message_ps: int
    sent_byte_ps: int


@dataclass(frozen=True, kw_only=True)
class OperatorCost:
    """What one operator costs beside the transport of its messages.

    Attributes
    ----------
    message_ps
        Each message or timer, picoseconds.
    row_ps
        Each tuple that it receives or, as a source, sends.
    work_percent
        Its work, in percent of what it costs by structures and units.
    """

    message_ps: int
    row_ps: int
    work_percent: int


@dataclass(frozen=True, kw_only=True)
class OperatorProfile(CostProfile):
    """A cost profile of one operator; what receiving costs includes what the operator does.

    Attributes
    ----------
    transport
        What its messages cost.
    cost
        What it costs beside them.
    """

    transport: Transport
    cost: OperatorCost

    charges_senders: ClassVar[bool] = True

    @classmethod
    def of(cls, base: CostProfile, transport: Transport, cost: OperatorCost) -> OperatorProfile:
        """Return *base* adjusted to an operator with this *cost*."""
        changed = {
            "message_ps": base.message_ps + cost.message_ps,
            "row_ps": base.row_ps + cost.row_ps,
        }
        prices = {one.name: getattr(base, one.name) for one in fields(base)}
        return cls(**prices | changed, transport=transport, cost=cost)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_prices(vars(self.transport))
        self._check_prices(vars(self.cost))

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
    measured: Mapping[str, Any] = values.get(OPERATORS, {}).get(topology, {})
    if not measured:
        return {}
    try:
        transport = Transport(**values[TRANSPORT])
        return {
            role: OperatorProfile.of(base, transport, OperatorCost(**cost))
            for role, cost in measured.items()
        }
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path}: the operators of {topology}: {error}") from None
