"""A reliable transport without I/O: both ends of one direction of a connection.

`Sending` numbers frames and has those that are not acknowledged yet; `Receiving` puts what arrives
in order, drops duplicates, and acknowledges every frame. Neither knows a network: what calls them
transmits what they return, and wakes the sending end at its deadline.

- An acknowledgement is cumulative: the number of the first frame that is missing. It also has when
  the frame left that it answers (RFC 7323's timestamps). So a frame that was sent again measures
  the round trip as fairly as any other, and Karn's rule is not needed, by which a connection that
  loses a fifth of its frames would back off for minutes.
- A frame is sent again when three frames that left after it have been acknowledged and it has not
  (fast retransmit and its recovery, RFC 6582; that only later frames count finds a lost
  retransmission too, as in RFC 8985), or at the timeout (RFC 6298), which doubles each time.

Left out: the handshake, which was before the run and has measured the first round trip; windows,
because inboxes have room for what is sent (credit-based flow control); congestion control, because
ports queue and drop nothing; and packets, because a message is one frame, of any size.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

ACKNOWLEDGEMENT_BYTES = 52
"""Headers of IPv4 and TCP, 40 bytes, and the option with timestamps, 12."""

_DUPLICATES = 3
"""Frames that have overtaken one after which it counts as lost (RFC 5681)."""
_GRANULARITY_NS = 1_000_000
"""The clock's, which a timeout is longer than the round trip by, at least. RFC 6298 and Linux have
greater minima (1 s, 200 ms) for receivers that delay acknowledgements; these do not."""
_LONGEST_NS = 60_000_000_000

Item = TypeVar("Item")


class Acknowledgement(NamedTuple):
    """What the receiving end answers to every frame."""

    missing: int
    """Number of the first frame that has not arrived: all before it have."""
    echo_ns: int
    """When the frame that it answers had left."""


@dataclass(slots=True)
class _Unacknowledged(Generic[Item]):
    item: Item
    left_ns: int


class Sending(Generic[Item]):
    """The end that sends, with a first round trip of *rtt_ns*, as the handshake measured it."""

    def __init__(self, rtt_ns: int) -> None:
        self.deadline_ns: int | None = None
        """When to call `expire`; None while all is acknowledged."""
        self._frames: deque[_Unacknowledged[Item]] = deque()
        self._first = 0
        """Number of the first of these."""
        self._overtaken = 0
        """Frames acknowledged that left after the first."""
        self._recover = 0
        """All before this number were sent before the last loss was noticed."""
        self._smoothed_ns, self._variation_ns = rtt_ns, rtt_ns // 2
        self._timeout_ns = 0
        self._set_timeout()

    @property
    def next(self) -> int:
        """Number of the next new frame."""
        return self._first + len(self._frames)

    def item(self, number: int) -> Item:
        """Return what a frame that is not acknowledged carries."""
        return self._frames[number - self._first].item

    def sent(self, number: int, item: Item, left_ns: int) -> None:
        """Note that the last bit of a frame leaves at *left_ns*: of the next one, or of one again.

        It may be later than now, because the frame waits for the port.
        """
        if number == self.next:
            self._frames.append(_Unacknowledged(item, left_ns))
        else:
            self._frames[number - self._first].left_ns = left_ns
        if self.deadline_ns is None or number == self._first:
            self.deadline_ns = left_ns + self._timeout_ns

    def acknowledge(self, acknowledgement: Acknowledgement, now: int) -> int | None:
        """Take an acknowledgement; return the number of a frame to send again, if there is one."""
        missing, echo_ns = acknowledgement
        self._measure(now - echo_ns)
        if missing > self._first:
            self._overtaken = 0
            while self._first < missing:
                self._frames.popleft()
                self._first += 1
            if not self._frames:
                self.deadline_ns = None
                return None
            first = self._frames[0]
            self.deadline_ns = max(now, first.left_ns) + self._timeout_ns
            # While recovering, what is missing next was lost together with what came now.
            again = self._first < self._recover and first.left_ns <= echo_ns
            return self._first if again else None
        if missing == self._first and self._frames and self._frames[0].left_ns < echo_ns:
            self._overtaken += 1
            if self._overtaken == _DUPLICATES:
                return self._lost()
        return None

    def expire(self, now: int) -> int | None:
        """Return the number of the frame to send again if the deadline has come."""
        if self.deadline_ns is None or now < self.deadline_ns:
            return None
        self._timeout_ns = min(2 * self._timeout_ns, _LONGEST_NS)
        return self._lost()

    def _lost(self) -> int:
        """Begin to recover; return the number of the frame that is missing."""
        self._overtaken = 0
        self._recover = self.next
        return self._first

    def _measure(self, rtt_ns: int) -> None:
        """Estimate the round trip with one more sample, and the timeout from it (RFC 6298)."""
        self._variation_ns += (abs(rtt_ns - self._smoothed_ns) - self._variation_ns) // 4
        self._smoothed_ns += (rtt_ns - self._smoothed_ns) // 8
        self._set_timeout()

    def _set_timeout(self) -> None:
        timeout_ns = self._smoothed_ns + max(_GRANULARITY_NS, 4 * self._variation_ns)
        self._timeout_ns = min(timeout_ns, _LONGEST_NS)


class Receiving(Generic[Item]):
    """The end that receives."""

    def __init__(self) -> None:
        self._missing = 0
        self._early: dict[int, Item] = {}

    def receive(self, number: int, item: Item, left_ns: int) -> tuple[list[Item], Acknowledgement]:
        """Take a frame that left at *left_ns*; return what is in order now, and the answer."""
        if number >= self._missing:
            self._early[number] = item
        ready = []
        while self._missing in self._early:
            ready.append(self._early.pop(self._missing))
            self._missing += 1
        return ready, Acknowledgement(self._missing, left_ns)
