"""Connections between processes: everything arrives, in order, and nobody waits for ever."""

from __future__ import annotations

import socket
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.hosting.mesh import Door, MemberLostError, open_frame, read_frame, send_frame
from tests.actors.meshes import TOKEN, meshes

ARRAYS = st.lists(
    st.tuples(st.sampled_from(["int64", "float64", "bool", "uint8"]), st.integers(0, 700)),
    max_size=6,
)


@settings(max_examples=40)
@given(arrays=ARRAYS, text=st.text(max_size=30))
def test_a_frame_brings_what_was_sent_and_its_arrays_where_kernels_expect_them(
    arrays: list[tuple[str, int]], text: str
) -> None:
    sent = [np.arange(size).astype(dtype) for dtype, size in arrays]
    here, there = socket.socketpair()
    with here, there:
        send_frame(here, (text, sent))
        told, received = open_frame(read_frame(there))
    assert told == text
    assert len(received) == len(sent)
    for one, other in zip(received, sent, strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
        assert one.flags.aligned


def test_two_that_send_to_each_other_more_than_fits_the_wire_do_not_wait_for_each_other() -> None:
    one, other, driver = meshes(2)
    much = np.arange(4_000_000)

    def send_and_take() -> None:
        one.send(1, much)
        one.receive(20)

    with one, other, driver:
        thread = threading.Thread(target=send_and_take)
        thread.start()
        other.send(0, much)
        received = other.receive(20)
        thread.join(20)
        assert received is not None
        assert not thread.is_alive()
        assert np.array_equal(received[1], much)


def test_what_was_sent_before_a_member_left_is_received_before_the_loss_is_told() -> None:
    one, other, driver = meshes(2)
    with other, driver:
        with one:
            one.send(2, "last words")
        assert driver.receive(10) == (0, "last words")
        with pytest.raises(MemberLostError, match="process 0 is gone"):
            driver.receive(10)
        assert (driver.has(0), driver.has(1)) == (False, True)


def test_a_stranger_is_not_let_in() -> None:
    door = Door("127.0.0.1")
    joined = []
    thread = threading.Thread(
        target=lambda: joined.append(door.join(0, [door.address], 2, TOKEN)), daemon=True
    )
    thread.start()
    with socket.create_connection(door.address, 10) as stranger:
        stranger.sendall((1).to_bytes(2) + bytes(len(TOKEN)))
        assert stranger.recv(1) == b""
    with socket.create_connection(door.address, 10) as friend:
        friend.sendall((1).to_bytes(2) + TOKEN)
        thread.join(10)
        assert joined[0].member == 0
        joined[0].__exit__(None, None, None)
