"""What single operators cost, where a profile was measured from them.

The units of work are the same everywhere, but not what surrounds them: one operator spends most of
its time in its counted work, another in the code around it, by message or by tuple. A calibrated
profile says so for each operator of each system, and what transport costs: a message that stays
within its process is handed over as it is; one that leaves it costs its sender about as much as its
receiver.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from netsim.cost import OPERATORS, TRANSPORT, CostProfile, load_profile, profile_path

GROUPS = {
    "search_percent": ("comparison_ps", "insert_ps", "move_ps", "atomic_ps"),
    "bits_percent": ("bit_ps", "copied_byte_ps"),
    "matches_percent": ("match_ps",),
}
"""Which units of work an operator has one factor for. Their prices differ between operators by more
than one factor could say: a comparison in a vector from one along pointers, a match that is counted
from one that is mispredicted, listed and sent on."""


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
