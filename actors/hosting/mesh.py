"""A mesh: processes that are connected each with each, and send each other values.

Connections are TCP, within a machine as between machines (`links`). A value travels as one frame:
its bytes (`actors.serialisation`), with arrays not copied; those that arrive are views of the
frame. A thread per connection reads what arrives, so that two members that send to each other at
one time never wait for each other. How much may be under way is for the senders to bound.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Any

from actors.hosting.links import GREETING_S, Address, ProcessLink, Secrets, answer, greet
from actors.serialisation import from_bytes

_BEAT_S = 1.0


class MemberLostError(Exception):
    """A member of the mesh is gone; names its number."""

    def __init__(self, member: int) -> None:
        super().__init__(member)
        self.member = member

    def __str__(self) -> str:
        return f"process {self.member} is gone"


class Door:
    """Where a member waits for those that connect to it: at *host*, as they reach its machine."""

    def __init__(self, host: str) -> None:
        self._listener = socket.create_server((host, 0))
        self.address: Address = self._listener.getsockname()[:2]

    def join(
        self, member: int, addresses: Sequence[Address], members: int, secrets: Secrets
    ) -> Mesh:
        """Connect with all others and return the mesh of *members*, as member number *member*.

        It connects to those before it, by the *addresses* of all that have a door, and waits for
        those after it. Raise :exc:`OSError` when a member cannot be reached, or does not come in
        time.
        """
        with self._listener, _connected(member, addresses[:member], secrets) as links:
            expected = set(range(member + 1, members))
            arrived: SimpleQueue[tuple[int, ProcessLink]] = SimpleQueue()

            def admit(connection: socket.socket) -> None:
                try:
                    peer = answer(connection, member, secrets)
                except (OSError, EOFError):
                    connection.close()
                else:
                    arrived.put(peer)

            def admit_all() -> None:
                # Each by itself: one that is silent must not stop the others.
                with suppress(OSError):  # the door is closed
                    while True:
                        connection, _ = self._listener.accept()
                        threading.Thread(target=admit, args=(connection,), daemon=True).start()

            threading.Thread(target=admit_all, daemon=True).start()
            until = time.monotonic() + GREETING_S
            while expected:
                try:
                    peer, link = arrived.get(timeout=max(0.0, until - time.monotonic()))
                except Empty:
                    names = ", ".join(map(str, sorted(expected)))
                    raise TimeoutError(f"process {names} did not connect") from None
                if peer in expected:
                    expected.remove(peer)
                    links[peer] = link
                else:  # a number that is no member's, or that one has already
                    link.close()
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        return Mesh(member, links)


def join_last(
    addresses: Sequence[Address], secrets: Secrets, *, send_limit_s: float | None = None
) -> Mesh:
    """Connect with the members behind *addresses* and return the mesh, as the one after them.

    A member that takes nothing of what is sent to it for *send_limit_s* is lost. Only this member
    limits its sending: nobody gives the driver up when a person stops it for a while.

    Raise :exc:`OSError` when one of them cannot be reached.
    """
    with _connected(len(addresses), addresses, secrets) as links:
        if send_limit_s is not None:
            for link in links.values():
                link.limit_sending(send_limit_s)
        return Mesh(len(addresses), links)


@contextmanager
def _connected(
    member: int, addresses: Sequence[Address], secrets: Secrets
) -> Iterator[dict[int, ProcessLink]]:
    """Connect with the members behind *addresses*; yield the links by number, for more to join.

    All links are closed if one of those members cannot be reached, or the block fails.
    """
    links: dict[int, ProcessLink] = {}
    try:
        for peer, address in enumerate(addresses):
            links[peer] = greet(address, peer, member, secrets)
        yield links
    except BaseException:
        for link in links.values():
            link.close()
        raise


class Mesh:
    """One member's connections with all others; a context manager that closes them.

    Attributes
    ----------
    member
        This member's number.
    driver
        The last member, which started the others.
    """

    def __init__(self, member: int, links: dict[int, ProcessLink]) -> None:
        self.member, self.driver = member, max([member, *links])
        self._links = links
        self._lost: set[int] = set()
        self._arrived: SimpleQueue[tuple[int, memoryview | None]] = SimpleQueue()
        for peer, link in links.items():
            threading.Thread(target=self._read_all, args=(peer, link), daemon=True).start()
        if member != self.driver:
            threading.Thread(target=self._beat, daemon=True).start()

    def __enter__(self) -> Mesh:
        """Return the mesh itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close all connections, for the other ends to see."""
        for link in self._links.values():
            link.close()

    def send(self, peer: int, value: Any) -> None:
        """Send *value* to *peer*; raise :exc:`MemberLostError` when it is gone or takes nothing."""
        try:
            self._links[peer].send(value)
        except OSError:
            raise MemberLostError(peer) from None

    def receive(self, timeout_s: float | None = None) -> tuple[int, Any] | None:
        """Return the sender of the next frame and its value; None when none came in time.

        Raise :exc:`MemberLostError` when a member is gone and all it sent has been received, and
        :exc:`actors.serialisation.FormatError` when what it sent is not a value.
        """
        if timeout_s is not None:  # the last second of an int64 of nanoseconds is beyond it
            timeout_s = min(timeout_s, threading.TIMEOUT_MAX)
        try:
            peer, frame = self._arrived.get(timeout=timeout_s)
        except Empty:
            return None
        if frame is None:
            raise MemberLostError(peer)
        return peer, from_bytes(frame)

    def has(self, peer: int) -> bool:
        """Return whether *peer* is still connected; what it sent may be waiting all the same."""
        return peer not in self._lost

    @property
    def waiting(self) -> bool:
        """Whether a frame has arrived that has not been received."""
        return not self._arrived.empty()

    def silent_s(self) -> dict[int, float]:
        """Return for how long nothing has come from each of the others, that are still connected.

        A member sends the driver a sign of life every second, whatever else it is doing.
        """
        now = time.monotonic()
        return {peer: now - link.heard_s for peer, link in self._links.items() if self.has(peer)}

    def _read_all(self, peer: int, link: ProcessLink) -> None:
        try:
            while True:
                self._arrived.put((peer, link.read()))
        except (OSError, EOFError):
            pass
        finally:  # no room for what it announced is as good as a loss
            self._lost.add(peer)
            self._arrived.put((peer, None))

    def _beat(self) -> None:
        with suppress(OSError):  # the driver is gone, which others notice
            while True:
                time.sleep(_BEAT_S)
                self._links[self.driver].beat()
