"""A host that watches the run: what must hold between messages is checked at each of them.

What the verdict finds at the end, if the answer is wrong at all, is named here where it happens.

- *Time* never runs backwards, for no actor; nor for the whole, where no clock is *skewed*.
- *Channels* are first in, first out: what arrives is the oldest message that its sender has sent to
  its receiver and that has not arrived. Answers (`FEEDBACK`) overtake other messages, and are in
  order among themselves.
- *Conservation*: nothing arrives that was not sent, or twice; at the end nothing is on its way.
- *Timers* fire once each, and not before the time that was asked for.
- *Watermarks* and horizons of windows never go back on a channel, of one stream: each is a promise
  about all that is sent later. Emitters of interval joins alone may promise less than before, of
  late tuples (see `actors.interval_join.replica.Watermarks`), and a report of late tuples names
  the watermark of their key.

What was written down about an actor is part of its snapshots: after a crash the invariants go back
with the actors, and the messages of the snapshot are on their way once more.

Where messages may be lost, doubled or overtaken on their way (*lossy*), what arrives must have been
sent, and no more is asked of channels.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from actors.hosting.inline import InlineHost
from actors.protocol import FEEDBACK, START, TIMER, Reply
from actors.results import Late

_PROMISES = ("watermark", "horizon")
"""Fields of payloads that never go back, from message to message of a channel."""

_ABOUT = ("stream", "direction")
"""Fields that say which stream a promise is about, where there are several on a channel."""

_EMITTERS = "channel"
"""A field that emitters' messages have."""


class InvariantError(Exception):
    """Something happened in a run that must not; names the actors and the virtual time."""


Origin = tuple[str, bool]
"""Of messages to an actor: their sender, and whether they are answers."""


@dataclass
class _Record:
    """What is written down about one actor."""

    on_way: defaultdict[Origin, deque[Any]] = field(default_factory=lambda: defaultdict(deque))
    """Origin to the messages that have not arrived, in their order."""
    timers: defaultdict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    """Port to the times that its timers are set for."""
    promised: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    """Origin, type of the payload, stream and promise, to the last value promised."""

    def copy(self) -> _Record:
        """Return one that does not change with this one."""
        record = _Record(promised=dict(self.promised))
        record.on_way.update((origin, deque(sent)) for origin, sent in self.on_way.items())
        record.timers.update((port, Counter(times)) for port, times in self.timers.items())
        return record


class _State(np.ndarray):
    """An actor's state, and what was written down about it."""

    record: _Record


