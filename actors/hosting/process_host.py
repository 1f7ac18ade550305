"""The host that runs actors in other processes, in virtual time: both of its ends.

`ProcessHost` is on the side of virtual time, which orders the messages. A process gets what has
arrived for it as soon as it has nothing else to do; the rest goes out in one frame when the kernel
must wait for a reply. Then the processes work side by side.

`Shard` is a process's share of the actors. Payloads go straight from the process that made them to
those that will read them, ahead of any request.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from actors.hosting.inline import Cell
from actors.hosting.mesh import Mesh
from actors.hosting.process_memory import peak_bytes
from actors.hosting.processes import Processes
from actors.protocol import ActorError, ActorSpec, Reply, Sent, Wiring
from actors.serialisation import from_bytes, to_array
from joins.work import NO_WORK, Step, Work

Handle = int
"""How a payload is named: its serial in the process that made it, and above that the process."""

_SERIAL_BITS = 44

Request = list[Any]
"""Ticket, actor, sender, port, payload (a `Handle`, None, or bytes that were kept), virtual time.
Requests and answers are lists of plain values: so many of them travel that the records they stand
for would take longer. A request without a sender asks for a service of the process itself: the port
is the service, as `ProcessHost` names it, the payload its argument, and its result is the one of
the answer."""

Answer = list[Any]
"""Ticket, the peak memory of the process in bytes, and what followed from the request: work, sends,
timers, results, steps with their work, and the words of a failure."""


@dataclass(slots=True)
class _Process:
    """What one process is to receive next, and how many replies it owes."""

    pending: list[Request] = field(default_factory=list)
    owed: int = 0
    peak_bytes: int = 0


@dataclass(eq=False)
class ProcessHost:
    """Runs actors in *processes*, which serve this host and no other."""

    processes: Processes
    """Where they run."""
    specs: Mapping[str, ActorSpec]
    wiring: Wiring
    seed: int
    """As for every host."""
    _: KW_ONLY
    homes: Mapping[str, int]
    """Actor name to the number of its process, counted from 0."""

    def __post_init__(self) -> None:
        self._replies: dict[int, Reply] = {}
        self._calls = 0
        self._states = [_Process() for _ in range(self.processes.count)]
        self.processes.serve(
            serve, dict(self.homes), dict(self.specs), dict(self.wiring), self.seed
        )

    def submit(
        self, ticket: int, actor: str, sender: str, port: str, handle: Any, now: int
    ) -> Reply | None:
        """Send the message to its actor's process if that is idle, else with the next frame."""
        home = self.homes[actor]
        state = self._states[home]
        state.pending.append([ticket, actor, sender, port, handle, now])
        if not state.owed:
            self._flush(home)
        return None

    def reply(self, ticket: int) -> Reply:
        """Return the reply, waiting for it; meanwhile every process gets what has arrived for it.

        Raise what the processes raise when one of them is gone.
        """
        if ticket not in self._replies:
            for home, state in enumerate(self._states):
                if state.pending:
                    self._flush(home)
        while ticket not in self._replies:
            self._collect()
        return self._replies.pop(ticket)

    def snapshot(self, actor: str) -> np.ndarray:
        """Return the state of *actor* after all messages submitted to it, as bytes."""
        state: np.ndarray = self._call(self.homes[actor], "snapshot", actor)
        return state

    def restore(self, actor: str, state: np.ndarray | None) -> None:
        """Replace *actor* by a new one in *state*; None: in its first state."""
        self._call(self.homes[actor], "restore", actor, state)

    def keep(self, actor: str, handle: Any) -> Any:
        """Return the payload itself as bytes, to be submitted in its place."""
        if isinstance(handle, np.ndarray):
            return handle
        return self._call(self.homes[actor], "keep", actor, handle)

    def forget(self) -> None:
        """Drop all replies that were not fetched, and payloads that were not submitted."""
        for state in self._states:
            state.pending = []
        while any(state.owed for state in self._states):
            self._collect()
        self._replies.clear()
        for home in range(len(self._states)):
            self._call(home, "forget")

    def _call(self, home: int, service: str, actor: str = "", argument: Any = None) -> Any:
        """Call one of a process's services and return the result."""
        self._calls += 1
        ticket = -self._calls  # those of messages count up from 0
        self._states[home].pending.append([ticket, actor, None, service, argument, 0])
        return self.reply(ticket).emitted[0]

    def peak_bytes(self) -> list[int]:
        """Return each process's peak memory in bytes, as of its last reply."""
        return [state.peak_bytes for state in self._states]

    def _flush(self, home: int) -> None:
        state = self._states[home]
        self.processes.send(home, state.pending)
        state.owed += len(state.pending)
        state.pending = []

    def _collect(self) -> None:
        received = self.processes.receive()
        assert received is not None
        home, answer = received
        state = self._states[home]
        state.owed -= 1
        ticket, self._replies[ticket], state.peak_bytes = read_answer(answer)


