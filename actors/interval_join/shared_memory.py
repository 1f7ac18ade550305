"""Scale-OIJ's operator: threads of one multicore machine over state buffers that they share."""

from __future__ import annotations

from collections import Counter

import numpy as np

from actors.interval_join.distribution import Assignment
from actors.interval_join.payloads import Rows, Tuples
from actors.interval_join.watermarks import Watermarks
from actors.protocol import Actor, Context, Message
from actors.results import Answers, Late
from joins.batch import Schema
from joins.hashing import partition
from joins.interval_join import IntervalJoin, Joined
from joins.key_splitting import split_keys
from joins.queries.query import JoinQuery
from joins.state import State
from joins.work import COUNTERS, NO_WORK, Work


class SharedMemoryJoin(Actor):
    """All threads of Scale-OIJ (Zhang et al., ICDE 2023; PPOIJ, sections 5.3 and 6).

    A tuple is handed to one thread of its key's team, which keeps it in its own part of the key's
    buffer and looks for partners in the parts of the whole team. Threads share memory, so they are
    no actors: the message at hand is their work, which they do side by side, and it takes as long
    as the busiest of them does. What they find does not depend on the teams, so they change from
    one message to the next without moving a tuple (dynamic scheduling), by Algorithm 1 of PPOIJ.

    To be handed over costs a tuple one atomic operation, on a lock-free queue; every part of
    another thread that is searched costs a search and *contention* atomic operations.

    Port: ``sink``.

    Parameters
    ----------
    query, schemas
        What is joined.
    channels
        How many emitters there are.
    threads
        Of the machine, a core for each.
    contention
        Atomic operations' worth of cache misses that one look into another thread's part costs.
    schedule_messages
        After how many messages teams are formed anew; None keeps each key at one thread.
    threshold
        How far above the average the most loaded thread may be.
    pairs
        Whether to report match ids.
    """

    def __init__(
        self,
        *,
        query: JoinQuery,
        schemas: tuple[Schema, ...],
        channels: int,
        threads: int,
        contention: int,
        schedule_messages: int | None,
        threshold: float,
        pairs: bool = False,
    ) -> None:
        self._pairs = pairs
        self._threads, self._contention = threads, contention
        self._schedule_messages, self._threshold = schedule_messages, threshold
        self._join = IntervalJoin(query, schemas)
        self._watermarks = Watermarks(channels)
        self._teams: Assignment = {}
        self._counts: Counter[int] = Counter()
        self._messages = 0

    def receive(self, message: Message, context: Context) -> None:
        """Join one message of tuples, each thread its share."""
        tuples: Tuples = message.payload
        data = self._without_late(tuples, context)
        if len(data):
            self._share_out(tuples.stream, data, context)
        if 0 in tuples.ends:
            self._watermarks.advance(tuples.channel, tuples.watermark)
        self._messages += 1
        if self._schedule_messages and self._messages % self._schedule_messages == 0:
            self._schedule()

    def snapshot(self) -> State:
        """Return the buffers, the teams, and what the next ones depend on."""
        return {
            "join": self._join.snapshot(),
            "watermarks": self._watermarks.snapshot(),
            "teams": [[key, *team] for key, team in self._teams.items()],
            "counts": [[key, count] for key, count in self._counts.items()],
            "messages": self._messages,
        }

    def restore(self, state: State) -> None:
        """Take over a snapshot."""
        self._join.restore(state["join"])
        self._watermarks.restore(state["watermarks"])
        self._teams = {key: tuple(team) for key, *team in state["teams"]}
        self._counts = Counter({key: count for key, count in state["counts"]})
        self._messages = state["messages"]

    def _without_late(self, tuples: Tuples, context: Context) -> Rows:
        low = self._watermarks.low
        late = tuples.data.batch.ts < low
        if not late.any():
            return tuples.data
        batch = tuples.data.batch.take(np.flatnonzero(late))
        context.send("sink", Late(tuples.stream, batch.id, batch.ts, low, tuples.span))
        return tuples.data.take(np.flatnonzero(~late))

    def _share_out(self, stream: int, data: Rows, context: Context) -> None:
        """Let each thread probe and store its share, and charge what the busiest did."""
        thread, others = self._threads_of(data)
        shares = [np.flatnonzero(thread == number) for number in range(self._threads)]
        works, found = [NO_WORK], []
        low = self._watermarks.low
        for rows in filter(len, shares):
            share = data.take(rows)
            joined = self._join.probe(stream, share.batch, enumerate=self._pairs)
            stored = self._join.store(stream, share.batch, watermark=low, low_watermark=low)
            works.append(joined.work + stored + self._sharing(len(rows), int(others[rows].sum())))
            found.append((joined, share))
        context.charge(_most(works))
        self._send(found, context)

    def _threads_of(self, data: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Return per tuple the thread that takes it, and how many others its team has."""
        keys, of_key, counts = np.unique(data.batch.key, return_inverse=True, return_counts=True)
        self._counts.update(dict(zip(keys.tolist(), counts.tolist(), strict=True)))
        homes = partition(keys, self._threads).tolist()
        thread = np.empty(len(data), np.int64)
        others = np.zeros(len(data), np.int64)
        thread[:] = np.array(homes, np.int64)[of_key]
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
        return Work(comparisons=looks * steps, atomics=rows + looks * self._contention)

    def _schedule(self) -> None:
        keys = np.array(sorted(self._counts), np.int64)
        homes = dict(zip(keys.tolist(), partition(keys, self._threads).tolist(), strict=True))
        self._teams = split_keys(
            self._counts,
            homes,
            replicas=self._threads,
            threshold=self._threshold,
            max_splitting=self._threads,
        )
        self._counts.clear()

    def _send(self, found: list[tuple[Joined, Rows]], context: Context) -> None:
        found = [(joined, share) for joined, share in found if len(joined.matches)]
        if found:
            matches = tuple(joined.matches for joined, _ in found)
            born_ns = tuple(share.born_ns[joined.row] for joined, share in found)
            first = min(share.span[0] for _, share in found)
            last = max(share.span[1] for _, share in found)
            context.send("sink", Answers(matches, born_ns, (first, last)))


def _most(works: list[Work]) -> Work:
    """Return counter by counter what the busiest thread did."""
    return Work(**{name: max(getattr(work, name) for work in works) for name in COUNTERS})
