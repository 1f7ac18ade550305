"""Connections between processes: who gets one, what it takes, and frames of any bytes."""

from __future__ import annotations

import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.hosting.links import ProcessLink, Secrets, answer, greet
from actors.hosting.mesh import Door, MemberLostError, Mesh, join_last
from actors.serialisation import FormatError, from_bytes
from joins.errors import JoinsimError
from tests.actors.certificates import OURS, THEIRS
from tests.actors.meshes import SECRETS

ARRAYS = st.lists(
    st.tuples(st.sampled_from(["int64", "float64", "bool", "uint8"]), st.integers(0, 700)),
    max_size=6,
)

_MORE_THAN_FITS = np.zeros(2**23)
"""More than a connection takes before its other end reads."""


@settings(max_examples=40)
@given(arrays=ARRAYS, text=st.text(max_size=30))
def test_a_frame_brings_what_was_sent_and_its_arrays_where_kernels_expect_them(
    arrays: list[tuple[str, int]], text: str
) -> None:
    sent = [np.arange(size).astype(dtype) for dtype, size in arrays]
    here, there = map(ProcessLink, _pair())
    here.beat()
    here.send((text, sent))
    same_text, received = from_bytes(there.read())
    here.close()
    there.close()
    assert same_text == text
    assert len(received) == len(sent)
    for one, other in zip(received, sent, strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
        assert one.flags.aligned


@settings(max_examples=200)
@given(data=st.binary(max_size=200))
def test_a_frame_of_any_bytes_is_a_value_or_an_error(data: bytes) -> None:
    here, there = _pair()
    link = ProcessLink(there)
    with here:
        here.sendall(struct.pack("<Q", len(data)) + data)
    try:
        from_bytes(link.read())
    except (FormatError, EOFError):
        pass
    finally:
        link.close()


def test_a_frame_that_would_take_all_memory_is_refused_before_any_is_taken() -> None:
    here, there = _pair()
    link = ProcessLink(there)
    with here:
        here.sendall(struct.pack("<Q", 2**60))
        with pytest.raises(ConnectionAbortedError, match="a frame of 1152921504606846976 bytes"):
            link.read()
    link.close()


def test_a_send_to_an_end_that_takes_nothing_ends_after_the_limit() -> None:
    here, there = _pair()
    link = ProcessLink(here)
    link.limit_sending(0.2)
    mesh = Mesh(1, {0: link})
    with there, mesh:
        for _ in range(2):  # the frame that was cut off cannot be followed by another
            began_s = time.monotonic()
            with pytest.raises(MemberLostError, match="process 0 is gone"):
                mesh.send(0, _MORE_THAN_FITS)
            assert time.monotonic() - began_s < 5
        with pytest.raises(MemberLostError, match="process 0 is gone"):
            mesh.receive(10)


def test_a_slow_end_gets_everything_though_it_takes_longer_than_the_limit() -> None:
    here, there = _pair()
    link = ProcessLink(here)
    link.limit_sending(0.5)

    def take_slowly() -> int:
        taken, room = 0, bytearray(2**22)
        while got := there.recv_into(room):
            taken += got
            time.sleep(0.05)
        return taken

    with there, ThreadPoolExecutor(1) as pool:
        taking = pool.submit(take_slowly)
        began_s = time.monotonic()
        link.send(_MORE_THAN_FITS)
        assert time.monotonic() - began_s > 0.5
        link.close()
        assert taking.result(10) > _MORE_THAN_FITS.nbytes


@pytest.fixture
def door() -> Iterator[tuple[Door, Future[Mesh]]]:
    """Return the door of member 0 of two, and what its `join` returns."""
    door = Door("127.0.0.1")
    with ThreadPoolExecutor(1) as pool:
        yield door, pool.submit(door.join, 0, [door.address], 2, SECRETS)


def test_strangers_are_not_let_in_and_do_not_delay_the_start(
    door: tuple[Door, Future[Mesh]],
) -> None:
    waiting, joined = door
    silent = [socket.create_connection(waiting.address, 10) for _ in range(20)]
    with socket.create_connection(waiting.address, 10) as stranger:
        stranger.recv(32)
        stranger.sendall(struct.pack("<I", 1) + bytes(64))
        assert stranger.recv(1) == b""
    with socket.create_connection(waiting.address, 10) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" * 9)
    with pytest.raises(OSError, match=r"credentials|reset|peer"):
        greet(waiting.address, 0, 1, Secrets(b"not the secret .."))
    began_s = time.monotonic()
    with join_last([waiting.address], SECRETS), joined.result(10) as mesh:
        assert time.monotonic() - began_s < 5
        assert (mesh.member, mesh.driver) == (0, 1)
    for one in silent:
        one.close()


def test_a_number_that_is_no_other_members_is_refused(door: tuple[Door, Future[Mesh]]) -> None:
    waiting, joined = door
    for number in (0, 2, 2**31):
        impostor = greet(waiting.address, 0, number, SECRETS)
        with pytest.raises((EOFError, ConnectionResetError)):
            impostor.read()
        impostor.close()
    with join_last([waiting.address], SECRETS), joined.result(10) as mesh:
        assert mesh.driver == 1


def test_who_answers_at_a_door_must_know_the_secret_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def pretend() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(bytes(32))
                connection.recv(68)
                connection.sendall(bytes(32))

        thread = threading.Thread(target=pretend, daemon=True)
        thread.start()
        with pytest.raises(PermissionError, match="it is not part of this run"):
            greet(listener.getsockname()[:2], 0, 1, SECRETS)
        thread.join(10)


def test_a_proof_for_one_door_is_none_for_another() -> None:
    """Who relays the messages between a member and another door is not let in."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        ThreadPoolExecutor(1) as pool,
    ):
        address = listener.getsockname()[:2]
        joining = pool.submit(greet, address, 1, 2, SECRETS)
        connection, _ = listener.accept()
        with pytest.raises(PermissionError, match="does not know the secret"):
            answer(connection, 0, SECRETS)
        connection.close()
        with pytest.raises(OSError, match=r"credentials|reset"):
            joining.result(10)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (f"print({OURS!r})", None),
        ("raise SystemExit('no entropy left')", "openssl made no certificate: no entropy left"),
        (None, "encrypting needs the command openssl"),
    ],
    ids=["made", "failed", "missing"],
)
def test_a_run_makes_a_certificate_of_its_own_with_openssl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str | None, message: str | None
) -> None:
    if program is not None:
        (tmp_path / "openssl").write_text(f"#!{sys.executable}\n{program}\n")
        (tmp_path / "openssl").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    if message is None:
        secrets = Secrets.new(encrypt=True)
        assert (secrets.certificate or "").strip() == OURS.strip()
        assert len(secrets.token) == 32
    else:
        with pytest.raises(JoinsimError, match=message):
            Secrets.new(encrypt=True)
    assert Secrets.new(encrypt=False).certificate is None


def test_what_leaves_the_machine_is_encrypted_if_it_is_to_be() -> None:
    secrets = Secrets(SECRETS.token, OURS)
    much = np.arange(300_000)
    seen = bytearray()
    with (
        socket.create_server(("127.0.0.2", 0)) as listener,  # for Linux this machine, too
        ThreadPoolExecutor(1) as pool,
    ):
        joining = pool.submit(greet, listener.getsockname()[:2], 0, 1, secrets)
        connection, _ = listener.accept()
        spied, receive = connection, connection.recv

        class Spy:
            def __getattr__(self, name: str) -> object:
                return getattr(spied, name)

            def recv(self, size: int) -> bytes:
                data = receive(size)
                seen.extend(data)
                return data

        peer, there = answer(Spy(), 0, secrets)  # type: ignore[arg-type]
        here = joining.result(10)
        assert peer == 1
        # Both at once, and more than fits the wire.
        sending = pool.submit(here.send, much)
        back = threading.Thread(target=there.send, args=(much,), daemon=True)
        back.start()
        assert np.array_equal(from_bytes(there.read()), much)
        sending.result(10)
        assert np.array_equal(from_bytes(here.read()), much)
        back.join(10)
        assert len(seen) > much.nbytes
        assert much[5_000:5_010].tobytes() not in seen
        here.close()
        there.close()


def test_a_stranger_with_a_certificate_of_its_own_is_not_let_in() -> None:
    ours, theirs = Secrets(SECRETS.token, OURS), Secrets(SECRETS.token, THEIRS)
    with (
        socket.create_server(("127.0.0.2", 0)) as listener,
        ThreadPoolExecutor(1) as pool,
    ):
        joining = pool.submit(greet, listener.getsockname()[:2], 0, 1, theirs)
        connection, _ = listener.accept()
        with connection, pytest.raises((OSError, EOFError)):
            answer(connection, 0, ours)
        with pytest.raises(OSError, match="certificate"):
            joining.result(10)


def _pair() -> tuple[socket.socket, socket.socket]:
    """Return both ends of a connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        here = socket.create_connection(listener.getsockname()[:2], 10)
        there, _ = listener.accept()
    return here, there
