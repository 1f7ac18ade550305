"""Scale-OIJ: threads of one multicore machine, and the state buffers that they share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from actors.interval_join.distribution import Assignment, Homes
from actors.interval_join.emitter import Emitter, Tuples
from actors.interval_join.replica import Watermarks
from actors.protocol import HEADER_BYTES, Actor, Context, Message, Payload
from actors.results import Found, send_answers
from actors.stream_source import Rows, drop_late
from joins.batch import Schema
from joins.hashing import partition
from joins.interval_join import IntervalJoin
from joins.key_splitting import add_counts, split_keys
from joins.queries.query import JoinQuery
from joins.work import Step, Work


class ShownTuples(Tuples):
    """Tuples as shared memory has them: handling them is not charged by the tuple."""

    __slots__ = ()
    rows_of = ()


class SharedMemoryEmitter(Emitter):
    """An emitter that writes tuples into memory, where threads take them from."""

    state = ()
    payload = ShownTuples


@dataclass(frozen=True, slots=True)
class ThreadShare(Payload):
    """What a thread does for a message of tuples (shared memory to thread)."""

    found: Found
    """The pairs of its tuples."""
    tuples: int
    """How many it takes from its queue."""
    stored: int
    """How many tuples all threads store."""
    work: Work
    """Probing and storing them, and looking into the parts of other threads."""
    span: tuple[int, int]
    """First and last arrival number."""

    @property
    def rows(self) -> int:
        """Tuples that the thread takes."""
        return self.tuples

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes: a pointer for each tuple."""
        return HEADER_BYTES + _POINTER_BYTES * self.tuples


_POINTER_BYTES = 8


@dataclass(kw_only=True, eq=False)
class SharedMemory(Actor):
    """The state buffers of Scale-OIJ's threads (Zhang et al., ICDE 2023; PPOIJ, 5.3 and 6).

    A tuple is assigned to one thread of its key's team, which stores it in its own part of the
    key's buffer and searches the parts of the whole team for partners. Memory is what all threads
    see, so it is one actor: it knows what each thread finds for the tuples of a message, and puts
    that share into the thread's queue. Memory itself takes no time; a thread takes the time of its
    own shares, and waits for no other. The pairs do not depend on the teams, so these change from
    one message to the next without moving a tuple (dynamic scheduling), by Algorithm 1 of PPOIJ.

    Assigning a tuple costs one atomic operation, on a lock-free queue; every part of another thread
    that is searched costs a search and *contention* atomic operations.

    Ports: ``threads``, ``sink``.
    """

    query: JoinQuery
    schemas: tuple[Schema, ...]
    """What is joined."""
    channels: int
    """How many emitters there are."""
    threads: int
    """Of the machine, a core for each."""
    contention: int
    """Atomic operations' worth of cache misses that one look into another thread's part costs."""
    schedule_messages: int | None
    """After how many messages teams are formed anew; None: each key stays at one thread."""
    threshold: float
    """How far above the average the most loaded thread may be."""
    pairs: bool = False
    """Whether to report match ids."""

    state = ("_join", "_watermarks", "_teams", "_counts", "_messages")

    def __post_init__(self) -> None:
        self._join = IntervalJoin(self.query, self.schemas)
        self._watermarks = Watermarks(self.channels)
        self._teams: Assignment = {}
        self._counts: dict[int, int] = {}
        self._messages = 0

    def receive(self, message: Message, context: Context) -> None:
        """Put the tuples of a message into the queues of their threads."""
        tuples: Tuples = message.payload
        data = drop_late(tuples.stream, tuples.data, self._watermarks.low, tuples.span, context)
        if len(data):
            self._share_out(tuples.stream, data, context)
        if 0 in tuples.ends:
            self._watermarks.advance(tuples.channel, tuples.watermark)
        self._messages += 1
        if self.schedule_messages and self._messages % self.schedule_messages == 0:
            self._schedule()

    def _share_out(self, stream: int, data: Rows, context: Context) -> None:
        """Send each thread its share of *data*."""
        thread, others = self._threads_of(data)
        low = self._watermarks.low
        for number in np.unique(thread).tolist():
            rows = np.flatnonzero(thread == number)
            share = data.take(rows)
            joined = self._join.join(
                stream,
                share.batch,
                np.ones(len(share), np.bool_),
                watermark=low,
                low_watermark=low,
                enumerate=self.pairs,
            )
            work = joined.work + self._sharing(len(rows), int(others[rows].sum()))
            found = Found(joined.matches, share.born_ns[joined.row], share.span)
            part = ThreadShare(found, len(rows), len(self._join), work, share.span)
            context.send("threads", part, to=number)

    def _threads_of(self, data: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Return per tuple the thread that takes it, and how many others its team has."""
        keys, of_key, counts = np.unique(data.batch.key, return_inverse=True, return_counts=True)
        if self.schedule_messages:  # else nothing empties them
            add_counts(self._counts, keys, counts)
        thread = partition(keys, self.threads)[of_key]
        others = np.zeros(len(data), np.int64)
        for place, key in enumerate(keys.tolist()):
            team = self._teams.get(key)
            if team is not None and len(team) > 1:
                mine = np.flatnonzero(of_key == place)
                turn = partition(data.batch.id[mine], len(team))
                thread[mine] = np.array(team, np.int64)[turn]
                others[mine] = len(team) - 1
        return thread, others

    def _sharing(self, rows: int, looks: int) -> Work:
        """Return what sharing costs a thread: *rows* handed over, *looks* into others' parts."""
        steps = len(self._join).bit_length()
        return Work(comparisons=looks * steps, atomics=rows + looks * self.contention)

    def _schedule(self) -> None:
        self._teams = split_keys(
            self._counts,
            Homes(self.threads).by_key(self._counts),
            replicas=self.threads,
            threshold=self.threshold,
            max_splitting=self.threads,
        )
        self._counts.clear()


class Thread(Actor):
    """A thread of Scale-OIJ: takes the time of its shares, and reports what it found.

    Port: ``sink``.
    """

    state = ()

    def receive(self, message: Message, context: Context) -> None:
        """Do the thread's share of one message."""
        share: ThreadShare = message.payload
        context.charge(share.work, Step("interval_join.shared", share.tuples, share.stored))
        send_answers([share.found], context)
