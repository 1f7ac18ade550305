"""A run saved on disk, so that another process can resume it when its own has died.

`SavingHost` runs actors in any other host, and writes all their answers down as they come
(`SavedRun`). From time to time it writes a snapshot: the state of every actor, and the payloads
that are under way. The kernel of a run that goes on does everything again from its first message,
with the written answers in place of actors; behind the snapshot the actors answer. How the other
host outlives a lost process (`actors.hosting.journal`) has nothing to do with it: here it is this
process that may die, and what is on disk that remains.

Where actors crash in virtual time the kernel asks for states too, and needs their sizes: those are
written down with the answers. The states themselves are part of the snapshot as long as the kernel
has them, for a crash to go back to; to make them again would take the actors, from their first
message on.

So the kernel itself is not saved. Its state is queues of actions, random generators, timers of the
transport, and the sums of a digest, which cannot be stored at all. The kernel, whichever it is, is
a function of the answers, and so are the trace and the files of results, which are made again with
it. That takes the kernel's part of the time, not the actors'.

A snapshot is as large as the windows and what is under way; only the last one is on the disk. The
answers grow with the run, as its trace and its results do.

Handles are objects of the saving host, whatever those of the other are: one that nothing holds any
more was read by all its readers, or is lost. So the payloads under way are those that are alive.
"""

from __future__ import annotations

import os
import struct
import time
from collections import deque
from collections.abc import Iterable, Sequence, Sized
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, Self, TypeVar
from weakref import WeakValueDictionary, ref
from zlib import crc32

import numpy as np

from actors.hosting.journal import payload_bytes, payload_name
from actors.protocol import ActorError, Reply, RestartingHost, Sent
from actors.serialisation import (
    FormatError,
    cut,
    from_bytes,
    from_columns,
    to_columns,
    to_parts,
)
from actors.whole_files import remove_unfinished, whole_file, writing
from joins.errors import DataError
from joins.work import NO_WORK

_FRAME_ANSWERS = 64
"""Answers that are written together: longer columns take less time by the answer. But the objects
of those that wait outlive Python's young generations, so that it looks through all there are for
garbage more often: with 512 that took more than the columns saved."""
_BLOCK_BYTES = 1 << 20
"""Answers are handed to the system in blocks of this size."""
_FRAME = struct.Struct("<QI")
"""Before a frame of answers, or a snapshot: its bytes, and their CRC."""
_PAUSE_FACTOR = 20
"""The next snapshot is at least so many times as far off as the last one took, however often they
are wanted: they take a twentieth of the time at most."""

_Time = TypeVar("_Time", int, float)

_Answer = tuple[int, int, Reply]
"""A message's ticket, when it came, and what followed from it."""


@dataclass(frozen=True, kw_only=True)
class Saved:
    """Everything that a host needs to go on."""

    states: dict[str, np.ndarray] = field(default_factory=dict)
    """Actor name to its state; empty: all are in their first state."""
    payloads: dict[int, np.ndarray] = field(default_factory=dict)
    """Name of each payload under way to its bytes."""
    earlier: dict[int, np.ndarray] = field(default_factory=dict)
    """Number of each state that an actor may go back to, to its bytes."""


