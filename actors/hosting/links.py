"""A connection between two processes of a run: who may have one, and what goes down it.

Who connects proves that it knows the run's secret, and so does who is connected to, before anything
else is read: each sends a number that nobody could foresee, and the other answers with an HMAC of
both numbers and of both members' places in the run. The secret itself never travels here; the
processes have it from Ray. What comes first is of fixed size, and a stranger that is silent or
talks nonsense has `GREETING_S` seconds.

Between machines a connection can be encrypted: TLS 1.3, with a certificate that the run made for
itself and that both ends must show. Within a machine it is not.

A frame is a length and so many bytes. A length of zero is a sign of life, and no frame.
"""

from __future__ import annotations

import hmac
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from secrets import token_bytes
from typing import Any

import numpy as np

from actors.serialisation import to_parts
from joins.errors import JoinsimError

Address = tuple[str, int]
"""Host and port."""

GREETING_S = 20.0
"""For so long each end waits for the other to prove itself."""

_TOKEN_BYTES = 32
_NONCE = struct.Struct("<32s")
_PROOF = struct.Struct("<32s")
_INTRODUCTION = struct.Struct("<I32s32s")  # the member's number, its nonce, its proof
_LENGTH = struct.Struct("<Q")
_TIMEVAL = struct.Struct("@ll")  # seconds and microseconds, as the system has them
_FRAME_BYTES = 2**32
_BUFFER_BYTES = 4 * 2**20
_SMALL_BYTES = 2**14
"""What is smaller is sent as one piece: copying it takes less than to list its parts."""
_READ_BYTES = 2**14
"""Frames that are this short together are read together."""
_PARTS_AT_ONCE = 512  # the system takes 1,024 at most
_TLS_BYTES = 2**18
_CERTIFICATE = "-----BEGIN CERTIFICATE-----"
_SILENT_S = 5
_SILENCES = 3
"""A machine that is gone sends nothing: after this many unanswered probes, so many seconds apart,
its connections are closed."""


@dataclass(frozen=True, slots=True)
class Secrets:
    """What the members of one run share, and nobody else knows."""

    token: bytes
    """What a member proves to know."""
    certificate: str | None = None
    """PEM, of a key and its certificate, with which members on different machines encrypt what they
    send each other; None if they are not to."""

    @classmethod
    def new(cls, *, encrypt: bool) -> Secrets:
        """Return secrets for one run; raise :exc:`JoinsimError` when no certificate can be made."""
        return cls(token_bytes(_TOKEN_BYTES), _certificate() if encrypt else None)


def _certificate() -> str:
    """Return a new key and its certificate, which nobody else has signed."""
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
    command += " -subj /CN=joinsim -days 30 -keyout - -out -"
    try:
        made = subprocess.run(command.split(), capture_output=True, text=True, timeout=60)
    except FileNotFoundError:
        raise JoinsimError(
            "encrypting needs the command openssl, which makes the certificate: install it, or "
            "leave encrypt out"
        ) from None
    if made.returncode:
        raise JoinsimError(f"openssl made no certificate: {made.stderr.strip().splitlines()[-1]}")
    return made.stdout


def greet(address: Address, peer: int, member: int, secrets: Secrets) -> ProcessLink:
    """Connect as *member* to member *peer* at *address*; both prove their identity.

    Raise :exc:`OSError` when the peer cannot be reached or fails to.
    """
    connection = socket.create_connection(address, GREETING_S)
    try:
        pipe = _pipe(connection, secrets, server=False)
        theirs = _read_struct(pipe, _NONCE)[0]
        mine = token_bytes(_NONCE.size)
        proofs = _proofs(secrets.token, peer, member, theirs, mine)
        pipe.sendall(_INTRODUCTION.pack(member, mine, proofs[0]))
        if not hmac.compare_digest(_read_struct(pipe, _PROOF)[0], proofs[1]):
            raise PermissionError("it is not part of this run")
        return ProcessLink(pipe)
    except BaseException as error:
        connection.close()
        if isinstance(error, EOFError):
            raise ConnectionResetError("it rejected this process's credentials") from None
        raise


