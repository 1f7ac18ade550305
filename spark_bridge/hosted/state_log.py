"""The log of a shard's state: files next to Spark's checkpoint, one for each trigger.

Rewriting the whole state in every trigger would cost as much as the window is long; a log of all
parcels would never end. So parcels are stored until they are as large as the snapshot before them;
then a new snapshot replaces both. What is written follows the batch or the window, whichever is
less, and so does what has to be read to rebuild a shard.

Spark's state store, which takes more than ten times as long over a megabyte, has the `LogHead`
alone. A file is whole before the trigger that names it is committed. A trigger that Spark runs
again writes the same file again; and the files that a snapshot replaces are deleted by the trigger
after it, behind which no recovery goes back.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from actors.serialisation import FormatError, from_bytes, to_bytes
from actors.whole_files import whole_file
from joins.errors import DataError
from spark_bridge.hosted.shard import StageShard, unpack_letters


class LogHead(NamedTuple):
    """The last trigger of a shard that is in the log."""

    trigger: int = 0
    """Its number among those that brought the shard something, from 1."""
    nonce: int = 0
    """Drawn anew each time the trigger runs: of two runs, one is in the log."""
    snapshot: int = 0
    replaced: int = 0
    """The triggers that stored the latest snapshot and the one before; 0 without."""
    snapshot_bytes: int = 0
    log_bytes: int = 0
    """Sizes of the latest snapshot, and of the parcels since."""


_HEAD = struct.Struct(f"<{len(LogHead._fields)}q")
_LENGTH = struct.Struct("<q")
_CHECK = struct.Struct("<I")
"""Behind what is in a file: see `_check`."""


class StateLog:
    """The state of one group: files in *folder*, and Spark's variable *head* that names them."""

    def __init__(self, head: Any, folder: Path) -> None:
        self._head, self._folder = head, folder

    @property
    def head(self) -> LogHead:
        """The last trigger that was stored."""
        stored = self._head.get()
        return LogHead(*_HEAD.unpack(stored[0])) if stored else LogHead()

    def rebuild(self, head: LogHead, shard: StageShard) -> None:
        """Restore a new *shard* to its state after *head*; what it sends again is dropped.

        Raise :exc:`DataError` naming a file that no longer exists, or is damaged.
        """
        needed = range(head.snapshot or 1, head.trigger + 1)
        missing = [p for p in (self._file(shard, t) for t in needed) if not p.exists()]
        if missing:
            raise DataError(
                f"{missing[0]} is missing, which the checkpoint next to it needs: put it back, or "
                f"delete {self._folder.parent} and the results next to it, and begin anew"
            )
        if head.snapshot:
            path = self._file(shard, head.snapshot)
            with self._naming(path):
                # Arrays in a bytearray can be written to, as actors do with what they restore.
                shard.restore(from_bytes(_read(path)))
        for trigger in range(head.snapshot + 1, head.trigger + 1):
            path = self._file(shard, trigger)
            with self._naming(path):
                letters = unpack_letters(list(_parcels_in(_read(path))))
            shard.deliver(letters)

    @contextmanager
    def _naming(self, path: Path) -> Iterator[None]:
        """Raise :exc:`DataError` for whatever reading a damaged file leads to."""
        try:
            yield
        except Exception as error:
            raise DataError(
                f"{path} is damaged ({type(error).__name__}: {error}): put it back as it was, or "
                f"delete {self._folder.parent} and the results next to it, and begin anew"
            ) from error

    def store(
        self, before: LogHead, nonce: int, parcels: Sequence[bytes], shard: StageShard
    ) -> LogHead:
        """Store the state of *shard* after *parcels*; return the new head."""
        head = before._replace(trigger=before.trigger + 1, nonce=nonce)
        grown = before.log_bytes + sum(map(len, parcels))
        path = self._file(shard, head.trigger)
        with whole_file(path) as unfinished, unfinished.open("wb") as file:
            if grown < before.snapshot_bytes:
                head = head._replace(log_bytes=grown)
                content = b"".join(_LENGTH.pack(len(parcel)) + parcel for parcel in parcels)
            else:
                content = to_bytes(shard.snapshot())
                head = head._replace(
                    snapshot=head.trigger,
                    replaced=before.snapshot,
                    snapshot_bytes=len(content),
                    log_bytes=0,
                )
            file.write(content)
            file.write(_CHECK.pack(_check(path, content)))
        self._head.update((_HEAD.pack(*head),))
        if before.trigger == before.snapshot:
            for trigger in range(before.replaced, before.snapshot):
                self._file(shard, trigger).unlink(missing_ok=True)
        return head

    def _file(self, shard: StageShard, trigger: int) -> Path:
        stage, number = shard.home
        return self._folder / f"{trigger:06d}-{stage}-{number}"


def _check(path: Path, content: bytes | bytearray) -> int:
    """Return the CRC of what is in a file, which differs from that of any other file."""
    return crc32(content, crc32(path.name.encode()))


def _read(path: Path) -> bytearray:
    """Return what is in a file; raise :exc:`FormatError` where that is not what was written."""
    content = bytearray(path.read_bytes())
    check = bytes(content[-_CHECK.size :])
    del content[-_CHECK.size :]
    if check != _CHECK.pack(_check(path, content)):
        raise FormatError("its checksum does not match")
    return content


def _parcels_in(content: bytearray) -> Iterator[bytes]:
    begin = 0
    while begin < len(content):
        (length,) = _LENGTH.unpack_from(content, begin)
        begin += _LENGTH.size
        yield bytes(content[begin : begin + length])
        begin += length
