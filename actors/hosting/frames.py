"""Frames on a socket: an object, pickled, with the bytes of its arrays beside it, not copied."""

from __future__ import annotations

import pickle
import socket
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

_LENGTH = struct.Struct("<Q")
_ALIGNED = 64
"""Arrays begin at multiples of this many bytes, as numpy's own do: kernels expect it."""
_PARTS_AT_ONCE = 512  # the system takes 1,024 at most

Frame = tuple[memoryview, list[memoryview]]
"""What `read` returned and `opened` turns into the object again."""


def send(link: socket.socket, value: Any) -> None:
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


def read(link: socket.socket) -> Frame:
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


def opened(frame: Frame) -> Any:
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
