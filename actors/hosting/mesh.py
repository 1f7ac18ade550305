"""A mesh: processes that are connected each with each, and send each other objects.

Connections are TCP, within a machine as between machines. An object travels as one frame: pickled,
with the bytes of its arrays beside it, not copied; the arrays that arrive are views of the frame. A
thread per connection reads what arrives, so that two members that send to each other at one time
never wait for each other. How much may be under way is for the senders to bound.
"""

from __future__ import annotations

import hmac
import pickle
import socket
import struct
import threading
from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

Address = tuple[str, int]
"""Host and port."""

_CONNECT_S = 20.0
_BUFFER_BYTES = 4 * 2**20
_SILENT_S = 5
_SILENCES = 3
"""A machine that is gone sends nothing: after this many unanswered probes, so many seconds apart,
its connections are closed."""

_LENGTH = struct.Struct("<Q")
_ALIGNED = 64
"""Arrays begin at multiples of this many bytes, as numpy's own do: kernels expect it."""
_PARTS_AT_ONCE = 512  # the system takes 1,024 at most

Frame = tuple[memoryview, list[memoryview]]
"""What `read_frame` returned and `open_frame` turns into the object again."""


class MemberLostError(Exception):
    """A member of the mesh is gone; names its number."""

    def __init__(self, member: int) -> None:
        super().__init__(member)
        self.member = member

    def __str__(self) -> str:
        return f"process {self.member} is gone"


class Door:
    """Where a member waits for those that connect to it.

    Parameters
    ----------
    host
        Address of this machine, as the others reach it.
    """

    def __init__(self, host: str) -> None:
        self._listener = socket.create_server((host, 0))
        self.address: Address = self._listener.getsockname()[:2]

    def join(self, member: int, addresses: Sequence[Address], members: int, token: bytes) -> Mesh:
        """Connect with all others and return the mesh, as member number *member*.

        Parameters
        ----------
        member
            It connects to those before it, and waits for those after it.
        addresses
            Of all members that have a door, by number.
        members
            How many there are.
        token
            A secret that all members share.
        """
        links = _connect(member, addresses[:member], token)
        self._listener.settimeout(_CONNECT_S)
        while len(links) < members - 1:
            link, _ = self._listener.accept()
            link.settimeout(_CONNECT_S)
            greeting = _read_greeting(link, len(token) + 2)
            if hmac.compare_digest(greeting[2:], token):
                links[int.from_bytes(greeting[:2])] = link
            else:
                link.close()
        self._listener.close()
        return Mesh(member, links)


def join_last(addresses: Sequence[Address], token: bytes) -> Mesh:
    """Connect with the members behind *addresses* and return the mesh, as the one after them.

    Raise :exc:`OSError` when one of them cannot be reached.
    """
    return Mesh(len(addresses), _connect(len(addresses), addresses, token))


class Mesh:
    """One member's connections with all others; a context manager that closes them.

    Attributes
    ----------
    member
        This member's number.
    driver
        The last member, which started the others.
    """

    def __init__(self, member: int, links: dict[int, socket.socket]) -> None:
        self.member, self.driver = member, len(links)
        self._links = links
        self._lost: set[int] = set()
        self._arrived: SimpleQueue[tuple[int, Frame | None]] = SimpleQueue()
        for peer, link in links.items():
            _prepare(link)
            reader = threading.Thread(target=self._read_all, args=(peer, link), daemon=True)
            reader.start()

    def __enter__(self) -> Mesh:
        """Return the mesh itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close all connections, for the other ends to see."""
        for link in self._links.values():
            with suppress(OSError):  # the other end was first
                link.shutdown(socket.SHUT_RDWR)
            link.close()

    def send(self, peer: int, value: Any) -> None:
        """Send *value* to *peer*; raise :exc:`MemberLostError` when it is gone."""
        try:
            send_frame(self._links[peer], value)
        except OSError:
            raise MemberLostError(peer) from None

    def receive(self, timeout_s: float | None = None) -> tuple[int, Any] | None:
        """Return the sender of the next frame and its object; None when none came in time.

        Raise :exc:`MemberLostError` when a member is gone and all it sent has been received.
        """
        try:
            peer, frame = self._arrived.get(timeout=timeout_s)
        except Empty:
            return None
        if frame is None:
            raise MemberLostError(peer)
        return peer, open_frame(frame)

    def has(self, peer: int) -> bool:
        """Return whether *peer* is still connected; what it sent may be waiting all the same."""
        return peer not in self._lost

    @property
    def waiting(self) -> bool:
        """Whether a frame has arrived that has not been received."""
        return not self._arrived.empty()

    def _read_all(self, peer: int, link: socket.socket) -> None:
        try:
            while True:
                self._arrived.put((peer, read_frame(link)))
        except (OSError, EOFError):
            self._lost.add(peer)
            self._arrived.put((peer, None))


