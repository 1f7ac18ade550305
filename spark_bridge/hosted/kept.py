"""What a shard keeps: a snapshot, the parcels taken since, and in Spark's state which they are.

Rewriting the whole state in every trigger would cost as much as the window is long; a log of all
parcels would never end. So parcels are kept until they are as large as the snapshot before them,
and then a new snapshot replaces both: what is written follows the batch or the window, whichever is
less, and so does what has to be read to rebuild a shard.

Both are files beside Spark's checkpoint, a trigger each. Spark's state store, which takes more
than ten times as long over a megabyte, holds the `Head` alone. A file is whole before the trigger
that names it is committed. A trigger that Spark runs again writes the same file again; and what a
snapshot replaces is deleted by the trigger after it, when nothing goes back behind it any more.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from actors.state import from_bytes, to_bytes
from spark_bridge.errors import DataError
from spark_bridge.hosted.parcels import unpack
from spark_bridge.hosted.shard import StageShard
from spark_bridge.hosted.whole_file import whole_file


class Head(NamedTuple):
    """Which trigger of a shard was kept last.

    Attributes
    ----------
    trigger
        Its number among those that brought the shard something, from 1.
    nonce
        Drawn anew each time it ran: a trigger that ran twice was kept once.
    snapshot, replaced
        The triggers that kept the latest snapshot, and the one before; 0 without.
    snapshot_bytes, log_bytes
        Sizes of the latest snapshot, and of the parcels since.
    """

    trigger: int = 0
    nonce: int = 0
    snapshot: int = 0
    replaced: int = 0
    snapshot_bytes: int = 0
    log_bytes: int = 0


_HEAD = struct.Struct(f"<{len(Head._fields)}q")
_LENGTH = struct.Struct("<q")


class Kept:
    """The state of one group: what is written to *folder*, and Spark's variable that names it."""

    def __init__(self, handle: Any, folder: Path) -> None:
        self._head = handle.getValueState("head", "bytes binary")
        self._folder = folder

    @property
    def head(self) -> Head:
        """Return what was kept last."""
        kept = self._head.get()
        return Head(*_HEAD.unpack(kept[0])) if kept else Head()

    def rebuild(self, head: Head, shard: StageShard) -> None:
        """Bring a new *shard* to where *head* says it was; what it sends again is dropped.

        Raise :exc:`DataError` naming a file that is no longer there.
        """
        needed = range(head.snapshot or 1, head.trigger + 1)
        missing = [p for p in (self._file(shard, t) for t in needed) if not p.exists()]
        if missing:
            raise DataError(
                f"{missing[0]} is missing, which the checkpoint beside it counts on: put it back, "
                f"or delete {self._folder.parent} and what was found with it, and begin anew"
            )
        if head.snapshot:
            # Of a bytearray, arrays can be written to, as actors do with what they restore.
            shard.restore(from_bytes(bytearray(self._file(shard, head.snapshot).read_bytes())))
        for trigger in range(head.snapshot + 1, head.trigger + 1):
            shard.deliver(unpack(list(_parcels_in(self._file(shard, trigger)))))

    def keep(self, before: Head, nonce: int, parcels: Sequence[bytes], shard: StageShard) -> Head:
        """Keep what *shard* has become by *parcels*."""
        head = before._replace(trigger=before.trigger + 1, nonce=nonce)
        grown = before.log_bytes + sum(map(len, parcels))
        path = self._file(shard, head.trigger)
        with whole_file(path) as unfinished, unfinished.open("wb") as file:
            if grown < before.snapshot_bytes:
                head = head._replace(log_bytes=grown)
                for parcel in parcels:
                    file.write(_LENGTH.pack(len(parcel)))
                    file.write(parcel)
            else:
                size = file.write(to_bytes(shard.snapshot()))
                head = head._replace(
                    snapshot=head.trigger,
                    replaced=before.snapshot,
                    snapshot_bytes=size,
                    log_bytes=0,
                )
        self._head.update((_HEAD.pack(*head),))
        if before.trigger == before.snapshot:
            for trigger in range(before.replaced, before.snapshot):
                self._file(shard, trigger).unlink(missing_ok=True)
        return head

    def _file(self, shard: StageShard, trigger: int) -> Path:
        stage, number = shard.home
        return self._folder / f"{trigger:06d}-{stage}-{number}"


def _parcels_in(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while length := file.read(_LENGTH.size):
            yield file.read(*_LENGTH.unpack(length))