class WatchingHost(InlineHost):
    """Runs actors in this process, and raises :exc:`InvariantError` where an invariant breaks.

    Parameters
    ----------
    lossy
        Whether messages may be lost, doubled and overtaken.
    skewed
        Whether actors' clocks may differ from virtual time.
    system, options
        Those of `InlineHost`.
    """

    def __init__(
        self, *system: Any, lossy: bool = False, skewed: bool = False, **options: Any
    ) -> None:
        super().__init__(*system, **options)
        self._lossy, self._skewed = lossy, skewed
        self._now: defaultdict[str, int] = defaultdict(int)
        self._records: defaultdict[str, _Record] = defaultdict(_Record)
        self._stored: dict[str, _Record] = {}
        """Of each actor's latest snapshot."""
        self._kept: dict[str, Any] = {}

    def submit(
        self, ticket: int, actor: str, sender: str, port: str, handle: Any, now: int
    ) -> Reply:
        """Check the message, run the actor, and write down what is on its way now."""
        clock = actor if self._skewed else "all"
        if now < (before := self._now[clock]):
            raise InvariantError(f"time runs backwards at {actor}: from {before} to {now} ns")
        self._now[clock] = now
        if port.startswith(TIMER):
            self._check_timer(actor, port, now)
        elif port != START:
            origin = sender, port == FEEDBACK
            self._check_arrival(actor, origin, handle, now)
            if not self._lossy:
                self._check_promises(actor, origin, handle, now)
        reply = super().submit(ticket, actor, sender, port, handle, now)
        for sent in reply.sends:
            for receiver in sent.receivers:
                self._records[receiver].on_way[actor, sent.port == FEEDBACK].append(sent.handle)
        for at, name in reply.timers:
            self._records[actor].timers[TIMER + name][at] += 1
        return reply

    def snapshot(self, actor: str) -> np.ndarray:
        """Snapshot the actor and store a copy of the checker's record of it."""
        state = super().snapshot(actor).view(_State)
        state.record = self._stored[actor] = self._records[actor].copy()
        state.record.on_way.clear()  # only messages of the snapshot are sent once more
        return state

    def keep(self, actor: str, handle: Any) -> Any:
        """Record a message of the last snapshot; it is submitted next."""
        kept = self._kept[actor] = super().keep(actor, handle)
        return kept

    def forget(self) -> None:
        """Forget what is on its way, and all timers."""
        super().forget()
        self._records.clear()

    def restore(self, actor: str, state: np.ndarray | None) -> None:
        """Restore *actor* and its record; None: a new record, but messages on their way stay."""
        super().restore(actor, state)
        if isinstance(state, _State):
            self._records[actor] = state.record.copy()
        else:
            self._records[actor] = _Record(on_way=self._records[actor].on_way)

    def finish(self) -> None:
        """Check that the run is over: no message is on its way, and no timer is set."""
        if self._lossy:
            return
        for actor, record in self._records.items():
            for (sender, _), sent in record.on_way.items():
                if sent:
                    raise InvariantError(
                        f"at the end {len(sent)} messages from {sender} to {actor} are out"
                    )
            for port, times in record.timers.items():
                if times:
                    raise InvariantError(
                        f"at the end {times.total()} of {actor}'s {port} have not run"
                    )

    def _check_timer(self, actor: str, port: str, now: int) -> None:
        times = self._records[actor].timers[port]
        due = min(times, default=None)
        if self._skewed and due is not None:  # it was set for another moment of this clock
            now = max(now, due)
        if due is None or due > now:
            raise InvariantError(
                f"{port} of {actor} runs at {now} ns, and "
                + ("was not set" if due is None else f"was set for {due} ns")
            )
        times[due] -= 1
        if not times[due]:
            del times[due]

    def _check_arrival(self, actor: str, origin: Origin, handle: Any, now: int) -> None:
        sender, _ = origin
        if (kept := self._kept.pop(actor, None)) is not None:
            self._stored[actor].on_way[origin].append(kept)
        on_way = self._records[actor].on_way[origin]
        if self._lossy:
            if not any(sent is handle for sent in on_way):
                raise InvariantError(f"{actor} receives, at {now} ns, what {sender} never sent")
            return
        if not on_way:
            raise InvariantError(
                f"{actor} receives from {sender}, at {now} ns, what was not sent, or twice"
            )
        if on_way.popleft() is not handle:
            raise InvariantError(
                f"{actor} receives a message from {sender} out of order, at {now} ns"
            )

    def _check_promises(self, actor: str, origin: Origin, handle: Any, now: int) -> None:
        promised = self._records[actor].promised
        about = tuple(getattr(handle, name, None) for name in _ABOUT)
        for name in _PROMISES:
            promise = getattr(handle, name, None)
            if promise is None or hasattr(handle, _EMITTERS) or isinstance(handle, Late):
                continue
            key = (origin, type(handle), about, name)
            before = promised.setdefault(key, promise)
            ends = promise if isinstance(promise, tuple) else (promise,)
            ends_before = before if isinstance(before, tuple) else (before,)
            if any(end < earlier for end, earlier in zip(ends, ends_before, strict=True)):
                raise InvariantError(
                    f"the {name} from {origin[0]} to {actor} goes back from {before} to "
                    f"{promise}, at {now} ns"
                )
            promised[key] = promise