class SavedRun:
    """The saved answers and the last snapshot of a run, in a folder of their own.

    The *folder* is made where it is missing; a run that an earlier process saved there is resumed.
    Snapshots are at least *every_s* real seconds apart.

    Attributes
    ----------
    saved
        The last snapshot, of an earlier process.
    answered
        Messages before it: so many answers are there.

    Raises
    ------
    DataError
        What is there is damaged, or another version wrote it.
    """

    def __init__(self, folder: Path, *, every_s: float) -> None:
        self._folder, self._every_s = folder, every_s
        self._answers = folder / "answers"
        with writing(folder):
            folder.mkdir(exist_ok=True)
            remove_unfinished(folder)
        self.saved, self.answered, length = Saved(), 0, 0
        snapshots = sorted(folder.glob("*.snapshot"))
        self._taken = 0
        if snapshots:
            self._taken = int(snapshots[-1].stem)
            self.saved, self.answered, length = _read_snapshot(snapshots[-1])
        with writing(self._answers), ExitStack() as opened:
            self._file = opened.enter_context(self._answers.open("ab", buffering=_BLOCK_BYTES))
            if self._file.tell() < length:
                raise DataError(f"{self._answers} is damaged: it is too short. {_REMEDY}")
            self._file.truncate(length)  # what follows has no snapshot behind it
            self._reading = self._answers.open("rb")
            opened.pop_all()  # both stay open until the run is over
        self._length = length
        self._repeated: dict[int, tuple[int, Reply]] = {}
        self._repeated_sizes: deque[int] = deque()
        self._frame: list[_Answer] = []
        self._sizes: list[int] = []
        self._answers_written = self.answered
        self._due_s = time.monotonic() + every_s

    def __enter__(self) -> Self:
        """Return this."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the files of answers."""
        with suppress(OSError):  # what has no room now had none before, which was reported
            self._file.close()
        self._reading.close()

    def answer(self, ticket: int, now: int) -> Reply:
        """Return the answer to the message number *ticket*, once only; handles are None.

        Raise :exc:`DataError` when that message came at another time than *now*.
        """
        while ticket not in self._repeated:
            self._read_frame()
        then, reply = self._repeated.pop(ticket)
        if then != now:
            raise DataError(
                f"{self._folder}: message {ticket} came at {then} ns, and comes at {now} ns now: "
                "the code of the system or of joinsim has changed since. Start the run again"
            )
        return reply

    def size(self) -> int:
        """Return the size of the state that was asked for next."""
        while not self._repeated_sizes:
            self._read_frame()
        return self._repeated_sizes.popleft()

    def add_size(self, nbytes: int) -> None:
        """Write down the size of a state that is asked for."""
        self._sizes.append(nbytes)

    def add(self, ticket: int, now: int, reply: Reply) -> None:
        """Write down what followed from message number *ticket*, which came at *now*."""
        self._frame.append((ticket, now, reply))
        if len(self._frame) >= _FRAME_ANSWERS:
            self.flush()

    @property
    def due(self) -> bool:
        """Whether it is time for a snapshot."""
        return time.monotonic() >= self._due_s

    def flush(self) -> None:
        """Write the answers that wait to be written together."""
        if self._frame or self._sizes:
            answers = [self._sizes, *_write_answers(self._frame)]
            self._answers_written += len(self._frame)
            self._frame, self._sizes = [], []
            with writing(self._answers):
                _write(answers, self._file)

    def save(self, saved: Saved) -> None:
        """Replace the snapshot by one behind all messages, every one of which is answered.

        Raise :exc:`joins.errors.OutputError` when it cannot be written; the last one then stays.
        """
        began_s = time.monotonic()
        self.flush()
        with writing(self._answers):
            self._file.flush()
            os.fsync(self._file.fileno())
            length = self._file.tell()
        value = {
            "answered": self._answers_written,
            "length": length,
            "saved": vars(saved),
        }
        before = self._path
        self._taken += 1
        with whole_file(self._path) as unfinished, unfinished.open("wb") as file:
            _write(value, file)
        before.unlink(missing_ok=True)
        ended_s = time.monotonic()
        self._due_s = ended_s + pause_after(ended_s - began_s, self._every_s)

    @property
    def _path(self) -> Path:
        return self._folder / f"{self._taken:08}.snapshot"

    def _read_frame(self) -> None:
        """Read the next answers that an earlier process has written together."""
        try:
            sizes, *answers = _read(self._reading, self._length)
        except FormatError as error:
            raise DataError(f"{self._answers} is damaged: {error}. {_REMEDY}") from None
        self._repeated_sizes += sizes
        for ticket, now, reply in _read_answers(answers):
            self._repeated[ticket] = now, reply


def pause_after(took: _Time, interval: _Time) -> _Time:
    """Return the pause after a snapshot that *took* so long; at least an *interval*."""
    return max(interval, _PAUSE_FACTOR * took)


def _write(value: Any, file: BinaryIO) -> None:
    """Write *value* as a frame, in parts that are not joined: its arrays are most of it."""
    parts, crc = to_parts(value), 0
    for part in parts:
        crc = crc32(part, crc)
    file.write(_FRAME.pack(sum(map(len, parts)), crc))
    file.writelines(parts)