def answer(connection: socket.socket, member: int, secrets: Secrets) -> tuple[int, ProcessLink]:
    """Accept a connection to *member*; both prove their identity. Return the peer's number.

    Raise :exc:`OSError` or :exc:`EOFError` when the peer is not of this run, or is silent.
    """
    connection.settimeout(GREETING_S)
    pipe = _pipe(connection, secrets, server=True)
    mine = token_bytes(_NONCE.size)
    pipe.sendall(mine)
    peer, theirs, proof = _read_struct(pipe, _INTRODUCTION)
    proofs = _proofs(secrets.token, member, peer, mine, theirs)
    if not hmac.compare_digest(proof, proofs[0]):
        raise PermissionError("it does not know the secret of this run")
    pipe.sendall(proofs[1])
    return peer, ProcessLink(pipe)


def _pipe(connection: socket.socket, secrets: Secrets, *, server: bool) -> Any:
    """Return *connection*, encrypted if it is to be and leads to another machine."""
    here, there = connection.getsockname()[0], connection.getpeername()[0]
    if secrets.certificate is None or here == there:
        return connection
    return _Encrypted(connection, secrets.certificate, server=server)


class _Encrypted:
    """A connection by TLS, with what `ProcessLink` uses of a socket.

    One thread reads and another writes, which OpenSSL forbids on one connection: so it encrypts in
    memory, under a lock, and the bytes are read and written outside of it.
    """

    def __init__(self, connection: socket.socket, certificate: str, *, server: bool) -> None:
        self._connection = connection
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = _tls(certificate, server=server)
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=server)
        self._lock = threading.Lock()
        self.settimeout, self.setsockopt = connection.settimeout, connection.setsockopt
        self.shutdown, self.close = connection.shutdown, connection.close
        done = False
        while not done:
            try:
                self._tls.do_handshake()
                done = True
            except ssl.SSLWantReadError:
                pass
            connection.sendall(self._outgoing.read())
            if not done and not self._more():
                raise EOFError("the other end has closed")

    def sendall(self, data: Any) -> None:
        rest = memoryview(data)
        while rest:
            with self._lock:
                self._tls.write(rest[:_TLS_BYTES])
                encrypted = self._outgoing.read()
            self._connection.sendall(encrypted)
            rest = rest[_TLS_BYTES:]

    def recv_into(self, room: memoryview) -> int:
        while True:
            with self._lock, suppress(ssl.SSLWantReadError):
                return self._tls.read(len(room), room)  # type: ignore[return-value]
            if not self._more():
                return 0

    def _more(self) -> bool:
        data = self._connection.recv(_TLS_BYTES)
        with self._lock:
            self._incoming.write(data)
        return bool(data)


