"""Section 4.2's third way: a distributed cache between the first PO-Join PE and the others."""

from __future__ import annotations

from collections.abc import Sequence

from actors.protocol import Actor, Context, Message
from actors.spo_join.payloads import MergedCount, Routed, SyncRequest, WindowCount
from actors.spo_join.windows.counted import Counted
from joins.queries.windows import Window


class Cached(Counted):
    """Counts tuples at the first PE, and learns that PE's count from the cache at the others.

    Every PE sees every tuple, so the first PE's count of what it has evaluated is the stream's. It
    publishes the count when it has evaluated tuples and *publish_ns* have passed; the others ask
    for it when tuples come and *sync_ns* have passed, and go on with the old count until the answer
    is there. A count that is old finds expired slides; one that comes from a PE far ahead in the
    stream expires what a slower PE's tuples should still see.

    The paper adds the evaluated tuples to the partitioner's count of merged ones. Merged tuples
    were evaluated before, so the sum counts them twice unless the first is reset at every merge;
    then it is the count kept here.

    Port: ``cache``.

    Parameters
    ----------
    windows
        One per stream, over that stream, by count.
    pe
        This PE's index; 0 is the first.
    publish_ns, sync_ns
        Least virtual time between two messages to the cache.
    """

    state = ("_last_ns",)

    def __init__(
        self, *, windows: Sequence[Window], pe: int, publish_ns: int, sync_ns: int
    ) -> None:
        super().__init__(windows=windows)
        self._pe = pe
        self._interval_ns = sync_ns if pe else publish_ns
        self._last_ns: int | None = None

    def before(self, context: Context) -> None:
        """Ask the cache, if it is time to."""
        if self._pe and self._is_time(context):
            context.send("cache", SyncRequest(self._pe))

    def evaluated(self, routed: Routed, context: Context) -> None:
        """Count tuples, and publish the count if it is time to."""
        if self._pe:
            return
        for stream, part in enumerate(routed.parts):
            self._counts[stream] += len(part)
        if self._is_time(context):
            context.send("cache", WindowCount(tuple(self._counts), routed.span[1]))

    def told(self, count: MergedCount | WindowCount) -> None:
        """Take over the first PE's count."""
        assert isinstance(count, WindowCount)
        self._counts = list(count.counts)

    def _is_time(self, context: Context) -> bool:
        if self._last_ns is not None and context.now - self._last_ns < self._interval_ns:
            return False
        self._last_ns = context.now
        return True


class Cache(Actor):
    """The distributed cache: keeps the last published count and gives it to whoever asks.

    Port: ``window`` (the PO-Join PEs).
    """

    state = ("_count",)

    def __init__(self) -> None:
        self._count: WindowCount | None = None

    def receive(self, message: Message, context: Context) -> None:
        """Keep a count, or answer with the one kept."""
        payload = message.payload
        if isinstance(payload, WindowCount):
            self._count = payload
        elif self._count is not None:
            context.send("window", self._count, to=payload.pe)