def _read(file: BufferedReader, end: int) -> Any:
    """Return the value of the next frame, before *end*; raise :exc:`FormatError` for no frame."""
    head, left = file.read(_FRAME.size), end - file.tell()
    nbytes, check = _FRAME.unpack(head) if left > 0 else (0, -1)
    content = bytearray(min(nbytes, left))
    file.readinto(content)
    if crc32(content) != check:
        raise FormatError("its checksum does not match")
    return from_bytes(content)


def _write_answers(answers: Sequence[_Answer]) -> list[Any]:
    """Return *answers* by columns, without the handles of what they send."""
    replies = [reply for _, _, reply in answers]
    sends = [sent for reply in replies for sent in reply.sends]
    return [
        [ticket for ticket, _, _ in answers],
        [now for _, now, _ in answers],
        [None if reply.failure is None else str(reply.failure) for reply in replies],
        to_columns([None if reply.work is NO_WORK else reply.work for reply in replies]),
        to_columns([reply.timers for reply in replies]),
        to_columns([reply.emitted for reply in replies]),
        to_columns([reply.steps for reply in replies]),
        [len(reply.sends) for reply in replies],
        [sent.port for sent in sends],
        to_columns([sent.receivers for sent in sends]),
        [sent.nbytes for sent in sends],
        [sent.rows for sent in sends],
        to_columns([sent.span for sent in sends]),
    ]


def _read_answers(columns: Sequence[Any]) -> list[_Answer]:
    """Return what `_write_answers` was given."""
    tickets, times, words, *of_replies, counts, ports, receivers, nbytes, rows, spans = columns
    sends = [
        Sent(port, to, None, size, count, span)
        for port, to, size, count, span in zip(
            ports, from_columns(receivers), nbytes, rows, from_columns(spans), strict=True
        )
    ]
    work, timers, emitted, steps = map(from_columns, of_replies)
    work = [one or NO_WORK for one in work]
    failures = [None if one is None else ActorError(one) for one in words]
    replies = map(Reply, work, cut(sends, counts), timers, emitted, steps, failures)
    return list(zip(tickets, times, replies, strict=True))


_REMEDY = "Start the run again"


def _read_snapshot(path: Path) -> tuple[Saved, int, int]:
    """Return a snapshot, the number of answers before it, and their bytes."""
    try:
        with path.open("rb") as file:
            value = _read(file, path.stat().st_size)
        return Saved(**value["saved"]), value["answered"], value["length"]
    except (KeyError, TypeError):
        raise DataError(f"{path} is of another version of joinsim. {_REMEDY}") from None
    except (FormatError, OSError) as error:
        raise DataError(f"{path} is damaged: {error}. {_REMEDY}") from None


_FEW_PAYLOADS = 1_024
"""So many, beyond those under way, are remembered until it is seen which are gone."""


@dataclass(slots=True, weakref_slot=True, eq=False)
class _Payload:
    """What was sent: the other host's handle, None before the actors answer, and who reads it."""

    name: int
    handle: Any
    reader: str


@dataclass(slots=True, weakref_slot=True, eq=False)
class _State:
    """A state that an actor may go back to: the other host's, None before the actors answer."""

    number: int
    state: Any
    nbytes: int

    def __len__(self) -> int:
        return self.nbytes