def _tls(certificate: str, *, server: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # all members show the run's own certificate
    context.verify_mode = ssl.CERT_REQUIRED
    if server:
        context.num_tickets = 0  # nobody comes back
    context.load_verify_locations(cadata=certificate[certificate.index(_CERTIFICATE) :])
    with tempfile.NamedTemporaryFile("w") as file:  # for the owner alone
        file.write(certificate)
        file.flush()
        context.load_cert_chain(file.name)
    return context


def _proofs(token: bytes, door: int, guest: int, nonce: bytes, other: bytes) -> tuple[bytes, bytes]:
    """Return the proofs of member *guest* and of the member whose *door* it connects to."""
    said = struct.pack("<II", door, guest) + nonce + other
    first, second = (hmac.digest(token, who + said, "sha256") for who in (b"guest", b"door"))
    return first, second


def _read_struct(pipe: Any, layout: struct.Struct) -> tuple[Any, ...]:
    """Read a *layout*; the time limit is for all of its bytes together."""
    until = time.monotonic() + GREETING_S
    data = bytearray(layout.size)
    room = memoryview(data)
    while room:
        pipe.settimeout(max(0.001, until - time.monotonic()))
        room = room[_receive(pipe, room) :]
    return layout.unpack(data)


def _receive(pipe: Any, room: memoryview) -> int:
    """Read into *room* what has come; raise :exc:`EOFError` when the other end has closed."""
    got: int = pipe.recv_into(room)
    if not got:
        raise EOFError("the other end has closed")
    return got


class ProcessLink:
    """One connection, proven on both ends."""

    def __init__(self, pipe: Any) -> None:
        _prepare(pipe)
        self._pipe = pipe
        self._sending = threading.Lock()
        self._buffer = memoryview(bytearray(_READ_BYTES))
        self._read_to = self._filled = 0
        self.heard_s = time.monotonic()
        """When something last came, by the monotonic clock."""

    def limit_sending(self, limit_s: float) -> None:
        """Have `send` raise :exc:`TimeoutError` once the other end has taken nothing for so long.

        A process that is stopped takes nothing, while its machine keeps the connection up.
        """
        limit = _TIMEVAL.pack(*divmod(int(limit_s * 1_000_000), 1_000_000))
        self._pipe.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)

    def send(self, value: Any) -> None:
        """Send a value; raise :exc:`OSError` when the other end is gone."""
        parts = to_parts(value)
        length = sum(map(len, parts))
        if length > _FRAME_BYTES:
            raise ValueError(f"a frame of {length} bytes; {_FRAME_BYTES} at most can be sent")
        parts.insert(0, _LENGTH.pack(length))
        with self._sending:
            try:
                if length < _SMALL_BYTES:
                    self._pipe.sendall(b"".join(parts))
                else:
                    _send_all(self._pipe, parts)
            except BlockingIOError:
                self.close()  # a part of the frame may have been taken: no other can follow it
                raise TimeoutError("the other end takes nothing") from None

    def beat(self) -> None:
        """Send a sign of life, unless a frame is just being sent, which is one too."""
        if self._sending.acquire(blocking=False):
            try:
                self._pipe.sendall(_LENGTH.pack(0))
            finally:
                self._sending.release()

    def read(self) -> memoryview:
        """Wait for the next frame; raise :exc:`EOFError` when the other end has closed.

        Raise :exc:`ConnectionAbortedError` when its length is more than a frame may have.
        """
        length = 0
        while not length:
            while self._filled - self._read_to < _LENGTH.size:
                self._read_more()
            (length,) = _LENGTH.unpack_from(self._buffer, self._read_to)
            self._read_to += _LENGTH.size
        if length > _FRAME_BYTES:
            raise ConnectionAbortedError(f"a frame of {length} bytes")
        return self._read_exactly(length)

    def close(self) -> None:
        """Close the connection, for the other end to see."""
        with suppress(OSError):  # the other end was first
            self._pipe.shutdown(socket.SHUT_RDWR)
        self._pipe.close()

    def _read_more(self) -> None:
        """Read what has come, once the rest of the buffer is at its beginning."""
        left = self._buffer[self._read_to : self._filled]
        self._buffer[: len(left)] = bytes(left)
        self._read_to, self._filled = 0, len(left)
        self._filled += _receive(self._pipe, self._buffer[self._filled :])
        self.heard_s = time.monotonic()

    def _read_exactly(self, nbytes: int) -> memoryview:
        # Not a bytearray: that would be filled with zeros first, and its bytes begin anywhere.
        room = np.empty(-(-nbytes // 8), np.int64).data.cast("B")[:nbytes]
        filled = min(nbytes, self._filled - self._read_to)
        room[:filled] = self._buffer[self._read_to : self._read_to + filled]
        self._read_to += filled
        while filled < nbytes:
            filled += _receive(self._pipe, room[filled:])
            self.heard_s = time.monotonic()
        return room


def _prepare(link: Any) -> None:
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


def _send_all(pipe: Any, parts: Sequence[Any]) -> None:
    if isinstance(pipe, _Encrypted):
        small = bytearray()  # each call has its price
        for part in parts:
            if len(part) < _TLS_BYTES:
                small += part
            else:
                pipe.sendall(small)
                pipe.sendall(part)
                small.clear()
        pipe.sendall(small)
        return
    waiting = [memoryview(part) for part in parts if len(part)]
    begin = 0
    while begin < len(waiting):
        sent = pipe.sendmsg(waiting[begin : begin + _PARTS_AT_ONCE])
        while begin < len(waiting) and sent >= len(waiting[begin]):
            sent -= len(waiting[begin])
            begin += 1
        if sent:
            waiting[begin] = waiting[begin][sent:]