def _connect(member: int, addresses: Sequence[Address], token: bytes) -> dict[int, socket.socket]:
    links = {}
    for peer, address in enumerate(addresses):
        link = socket.create_connection(address, _CONNECT_S)
        link.sendall(member.to_bytes(2) + token)
        links[peer] = link
    return links


def _prepare(link: socket.socket) -> None:
    link.settimeout(None)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for buffer in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        link.setsockopt(socket.SOL_SOCKET, buffer, _BUFFER_BYTES)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", _SILENT_S),
        ("TCP_KEEPINTVL", _SILENT_S),
        ("TCP_KEEPCNT", _SILENCES),
    ):
        if hasattr(socket, name):  # not every system has them all
            link.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _read_greeting(link: socket.socket, nbytes: int) -> bytes:
    greeting = b""
    while len(greeting) < nbytes and (more := link.recv(nbytes - len(greeting))):
        greeting += more
    return greeting.ljust(nbytes, b"\0")


def send_frame(link: socket.socket, value: Any) -> None:
    """Send *value* down *link*; raise :exc:`OSError` when the other end is gone."""
    buffers: list[memoryview] = []
    data = pickle.dumps(
        value, protocol=5, buffer_callback=lambda buffer: buffers.append(buffer.raw())
    )
    lengths = [len(data), *(part.nbytes for part in buffers)]
    parts: list[Any] = [_LENGTH.pack(len(lengths)), *map(_LENGTH.pack, lengths)]
    for part in (data, *buffers):
        parts += (part, bytes(-len(part) % _ALIGNED))
    _send_all(link, [part for part in parts if len(part)])


def _send_all(link: socket.socket, parts: Sequence[Any]) -> None:
    waiting = [memoryview(part) for part in parts]
    begin = 0
    while begin < len(waiting):
        sent = link.sendmsg(waiting[begin : begin + _PARTS_AT_ONCE])
        while begin < len(waiting) and sent >= len(waiting[begin]):
            sent -= len(waiting[begin])
            begin += 1
        if sent:
            waiting[begin] = waiting[begin][sent:]


def read_frame(link: socket.socket) -> Frame:
    """Wait for the next frame; raise :exc:`EOFError` when the other end has closed."""
    (count,) = _LENGTH.unpack(_read_exactly(link, _LENGTH.size))
    sizes = _read_exactly(link, count * _LENGTH.size)
    lengths = [length for (length,) in _LENGTH.iter_unpack(sizes)]
    whole = _read_exactly(link, sum(length + -length % _ALIGNED for length in lengths))
    parts, begin = [], 0
    for length in lengths:
        parts.append(whole[begin : begin + length])
        begin += length + -length % _ALIGNED
    return parts[0], parts[1:]


def open_frame(frame: Frame) -> Any:
    """Return the object that was sent; its arrays are views of the frame."""
    data, buffers = frame
    return pickle.loads(data, buffers=buffers)


def _read_exactly(link: socket.socket, nbytes: int) -> memoryview:
    # Not a bytearray: that would be filled with zeros first, and its bytes begin anywhere.
    room = np.empty(-(-nbytes // 8), np.int64).data.cast("B")[:nbytes]
    filled = 0
    while filled < nbytes:
        got = link.recv_into(room[filled:])
        if not got:
            raise EOFError("the other end has closed")
        filled += got
    return room