class SavingHost:
    """Runs actors in another *host*, where they are in their first state; saves the run to *disk*.

    What an earlier process has saved there is answered from there, up to its last snapshot.
    """

    def __init__(self, host: RestartingHost, actors: Iterable[str], disk: SavedRun) -> None:
        self.host, self._actors, self._disk = host, list(actors), disk
        self._repeats = disk.answered > 0
        self._submitted = 0
        self._payloads: list[ref[_Payload]] = []
        self._room = _FEW_PAYLOADS
        self._earlier = WeakValueDictionary[int, _State]()
        self._serial = 0
        """States and payloads that the kernel has asked for."""
        self._open: dict[int, tuple[int, Reply | None]] = {}
        """Tickets whose reply was not fetched: their virtual time, and the reply if it is here."""

    def submit(
        self, ticket: int, actor: str, sender: str, port: str, handle: Any, now: int
    ) -> Reply | None:
        """Pass a message on and write down what follows; what was written is the answer again."""
        disk = self._disk
        self._submitted += 1  # not every ticket is: nobody asks actors that have failed
        if self._repeats:
            if self._submitted <= disk.answered:
                return self._named(ticket, disk.answer(ticket, now))
            self._go_on()
        elif disk.due:
            self._save()
        payload = None if handle is None else handle.handle
        reply = self.host.submit(ticket, actor, sender, port, payload, now)
        if reply is None:
            self._open[ticket] = now, None
            return None
        disk.add(ticket, now, reply)
        return self._named(ticket, reply)

    def reply(self, ticket: int) -> Reply:
        """Return the reply to a message, waiting for it if need be; once only."""
        now, reply = self._open.pop(ticket)
        return reply or self._fetch(ticket, now)

    def snapshot(self, actor: str) -> Sized:
        """Return the state of *actor* after all messages submitted to it."""
        self._serial += 1
        if self._repeats:
            state = _State(self._serial, None, self._disk.size())
        else:
            taken = self.host.snapshot(actor)
            self._disk.add_size(len(taken))
            state = _State(self._serial, taken, len(taken))
        self._earlier[state.number] = state
        return state

    def restore(self, actor: str, state: _State | None) -> None:
        """Replace *actor* by a new one in *state*; None: in its first state."""
        if not self._repeats:
            self.host.restore(actor, None if state is None else state.state)

    def keep(self, actor: str, handle: _Payload) -> Any:
        """Return a handle of the same payload that may be submitted to *actor* at any time."""
        self._serial += 1
        kept = None if self._repeats else self.host.keep(actor, handle.handle)
        payload = _Payload(-self._serial, kept, actor)  # no message has such a name
        self._payloads.append(ref(payload))
        return payload

    def forget(self) -> None:
        """Drop all replies that were not fetched: nobody will ask what they were."""
        for ticket, (now, reply) in self._open.items():
            if reply is None:
                self._disk.add(ticket, now, Reply())
        self._open.clear()
        if not self._repeats:
            self.host.forget()

    def _fetch(self, ticket: int, now: int) -> Reply:
        reply = self.host.reply(ticket)
        self._disk.add(ticket, now, reply)
        return self._named(ticket, reply)

    def _named(self, ticket: int, reply: Reply) -> Reply:
        """Name the payloads of a reply by its ticket: repeated, they have the same names."""
        for place, sent in enumerate(reply.sends):
            name = payload_name(ticket, place)
            sent.handle = payload = _Payload(name, sent.handle, sent.receivers[0])
            self._payloads.append(ref(payload))
        if len(self._payloads) > self._room:
            alive = _alive(self._payloads)
            self._payloads, self._room = list(map(ref, alive)), 2 * len(alive) + _FEW_PAYLOADS
        return reply

    def _go_on(self) -> None:
        """Let the actors answer from now on; restore the payloads and states in use."""
        self._repeats = False
        saved = self._disk.saved
        for actor, state in saved.states.items():
            self.host.restore(actor, state)
        # What was not saved was no longer in use: Python only has not freed it yet this time.
        for payload in _alive(self._payloads):
            payload.handle = saved.payloads.get(payload.name)
        for number, earlier in self._earlier.items():
            earlier.state = saved.earlier.get(number)

    def _save(self) -> None:
        """Save all states and the payloads under way, behind all messages so far."""
        for ticket, (now, reply) in self._open.items():
            if reply is None:
                self._open[ticket] = now, self._fetch(ticket, now)
        self._disk.flush()  # and let go of the payloads in the answers
        states = {actor: self.host.snapshot(actor) for actor in self._actors}
        payloads = {
            one.name: payload_bytes(self.host, one.reader, one.handle)
            for one in _alive(self._payloads)
        }
        earlier = {number: one.state for number, one in self._earlier.items()}
        self._disk.save(Saved(states=states, payloads=payloads, earlier=earlier))


def _alive(payloads: Iterable[ref[_Payload]]) -> list[_Payload]:
    """Return the payloads still referenced."""
    return [payload for one in payloads if (payload := one()) is not None]
