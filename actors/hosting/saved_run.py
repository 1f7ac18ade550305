"""What a run saves of itself on disk, for another process to go on when its own one has died.

All answers of the actors are written down in the order of the messages, and from time to time a
snapshot: the state of every actor, and the payloads that are under way. The kernel of a run that
goes on does everything again from its first message, with the written answers in place of actors;
behind the snapshot the actors answer.

So the kernel itself is not saved. Its state is queues of actions, random generators, timers of the
transport, and the sums of a digest, which cannot be stored at all. The kernel, whichever it is, is
a function of the answers, and so are the trace and the files of results, which are made again with
it. That takes the kernel's part of the time, not the actors'.

A snapshot is as large as the windows and what is under way; only the last one is on the disk. The
answers grow with the run, as its trace and its results do.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from zlib import crc32

import numpy as np

from actors.hosting.process_host import read_reply, write_reply
from actors.protocol import Reply
from actors.state import FormatError, from_bytes, load, save, to_bytes
from actors.whole_files import remove_unfinished, whole_file, writing
from joins.errors import DataError

_FRAME_ANSWERS = 16
"""Few: arrays that wait in a frame are not used again for the next messages, whose own then come
from slower memory. With 256 the answers took twice as long to write."""
_BLOCK_BYTES = 1 << 20
"""Answers are handed to the system in blocks of this size."""
_FRAME = struct.Struct("<QI")
"""Before a frame of answers: its bytes, and their CRC."""
_MOST_OF_THE_TIME = 20
"""The next snapshot waits for so many times what the last one took, however often they are wanted:
they take a twentieth of the time at most."""


@dataclass(frozen=True, kw_only=True)
class Saved:
    """Everything that a host needs to go on.

    Attributes
    ----------
    states
        Actor name to its state; empty: all are in their first state.
    payloads
        Name of each payload under way to its bytes and readers.
    """

    states: dict[str, bytes] = field(default_factory=dict)
    payloads: dict[int, tuple[np.ndarray, list[str]]] = field(default_factory=dict)


class SavedRun:
    """The saved answers and the last snapshot of a run, in a folder of their own.

    Parameters
    ----------
    folder
        Made if it is not there. What an earlier process of the same run has saved there is gone
        on from.
    every_s
        Real seconds from one snapshot to the next, at the least.

    Attributes
    ----------
    saved
        The last snapshot, of an earlier process.
    answered
        Messages before it: so many answers are there.

    Raises
    ------
    DataError
        What is there is damaged.
    """

    def __init__(self, folder: Path, *, every_s: float) -> None:
        self._folder, self._every_s = folder, every_s
        self._answers = folder / "answers"
        with writing(folder):
            folder.mkdir(exist_ok=True)
            remove_unfinished(folder)
        self.saved, self.answered, length = Saved(), 0, 0
        snapshots = sorted(folder.glob("*.npz"))
        self._taken = 0
        if snapshots:
            self._taken = int(snapshots[-1].stem)
            self.saved, self.answered, length = _read_snapshot(snapshots[-1])
        with writing(self._answers):
            self._file = self._answers.open("ab", buffering=_BLOCK_BYTES)
            if self._file.tell() < length:
                raise DataError(f"{self._answers} is damaged: it is too short. {_REMEDY}")
            self._file.truncate(length)  # what follows has no snapshot behind it
        self._written = iter(self._read(length))
        self._next = self.answered
        self._times: dict[int, int] = {}
        self._replies: dict[int, Reply] = {}
        self._due_s = time.monotonic() + every_s

    def __enter__(self) -> Self:
        """Return this."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file of answers."""
        with suppress(OSError):  # what has no room now had none before, which was reported
            self._file.close()

    def answer(self, ticket: int, now: int) -> Reply:
        """Return the answer to the message number *ticket*, which are asked for in their order.

        Raise :exc:`DataError` when that message came at another time than *now*.
        """
        then, *fields = next(self._written)
        if then != now:
            raise DataError(
                f"{self._folder}: message {ticket} came at {then} ns, and comes at {now} ns now: "
                "the code of the system or of joinsim has changed since. Start the run again"
            )
        return read_reply(fields)

    def submitted(self, ticket: int, now: int) -> None:
        """Note when message number *ticket*, which is to be answered, was submitted."""
        self._times[ticket] = now

    def add(self, ticket: int, reply: Reply) -> None:
        """Write down an answer, unless that was done."""
        if ticket not in self._times:
            return
        self._replies[ticket] = reply
        if len(self._replies) >= _FRAME_ANSWERS:
            self._write_frame()

    @property
    def due(self) -> bool:
        """Whether it is time for a snapshot."""
        return time.monotonic() >= self._due_s

    def save(self, saved: Saved) -> None:
        """Replace the snapshot by one behind all messages, every one of which is answered.

        Raise :exc:`joins.errors.OutputError` when it cannot be written; the last one then stays.
        """
        began_s = time.monotonic()
        self._write_frame()
        assert not self._replies
        with writing(self._answers):
            self._file.flush()
            os.fsync(self._file.fileno())
            length = self._file.tell()
        value = {
            "answered": self._next,
            "length": length,
            "states": {name: np.frombuffer(one, np.uint8) for name, one in saved.states.items()},
            "payloads": saved.payloads,
        }
        before = self._path
        self._taken += 1
        with whole_file(self._path) as unfinished:
            save(value, unfinished)
        before.unlink(missing_ok=True)
        ended_s = time.monotonic()
        self._due_s = ended_s + max(self._every_s, _MOST_OF_THE_TIME * (ended_s - began_s))

    @property
    def _path(self) -> Path:
        return self._folder / f"{self._taken:08}.npz"

    def _write_frame(self) -> None:
        """Write the answers that are there, up to the first that is not."""
        frame = []
        while self._next in self._replies:
            now = self._times.pop(self._next)
            frame.append([now, *write_reply(self._replies.pop(self._next))])
            self._next += 1
        if frame:
            content = to_bytes(frame)
            with writing(self._answers):
                self._file.write(_FRAME.pack(len(content), crc32(content)))
                self._file.write(content)

    def _read(self, length: int) -> Iterator[list[Any]]:
        """Yield the first *length* bytes of answers, one by one."""
        with self._answers.open("rb") as file:
            while file.tell() < length:
                nbytes, check = _FRAME.unpack(file.read(_FRAME.size))
                content = bytearray(min(nbytes, length - file.tell()))
                file.readinto(content)
                if crc32(content) != check:
                    raise DataError(f"{self._answers} is damaged. {_REMEDY}")
                yield from from_bytes(content)


_REMEDY = "Start the run again"


def _read_snapshot(path: Path) -> tuple[Saved, int, int]:
    """Return a snapshot, the number of answers before it, and their bytes."""
    try:
        value = load(path)
        states = {name: state.tobytes() for name, state in value["states"].items()}
        saved = Saved(states=states, payloads=value["payloads"])
        return saved, value["answered"], value["length"]
    except (FormatError, OSError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is damaged: {error}. {_REMEDY}") from None
