"""Messages between stages, as the bytes that Spark ships and keeps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from actors.state import from_bytes, to_bytes
from joins.state import revive

ROW = "via int, stage int, shard int, parcel binary"
"""Columns of what travels: the key of the group that it goes to next, the stage and shard that it
is for, and the parcel."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A message for actors of one shard.

    Attributes
    ----------
    order
        Numbers the messages of one sending shard in one trigger; those of several shards are taken
        by it in turns.
    rank
        Of the sending shard among those of all stages.
    sender, port, payload
        The message.
    receivers
        Actors of the shard that it is for; none stands for all its sources.
    """

    order: int
    rank: int
    sender: str
    port: str
    payload: Any
    receivers: tuple[str, ...]


def pack(letters: Iterable[tuple[Letter, bytes]]) -> bytes:
    """Return a parcel of *letters*, each with its payload as bytes (see `wrap`)."""
    return to_bytes(
        [
            [
                letter.order,
                letter.rank,
                letter.sender,
                letter.port,
                np.frombuffer(payload, np.uint8),
                letter.receivers,
            ]
            for letter, payload in letters
        ]
    )


def wrap(payload: Any) -> bytes:
    """Return a payload as bytes."""
    return to_bytes(payload)


def unpack(parcels: Sequence[bytes]) -> list[Letter]:
    """Return the letters of all *parcels* of a trigger, in the order they are to be taken.

    The parcels may come in any order: Spark promises none within a group.
    """
    letters = [
        Letter(order, rank, sender, port, revive(from_bytes(payload.data)), tuple(receivers))
        for parcel in parcels
        for order, rank, sender, port, payload, receivers in from_bytes(parcel)
    ]
    return sorted(letters, key=lambda letter: (letter.order, letter.rank))
