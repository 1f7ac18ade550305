"""What work costs in virtual time: counters times a cost profile."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar

from joins.work import Work

PROFILES = Path(__file__).parent / "profiles"

TRANSPORT, OPERATORS = "transport", "operators"
"""Keys of a profile that was measured operator by operator (see `netsim.operator_cost`)."""
WINDOW_JOINS = "window_joins"
"""Key of what window joins take on the machine that the profile was measured on."""


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
        Receiving one message, whatever it holds.
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
