"""What a shard keeps in Spark's state store: a snapshot, and the parcels taken since.

Rewriting the whole state in every trigger would cost as much as the window is long; a log of all
parcels would never end. So parcels are appended until they are as large as the snapshot before
them, and then a new snapshot replaces both: what is written follows the batch or the window,
whichever is less, and so does what has to be read to rebuild a shard.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from actors.state import from_bytes, to_bytes
from spark_bridge.hosted.parcels import unpack
from spark_bridge.hosted.shard import StageShard

_CHUNK_BYTES = 32 << 20
"""A value of a state store of 256 MB works, one of 800 MB does not."""


class Head(NamedTuple):
    """Which trigger of a shard was kept last.

    Attributes
    ----------
    trigger
        Its number among those that brought the shard something, from 1.
    nonce
        Drawn anew each time it ran: a trigger that ran twice was kept once.
    chunks
        Pieces of the snapshot.
    snapshot_bytes, log_bytes
        Sizes of the snapshot, and of the parcels since.
    log
        How many parcels that is.
    """

    trigger: int = 0
    nonce: int = 0
    chunks: int = 0
    snapshot_bytes: int = 0
    log_bytes: int = 0
    log: int = 0


_HEAD = struct.Struct(f"<{len(Head._fields)}q")
_HEAD_PLACE = -1
_LOG_PLACE = 1 << 20
"""Places: of the head, of the snapshot's pieces from 0, and of the log's parcels from here."""


class Kept:
    """The state variable of one group; Spark takes some hundredths of a second for each it has."""

    def __init__(self, handle: Any) -> None:
        self._places = handle.getMapState("kept", "place int", "bytes binary")

    @property
    def head(self) -> Head:
        """Return what was kept last."""
        kept = self._places.getValue((_HEAD_PLACE,))
        return Head(*_HEAD.unpack(kept[0])) if kept else Head()

    def rebuild(self, head: Head, shard: StageShard) -> None:
        """Bring a new *shard* to where *head* says it was; what it sends again is dropped."""
        if head.chunks:
            # Of a bytearray, arrays can be written to, as actors do with what they restore.
            pieces = (self._places.getValue((i,))[0] for i in range(head.chunks))
            shard.restore(from_bytes(bytearray().join(pieces)))
        triggers: dict[int, list[bytes]] = {}
        for i in range(head.log):
            data = bytes(self._places.getValue((_LOG_PLACE + i,))[0])
            triggers.setdefault(int.from_bytes(data[:8], "little"), []).append(data[8:])
        for parcels in triggers.values():
            shard.deliver(unpack(parcels))

    def keep(self, before: Head, nonce: int, parcels: Sequence[bytes], shard: StageShard) -> Head:
        """Keep what *shard* has become by *parcels*."""
        trigger = before.trigger + 1
        grown = sum(map(len, parcels))
        if before.log_bytes + grown < before.snapshot_bytes:
            for i, parcel in enumerate(parcels, _LOG_PLACE + before.log):
                self._places.updateValue((i,), (trigger.to_bytes(8, "little") + parcel,))
            head = Head(
                trigger,
                nonce,
                before.chunks,
                before.snapshot_bytes,
                before.log_bytes + grown,
                before.log + len(parcels),
            )
        else:
            head = self._snapshot(before, trigger, nonce, to_bytes(shard.snapshot()))
        self._places.updateValue((_HEAD_PLACE,), (_HEAD.pack(*head),))
        return head

    def _snapshot(self, before: Head, trigger: int, nonce: int, data: bytes) -> Head:
        starts = range(0, len(data), _CHUNK_BYTES)
        for i, start in enumerate(starts):
            self._places.updateValue((i,), (data[start : start + _CHUNK_BYTES],))
        for i in range(len(starts), before.chunks):
            self._places.removeKey((i,))
        for i in range(_LOG_PLACE, _LOG_PLACE + before.log):
            self._places.removeKey((i,))
        return Head(trigger, nonce, len(starts), len(data))
