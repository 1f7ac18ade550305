"""The transport alone, over wires that lose, double and reorder whatever they like."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsim.connection import Acknowledgement, Receiving, Sending

US = 1_000
S = 1_000_000_000


@dataclass
class Wire:
    """A wire of 100 µs each way; *cut* is when nothing gets through, in nanoseconds."""

    loss: float = 0.0
    duplicate: float = 0.0
    reorder_ns: int = 0
    cut: tuple[int, int] = (0, 0)
    seed: int = 0

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def arrivals(self, now: int) -> Iterator[int]:
        """Yield when a frame that leaves now arrives, each time that it does."""
        for _ in range(1 + (self.rng.random() < self.duplicate)):
            if self.rng.random() >= self.loss and not self.cut[0] <= now < self.cut[1]:
                yield now + 100 * US + int(self.rng.integers(self.reorder_ns + 1))


class Transfer:
    """Frames 0, 1, 2 ... sent over a wire, one each *gap_ns*, and what came of it.

    It is given up after 100,000 events: ``ended`` then is False.
    """

    def __init__(
        self,
        wire: Wire,
        frames: int = 40,
        gap_ns: int = 10 * US,
        sending: type[Sending[int]] = Sending,
        receiving: type[Receiving[int]] = Receiving,
    ) -> None:
        self.wire, self.here, self.there = wire, sending(200 * US), receiving()
        self.delivered: list[int] = []
        self.transmissions = self.ended_ns = 0
        self.ended = False
        self.order = count()
        self.queue: list[tuple[int, int, Callable[..., int | None], tuple[int, ...]]] = []
        self.alarms: set[int] = set()
        for number in range(frames):
            self.at(number * gap_ns, lambda number, now: number, number)
        self.run()

    def at(self, at_ns: int, action: Callable[..., int | None], *about: int) -> None:
        heappush(self.queue, (at_ns, next(self.order), action, about))

    def run(self) -> None:
        for _ in range(100_000):
            if not self.queue:
                self.ended = True
                return
            now, _, action, about = heappop(self.queue)
            number = action(*about, now)
            if number is not None:
                self.transmissions += 1
                self.here.sent(number, number, now)
                for at_ns in self.wire.arrivals(now):
                    self.at(at_ns, self.arrive, number, now)
            deadline_ns = self.here.deadline_ns
            if deadline_ns is not None and deadline_ns not in self.alarms:
                self.alarms.add(deadline_ns)
                self.at(deadline_ns, self.here.expire)

    def arrive(self, number: int, left_ns: int, now: int) -> None:
        ready, answer = self.there.receive(number, number, left_ns)
        self.delivered += ready
        self.ended_ns = now
        for at_ns in self.wire.arrivals(now):
            self.at(at_ns, self.answer, *answer)

    def answer(self, missing: int, echo_ns: int, now: int) -> int | None:
        return self.here.acknowledge(Acknowledgement(missing, echo_ns), now)


@given(
    loss=st.floats(0, 0.9),
    duplicate=st.floats(0, 0.9),
    reorder_us=st.sampled_from([0, 30, 3_000, 300_000]),
    cut_us=st.integers(0, 500_000),
    gap_us=st.sampled_from([0, 10, 5_000]),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_frame_is_delivered_once_and_in_order_over_any_wire(
    loss: float, duplicate: float, reorder_us: int, cut_us: int, gap_us: int, seed: int
) -> None:
    wire = Wire(loss, duplicate, reorder_us * US, (100 * US, (100 + cut_us) * US), seed)
    sent = Transfer(wire, gap_ns=gap_us * US)
    assert sent.ended
    assert sent.delivered == list(range(40))


def test_over_a_sound_wire_each_frame_is_sent_once() -> None:
    assert Transfer(Wire()).transmissions == 40


def test_a_lost_frame_is_sent_again_when_three_have_overtaken_it() -> None:
    """Within two round trips, long before the timeout."""
    wire = Wire(cut=(50 * US, 51 * US))
    sent = Transfer(replace(wire))
    assert sent.transmissions == 41
    assert sent.ended_ns == 39 * 10 * US + 100 * US


def test_all_that_a_window_lost_is_sent_again_a_frame_a_round_trip() -> None:
    sent = Transfer(Wire(cut=(50 * US, 151 * US)))
    assert sent.transmissions == 40 + 11
    assert sent.ended_ns < 50 * US + 14 * 200 * US


def test_the_timeout_doubles_while_nothing_gets_through() -> None:
    """A cut of 10 s costs a dozen frames, not ten thousand, and as long again at most."""
    sent = Transfer(Wire(cut=(0, 10 * S)), frames=3)
    assert sent.delivered == [0, 1, 2]
    assert sent.transmissions <= 3 + 16
    assert sent.ended_ns < 20 * S + S


def test_a_fifth_of_all_frames_lost_costs_milliseconds_a_frame() -> None:
    for seed in range(20):
        sent = Transfer(Wire(loss=0.2, seed=seed), frames=1_000)
        assert sent.delivered == list(range(1_000))
        assert sent.ended_ns < 2 * S


# Five broken transports, and how each is noticed.


class ForgetsToSendAgain(Sending[int]):
    def acknowledge(self, acknowledgement: Acknowledgement, now: int) -> int | None:
        super().acknowledge(acknowledgement, now)
        return None

    def expire(self, now: int) -> int | None:
        super().expire(now)
        self.deadline_ns = None
        return None


class NeverTimesOut(Sending[int]):
    def expire(self, now: int) -> int | None:
        return None


class NeverBacksOff(Sending[int]):
    def expire(self, now: int) -> int | None:
        before_ns = self._timeout_ns
        number = super().expire(now)
        self._timeout_ns = before_ns
        return number


class LetsDuplicatesThrough(Receiving[int]):
    def receive(self, number: int, item: int, left_ns: int) -> tuple[list[int], Acknowledgement]:
        double = number < self._missing
        ready, answer = super().receive(number, item, left_ns)
        return ([item] if double else ready), answer


class AcknowledgesOneTooMany(Receiving[int]):
    def receive(self, number: int, item: int, left_ns: int) -> tuple[list[int], Acknowledgement]:
        ready, answer = super().receive(number, item, left_ns)
        beyond = min(answer.missing + 1, number + 1)
        return ready, answer._replace(missing=max(beyond, answer.missing))


class DeliversAsItComes(Receiving[int]):
    def receive(self, number: int, item: int, left_ns: int) -> tuple[list[int], Acknowledgement]:
        new = number >= self._missing and number not in self._early
        _, answer = super().receive(number, item, left_ns)
        return ([item] if new else []), answer


LOSSY = Wire(loss=0.3)
DOUBLING = Wire(duplicate=0.5)
REORDERING = Wire(reorder_ns=500 * US)


@pytest.mark.parametrize(
    ("wire", "broken"),
    [
        (LOSSY, {"sending": ForgetsToSendAgain}),
        (LOSSY, {"sending": NeverTimesOut}),
        (DOUBLING, {"receiving": LetsDuplicatesThrough}),
        (LOSSY, {"receiving": AcknowledgesOneTooMany}),
        (REORDERING, {"receiving": DeliversAsItComes}),
    ],
)
def test_a_broken_transport_delivers_something_else(wire: Wire, broken: dict[str, Any]) -> None:
    sent = Transfer(replace(wire))
    assert sent.ended
    assert sent.delivered == list(range(40))
    sent = Transfer(replace(wire), **broken)
    assert not (sent.ended and sent.delivered == list(range(40)))


def test_a_timeout_that_does_not_double_floods_a_cut_link() -> None:
    sent = Transfer(Wire(cut=(0, 10 * S)), frames=3, sending=NeverBacksOff)
    assert sent.transmissions > 1_000
