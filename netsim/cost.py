"""What work costs in virtual time: counters times a cost profile.

The units of work are the same everywhere, but not what surrounds them: one operator spends most of
its time in its counted work, another in the code around it, by message or by tuple. So a calibrated
profile also has the costs of each operator of each system (`OperatorProfile`), and of transport: a
message that stays within its process is handed over as it is; one that leaves it costs its sender
about as much as its receiver.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

from joins.work import Work

PROFILES = Path(__file__).parent / "profiles"

TRANSPORT, OPERATORS = "transport", "operators"
"""Keys of a profile that was measured operator by operator (see `operator_profiles`)."""
WINDOW_JOINS = "window_joins"
"""Key of what window joins take on the machine that the profile was measured on."""

GROUPS = {
    "search_percent": ("comparison_ps", "insert_ps", "move_ps", "atomic_ps"),
    "bits_percent": ("bit_ps", "copied_byte_ps"),
    "matches_percent": ("match_ps",),
}
"""Which units of work an operator has one factor for. Their prices differ between operators by more
than one factor: a comparison in a vector from one along pointers, a match that is counted
from one that is mispredicted, listed and sent on."""


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

    charges_senders: ClassVar[bool] = False
    """Whether `sent_ns` can be more than 0."""

    def __post_init__(self) -> None:
        for cost in fields(self)[1:]:
            value = getattr(self, cost.name)
            if not isinstance(value, int) or value < 0:
                raise ValueError(
                    f"cost profile {self.name!r}: {cost.name} is {value!r}; it must be a whole "
                    "number of picoseconds, 0 or more"
                )

    def floor_ns(self, rows: int, nbytes: int) -> int:
        """Return the least that a message of *rows* tuples and *nbytes* bytes costs to receive."""
        return (self.message_ps + rows * self.row_ps + nbytes * self.byte_ps) // 1000

    def local_ns(self, rows: int, nbytes: int) -> int:
        """Return the least that a message from the same site costs to receive: no less."""
        return self.floor_ns(rows, nbytes)

    def sent_ns(self, rows: int, messages: int, nbytes: int) -> int:
        """Return what sending costs: it is in what the receivers pay."""
        return 0

    def work_ns(self, work: Work) -> int:
        """Return what *work* costs on top of the floor, in nanoseconds."""
        return (
            work.comparisons * self.comparison_ps
            + work.inserts * self.insert_ps
            + work.moves * self.move_ps
            + work.bits * self.bit_ps
            + work.bytes_copied * self.copied_byte_ps
            + work.matches * self.match_ps
            + work.atomics * self.atomic_ps
        ) // 1000 + work.elapsed_ns

    @property
    def unit_ps(self) -> tuple[int, ...]:
        """What one unit of each counter costs, in the order of `joins.work.COUNTERS`."""
        return (
            self.comparison_ps,
            self.insert_ps,
            self.move_ps,
            self.bit_ps,
            self.copied_byte_ps,
            self.match_ps,
            self.atomic_ps,
            1000,
        )


def load_profile(name_or_path: str | Path = "default") -> CostProfile:
    """Read a cost profile: a committed one by name, or a TOML file by path.

    Raise :exc:`ValueError` naming the file and what is wrong with it.
    """
    path = profile_path(name_or_path)
    values = tomllib.loads(path.read_text())
    for key in (TRANSPORT, OPERATORS, WINDOW_JOINS):
        values.pop(key, None)
    try:
        return CostProfile(**{"name": path.stem, **values})
    except TypeError as error:
        allowed = ", ".join(f.name for f in fields(CostProfile))
        raise ValueError(f"{path}: {error}; a cost profile has the keys {allowed}") from None


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
    """What messages cost, whatever the operator, beside what `CostProfile` has their receiver pay.

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
    search_percent, bits_percent, matches_percent
        Its work, in percent of the prices of the units in each of the `GROUPS`.
    """

    message_ps: int
    row_ps: int
    search_percent: int
    bits_percent: int
    matches_percent: int


@dataclass(frozen=True, kw_only=True)
class OperatorProfile(CostProfile):
    """A cost profile of one operator.

    Attributes
    ----------
    local_message_ps, sent_message_ps, sent_byte_ps
        See `Transport`; receiving includes what the operator itself costs a message.
    sent_row_ps
        Each tuple that it sends as a source.
    """

    local_message_ps: int
    sent_message_ps: int
    sent_byte_ps: int
    sent_row_ps: int

    charges_senders: ClassVar[bool] = True

    @classmethod
    def of(cls, base: CostProfile, transport: Transport, cost: OperatorCost) -> OperatorProfile:
        """Return *base* as it is for an operator of *cost*."""
        units = {
            unit: getattr(base, unit) * getattr(cost, group) // 100
            for group, members in GROUPS.items()
            for unit in members
        }
        return cls(
            name=base.name,
            message_ps=base.message_ps + cost.message_ps,
            row_ps=base.row_ps + cost.row_ps,
            byte_ps=base.byte_ps,
            local_message_ps=transport.local_message_ps + cost.message_ps,
            sent_message_ps=transport.sent_message_ps,
            sent_byte_ps=transport.sent_byte_ps,
            sent_row_ps=cost.row_ps,
            **units,
        )

    def local_ns(self, rows: int, nbytes: int) -> int:
        """Return the least that a message from the same site costs to receive."""
        return (self.local_message_ps + rows * self.row_ps) // 1000

    def sent_ns(self, rows: int, messages: int, nbytes: int) -> int:
        """Return what sending costs: a source its *rows*, anyone the *messages* to other sites."""
        return (
            rows * self.sent_row_ps + messages * self.sent_message_ps + nbytes * self.sent_byte_ps
        ) // 1000


def operator_profiles(name_or_path: str | Path, topology: str) -> dict[str, OperatorProfile]:
    """Return the profiles of the operators of *topology*, by name; none where none was measured.

    Raise :exc:`ValueError` as `load_profile` does, and naming an entry that is wrong.
    """
    base, path = load_profile(name_or_path), profile_path(name_or_path)
    values = tomllib.loads(path.read_text())
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