def read_answer(answer: Answer) -> tuple[int, Reply, int]:
    """Return an answer's ticket, its reply, and the peak memory."""
    ticket, peak, work, sends, timers, emitted, steps, words = answer
    sent = [
        Sent(port, tuple(receivers), handle, nbytes, rows, (first, last))
        for port, receivers, handle, nbytes, rows, first, last in sends
    ]
    timed = [(at, name) for at, name in timers]
    worked = [(Step(*step), Work(*of_step)) for step, of_step in steps]
    failure = ActorError(words) if words else None
    reply = Reply(Work(*work) if work else NO_WORK, sent, timed, emitted, worked, failure)
    return ticket, reply, peak


def write_answer(ticket: int, reply: Reply) -> Answer:
    """Return what `read_answer` reads."""
    work = None if reply.work is NO_WORK else list(reply.work)
    sends = [
        [sent.port, list(sent.receivers), sent.handle, sent.nbytes, sent.rows, *sent.span]
        for sent in reply.sends
    ]
    timers = list(map(list, reply.timers))
    steps = [[list(step), list(of_step)] for step, of_step in reply.steps]
    words = None if reply.failure is None else str(reply.failure)
    return [ticket, peak_bytes(), work, sends, timers, reply.emitted, steps, words]


def serve(mesh: Mesh, *system: Any) -> None:
    """Run the actors whose home this member of *mesh* is, until a member leaves it.

    The driver has the virtual time; *system* are the other parameters of `Shard`.
    """
    Shard(mesh, *system).run()


class Shard:
    """Runs the actors whose home is this member of *mesh*; *homes* is actor name to member."""

    def __init__(
        self,
        mesh: Mesh,
        homes: Mapping[str, int],
        specs: Mapping[str, ActorSpec],
        wiring: Wiring,
        seed: int,
    ) -> None:
        self._mesh, self._homes = mesh, homes
        self._cells = {
            name: Cell(name, spec, wiring, seed)
            for name, spec in specs.items()
            if homes[name] == mesh.member
        }
        self._serial = 0
        self._requests: deque[Sequence[Request]] = deque()
        self._unread: dict[Handle, list[Any]] = {}
        """Payload, and how many actors here have yet to read it."""

    def run(self) -> None:
        """Serve requests in the order they come; raise :exc:`MemberLostError` at the end."""
        while True:
            while not self._requests:
                self._receive_frame()
            for request in self._requests.popleft():
                self._serve(request)

    def _receive_frame(self) -> None:
        received = self._mesh.receive()
        assert received is not None
        peer, value = received
        if peer == self._mesh.driver:
            self._requests.append(value)
            return
        for serial, payload, readers in value:
            self._unread[_handle(peer, serial)] = [payload, readers]

    def _serve(self, request: Request) -> None:
        ticket, actor, sender, port, handle, now = request
        if sender is None:
            reply = Reply(emitted=[self._do(port, actor, handle)])
            self._mesh.send(self._mesh.driver, write_answer(ticket, reply))
            return
        try:
            reply = self._cells[actor].deliver(sender, port, self._open(handle), now)
        except ActorError as error:
            reply = Reply(failure=error)
        parcels: dict[int, list[list[Any]]] = {}
        for sent in reply.sends:
            self._pack(sent, parcels)
        self._mesh.send(self._mesh.driver, write_answer(ticket, reply))
        for home, parcel in parcels.items():
            self._mesh.send(home, parcel)

    def _do(self, service: str, actor: str, argument: Any) -> np.ndarray | None:
        match service:
            case "snapshot":
                return self._cells[actor].snapshot()
            case "restore":
                self._cells[actor].restore(argument)
            case "keep":
                return to_array(self._await_payload(argument)[0])
            case "forget":
                # What is still on its way from another process stays unread: it is little.
                self._unread.clear()
        return None

    def _await_payload(self, handle: Handle) -> list[Any]:
        while handle not in self._unread:
            self._receive_frame()
        return self._unread[handle]

    def _open(self, handle: Handle | np.ndarray | None) -> Any:
        if handle is None:
            return None
        if isinstance(handle, np.ndarray):
            return from_bytes(handle.data)
        unread = self._await_payload(handle)
        unread[1] -= 1
        if not unread[1]:
            del self._unread[handle]
        return unread[0]

    def _pack(self, sent: Sent, parcels: dict[int, list[list[Any]]]) -> None:
        """Put what is *sent* where it will be read, and its name in its place."""
        self._serial += 1
        homes = [self._homes[receiver] for receiver in sent.receivers]
        here = self._mesh.member
        for home in dict.fromkeys(homes):
            if home == here:
                self._unread[_handle(here, self._serial)] = [sent.handle, homes.count(home)]
            else:
                parcels.setdefault(home, []).append([self._serial, sent.handle, homes.count(home)])
        sent.handle = _handle(here, self._serial)


def _handle(process: int, serial: int) -> Handle:
    return process << _SERIAL_BITS | serial
