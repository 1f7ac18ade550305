"""PanJoin over streams that arrive out of order (section III-G2).

The manager lets nothing wait until it is in order: a tuple probes and is stored as it arrives,
unless a watermark has passed it. It then is late: dropped, and reported. A subwindow expires when
the newest event time in it has left the windows of all tuples that are not late.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from actors.panjoin.collecting import Collected
from actors.panjoin.holdings import Holdings
from actors.panjoin.manager import Manager
from actors.panjoin.payloads import Commands, Expire, Insert
from actors.panjoin.worker import Worker
from actors.probes import Probes
from actors.protocol import Context
from actors.results import Answers, Late
from joins.event_time import NO_WATERMARK, Candidates, EventTimeBounds, EventTimePairs, Paired
from joins.indexes.panjoin.out_of_order import OutOfOrderSubwindow
from joins.indexes.panjoin.subwindow import Subwindow
from joins.queries.query import JoinQuery
from joins.state import State
from joins.work import Work


class OutOfOrderManager(Manager):
    """Sends late tuples to the sink, and the others with the event times that they pair with.

    Parameters
    ----------
    lag_ns
        How far watermarks stay behind the latest event time; None: there are none.
    **rest
        Those of `Manager`.
    """

    def __init__(self, *, query: JoinQuery, lag_ns: int | None, **rest: Any) -> None:
        self._bounds = EventTimeBounds(query, lag_ns)
        super().__init__(query=query, bounds=self._bounds, **rest)
        self._watermark = NO_WATERMARK

    def _process(self, collected: Collected, context: Context) -> None:
        parts = tuple(
            self._in_time(stream, part, collected.span, context)
            for stream, part in enumerate(collected.parts)
        )
        super()._process(replace(collected, parts=parts), context)
        self._watermark = collected.horizon[0]

    def _in_time(
        self, stream: int, part: Probes, span: tuple[int, int], context: Context
    ) -> Probes:
        """Return *part* without what the watermark of the batch before has passed."""
        late = part.batch.ts < self._watermark
        if not late.any():
            return part
        batch = part.batch.take(late)
        context.send("sink", Late(stream, batch.id, batch.ts, self._watermark, span))
        return part.take(~late)

    def _expire(self, stream: int, horizon: int) -> list[tuple[int, Expire]]:
        return self._chains[stream].expire_older(self._bounds.oldest_seen(stream, horizon))

    def snapshot(self) -> State:
        """Return the manager's state, and the watermark."""
        return super().snapshot() | {"watermark": self._watermark}

    def restore(self, state: State) -> None:
        """Take over a snapshot."""
        super().restore(state)
        self._watermark = state["watermark"]


class OutOfOrderHoldings(Holdings):
    """Subwindows that know event times, with a buffer each for what comes when they are full."""

    subwindow_type = OutOfOrderSubwindow

    def take(self, commands: Commands) -> Work:
        """Create and insert as *commands* say, as a new batch."""
        for held in self._held:
            for subwindow in held.values():
                _timed(subwindow).settle()
        return super().take(commands)

    def _insert(self, subwindow: Subwindow, insert: Insert) -> Work:
        timed, batch = _timed(subwindow), insert.batch
        store = timed.insert_late if insert.late else timed.insert_timed
        return store(self._sides.columns(insert.stream, batch), batch.id, batch.ts)


class OutOfOrderWorker(Worker):
    """Finds pairs in both directions of event time; its results go straight on."""

    holdings_type = OutOfOrderHoldings

    def __init__(self, *, query: JoinQuery, **rest: Any) -> None:
        super().__init__(query=query, **rest)
        self._event_time = EventTimePairs(query)

    def _answer(self, commands: Commands, context: Context) -> list[int]:
        found = [self._pair(s, part, context) for s, part in enumerate(commands.probe)]
        if any(len(part) for part in commands.probe):
            matches = tuple(m for paired in found for m in (paired.seen, paired.seeing))
            born_ns = tuple(
                born
                for part, paired in zip(commands.probe, found, strict=True)
                for born in (part.born_ns, part.born_ns[paired.row])
            )
            context.send("sink", Answers(matches, born_ns, commands.span))
        return [paired.seen.total + paired.seeing.total for paired in found]

    def _pair(self, stream: int, part: Probes, context: Context) -> Paired:
        probes = self._sides.encode(stream, part)
        candidates: list[Candidates] = []
        for subwindow in self._probed(stream):
            found, work = _timed(subwindow).find(probes, part.start, part.stop, self._threads)
            context.charge(work)
            candidates += found
        return self._event_time.of(
            stream,
            part.batch,
            (part.start, part.stop),
            Candidates.concat(candidates),
            enumerate=self._pairs,
        )


def _timed(subwindow: Subwindow) -> OutOfOrderSubwindow:
    assert isinstance(subwindow, OutOfOrderSubwindow)
    return subwindow
