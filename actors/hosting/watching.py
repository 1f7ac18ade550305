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

Where messages may be lost, doubled or overtaken on their way (*lossy*), what arrives must have been
sent, and no more is asked of channels.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from typing import Any

from actors.hosting.inline import InlineHost
from actors.protocol import FEEDBACK, START, TIMER, ActorSpec, Reply, Wiring
from actors.results import Late

_PROMISES = ("watermark", "horizon")
"""Fields of payloads that never go back, from message to message of a channel."""

_ABOUT = ("stream", "direction")
"""Fields that say which stream a promise is about, where there are several on a channel."""

_EMITTERS = "channel"
"""A field that emitters' messages have."""

Channel = tuple[str, str, bool]
"""Sender, receiver, and whether it carries answers."""


class InvariantError(Exception):
    """Something happened in a run that must not; names the actors and the virtual time."""


class WatchingHost(InlineHost):
    """Runs actors in this process, and raises :exc:`InvariantError` where an invariant breaks.

    Parameters
    ----------
    lossy
        Whether messages may be lost, doubled and overtaken.
    skewed
        Whether actors' clocks may differ from virtual time.
    specs, wiring, seed, options
        Those of `InlineHost`.
    """

    def __init__(
        self,
        specs: Mapping[str, ActorSpec],
        wiring: Wiring,
        seed: int,
        *,
        lossy: bool = False,
        skewed: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(specs, wiring, seed, **options)
        self._lossy, self._skewed = lossy, skewed
        self._now: defaultdict[str, int] = defaultdict(int)
        self._on_way: defaultdict[Channel, deque[Any]] = defaultdict(deque)
        self._timers: defaultdict[tuple[str, str], Counter[int]] = defaultdict(Counter)
        self._promised: dict[tuple[Any, ...], Any] = {}

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
            channel = (sender, actor, port == FEEDBACK)
            self._check_arrival(channel, handle, now)
            if not self._lossy:
                self._check_promises(channel, handle, now)
        reply = super().submit(ticket, actor, sender, port, handle, now)
        for sent in reply.sends:
            for receiver in sent.receivers:
                self._on_way[actor, receiver, sent.port == FEEDBACK].append(sent.handle)
        for at, name in reply.timers:
            self._timers[actor, TIMER + name][at] += 1
        return reply

    def finish(self) -> None:
        """Check that the run is over: no message is on its way, and no timer is set."""
        if self._lossy:
            return
        waiting = {channel: len(on_way) for channel, on_way in self._on_way.items() if on_way}
        for (sender, receiver, _), count in waiting.items():
            raise InvariantError(f"at the end {count} messages from {sender} to {receiver} are out")
        for (actor, port), times in self._timers.items():
            if times:
                raise InvariantError(f"at the end {times.total()} of {actor}'s {port} have not run")

    def _check_timer(self, actor: str, port: str, now: int) -> None:
        times = self._timers[actor, port]
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

    def _check_arrival(self, channel: Channel, handle: Any, now: int) -> None:
        sender, receiver, _ = channel
        on_way = self._on_way[channel]
        if self._lossy:
            if not any(sent is handle for sent in on_way):
                raise InvariantError(f"{receiver} receives, at {now} ns, what {sender} never sent")
            return
        if not on_way:
            raise InvariantError(
                f"{receiver} receives from {sender}, at {now} ns, what was not sent, or twice"
            )
        if on_way.popleft() is not handle:
            raise InvariantError(
                f"{receiver} receives a message from {sender} out of order, at {now} ns"
            )

    def _check_promises(self, channel: Channel, handle: Any, now: int) -> None:
        about = tuple(getattr(handle, name, None) for name in _ABOUT)
        for name in _PROMISES:
            promise = getattr(handle, name, None)
            if promise is None or hasattr(handle, _EMITTERS) or isinstance(handle, Late):
                continue
            key = (channel, type(handle), about, name)
            before = self._promised.setdefault(key, promise)
            ends = promise if isinstance(promise, tuple) else (promise,)
            ends_before = before if isinstance(before, tuple) else (before,)
            if any(end < earlier for end, earlier in zip(ends, ends_before, strict=True)):
                raise InvariantError(
                    f"the {name} from {channel[0]} to {channel[1]} goes back from {before} to "
                    f"{promise}, at {now} ns"
                )
            self._promised[key] = promise
