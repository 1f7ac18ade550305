"""Processes that Ray places and starts, joined in a mesh with the one that starts them.

Each is a Ray actor that carries what lives in it: ``ray list actors`` shows the classes of its
actors and their names, in a namespace of the run. Ray places the processes and watches over them;
what they send each other goes straight from one to the other. A call by way of Ray takes a
millisecond here and a payload by way of its object store several; down a connection of their own it
is a tenth.
"""

from __future__ import annotations

import gc
import os
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from ray.exceptions import GetTimeoutError, RayError, RayTaskError
from ray.util import get_node_ip_address

from actors.hosting.imports import leave_out_unused
from actors.hosting.links import Address, Secrets
from actors.hosting.mesh import Door, MemberLostError, Mesh, join_last
from actors.hosting.process_memory import forget_peak, keep_freed_memory
from actors.hosting.processes import Label, RayUnavailableError
from actors.hosting.ray_cluster import ClusterHead, ray
from actors.protocol import ActorError
from joins.errors import JoinsimError

_START_S = 60.0
_LOOK_S = 2.0
"""How long Ray may take to report what became of a process; a cluster that is gone reports nothing.
Also how often to look for the head while nothing arrives."""
_NAMESPACE_BYTES = 4
SILENCE_S = 60.0
"""For so long a process may give no sign of life, unless a run says otherwise."""

Server = Callable[..., None]
"""An importable function that serves as a member of a mesh, its first argument."""


class ProcessLostError(RayUnavailableError):
    """A process of a run is gone, for no known fault of an actor: a new one can take its place."""


class _RayProcess:
    """One process, as a Ray actor; every label has a subclass of its own (`_labelled`)."""

    def __init__(self) -> None:
        leave_out_unused()
        keep_freed_memory()
        self._mesh: Mesh | None = None
        head = ClusterHead(ray.get_runtime_context().gcs_address)
        threading.Thread(target=self._leave_when_alone, args=(head,), daemon=True).start()

    def listen(self) -> Address:
        self._mesh = None
        forget_peak()
        self._door = Door(get_node_ip_address())
        return self._door.address

    def join(self, *arguments: Any) -> None:
        self._mesh = self._door.join(*arguments)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return function(*arguments)

    def serve(self, server: Server, *arguments: Any) -> None:
        assert self._mesh
        # What is loaded by now stays: to look through it for garbage takes 70 ms, amid a run.
        gc.freeze()
        # Whatever happens, the others must see that nobody serves here any more. A member that
        # misses another has no error of its own: that one has, or the driver is done.
        with self._mesh, suppress(MemberLostError):
            server(self._mesh, *arguments)
        gc.collect()  # what this run left, before the next one's clock starts

    def _has_driver(self) -> bool:
        mesh = self._mesh  # once: `listen` drops it in another thread
        return mesh is not None and mesh.has(mesh.driver)

    def _leave_when_alone(self, head: ClusterHead) -> None:
        head.wait_until_alone(self._has_driver)
        # Ray ends actors by way of the head, which is gone, and an exception would end this thread
        # alone.
        os._exit(1)


def _labelled(kind: str) -> type[_RayProcess]:
    """Return the class of a process that Ray lists as *kind*."""
    return type(kind, (_RayProcess,), {})


_idle: tuple[Any, Any, str, list[Any]] | None = None
"""The node of this process, and what was wanted, namespace and processes of a run that has ended
here; they wait for one that wants the same. Only one run's: all cores of the cluster may be theirs,
and other ones would wait for them."""


def _take_idle(wanted: Any) -> tuple[str, list[Any]] | None:
    """Return namespace and processes of a run that *wanted* the same; end those of any other."""
    global _idle
    idle, _idle = _idle, None
    if idle is None or idle[0] != ray.get_runtime_context().get_node_id():
        return None  # or Ray was stopped since, and they with it
    _, started_for, namespace, processes = idle
    if wanted == started_for:
        return namespace, processes
    _end(processes)
    return None


class RayProcesses:
    """Processes spread over the nodes of the cluster; a context manager that ends them.

    Ray must be up (`actors.hosting.ray_cluster`).

    Parameters
    ----------
    labels
        How each process is listed.
    run
        Begins the namespace that they are listed in, which no other run has.
    cores
        Of the cluster, reserved for each.
    silence_s
        For so long a process may give no sign of life, or take nothing of what is sent to it. It
        gives one every second, also while it compiles; not while it is stopped, or in a kernel that
        lets no other thread run.
    encrypt
        Encrypt what processes on different machines send each other.
    reuse
        Take those of a run before that wanted the same, and leave them for the next one.

    Attributes
    ----------
    count
        How many they are; they are the first members of the mesh.
    mesh
        Of the processes and this one, which is the last member.
    namespace
        Ray's namespace that they are listed in.

    Raises
    ------
    RayUnavailableError
        When the cluster has no room for them, its head is gone, or they cannot be reached from
        here.
    """

    def __init__(
        self, labels: Sequence[Label], *, run: str = "joinsim", cores: float = 1,
        silence_s: float = SILENCE_S, encrypt: bool = False, reuse: bool = False,
    ) -> None:  # fmt: skip
        self.count = len(labels)
        self._run, self._cores = run, cores
        self._wanted = (run, tuple(labels), cores) if reuse else None
        self._serving: list[Any] = []
        self._labels, self._silence_s, self._encrypt = labels, silence_s, encrypt
        self._looked_s = time.monotonic()
        self._head = ClusterHead(ray.get_runtime_context().gcs_address)
        if not ray.util.client.ray.is_connected():
            self._head.wait()  # without it Ray would end this process after a minute
        idle = _take_idle(self._wanted)
        self.namespace, self._processes = idle or _start(run, labels, cores)
        try:
            try:
                self.mesh = self._join()
            except ProcessLostError:
                if not idle:
                    raise
                _end(self._processes)  # one was killed while they waited
                self.namespace, self._processes = _start(run, labels, cores)
                self.mesh = self._join()
        except BaseException:
            _end(self._processes)
            raise

    def _join(self) -> Mesh:
        shared = Secrets.new(encrypt=self._encrypt)
        try:
            addresses = self._get([p.listen.remote() for p in self._processes])
            joined = [
                process.join.remote(member, addresses, self.count + 1, shared)
                for member, process in enumerate(self._processes)
            ]
            mesh = join_last(addresses, shared, send_limit_s=self._silence_s)
            self._get(joined)
        except GetTimeoutError:
            cores = int(ray.cluster_resources().get("CPU", 0))
            raise RayUnavailableError(
                f"Ray did not start {self.count} processes within {_START_S:.0f} s; "
                f"the cluster has {cores} cores in all. Take fewer processes, or wait until "
                "others are done"
            ) from None
        except RayError as error:
            raise ProcessLostError(f"Ray could not start a process: {error}") from None
        except OSError as error:
            hosts = ", ".join(sorted({host for host, _ in addresses}))
            raise RayUnavailableError(
                f"the processes on {hosts} cannot be reached from here ({error}). Start the run "
                "inside the cluster: ray job submit --working-dir . -- joinsim run ..."
            ) from None
        return mesh

    def _get(self, calls: list[Any]) -> list[Any]:
        """Return what *calls* return, as `ray.get` does, in the time that a start may take."""
        until = time.monotonic() + _START_S
        while True:
            self._head.look()
            try:
                answers: list[Any] = ray.get(calls, timeout=_LOOK_S)
                return answers
            except GetTimeoutError:
                if time.monotonic() > until:
                    raise

    def __enter__(self) -> RayProcesses:
        """Return the processes themselves."""
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        """End the processes, or leave them for the next run."""
        with self.mesh:
            if self._wanted and failure is None:
                global _idle
                node = ray.get_runtime_context().get_node_id()
                _idle = node, self._wanted, self.namespace, self._processes
            else:
                _end(self._processes)

    def restart(self) -> None:
        """End all processes and start others in their place, which serve nobody yet."""
        with self.mesh:
            _end(self._processes)
        self.namespace, self._processes = _start(self._run, self._labels, self._cores)
        self._serving = []
        self.mesh = self._join()

    def everywhere(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Call an importable *function* in every process, side by side; return what they return.

        Only while they do not serve. Raise as `receive` does.
        """
        calls = [process.call.remote(function, *arguments) for process in self._processes]
        while len(ray.wait(calls, num_returns=self.count, timeout=_LOOK_S)[0]) < self.count:
            self._look()
            if self.mesh.waiting:
                self.receive()  # raises: before they serve, they only send that they are gone
        try:
            answers: list[Any] = ray.get(calls)
            return answers
        except RayTaskError as error:
            raise _cause(error) from None
        except RayError as error:
            raise ProcessLostError(f"a process of the Ray backend died: {error}") from None

    def serve(self, server: Server, *arguments: Any) -> None:
        """Have every process run *server* on its mesh, with *arguments*; once only."""
        self._serving = [p.serve.remote(server, *arguments) for p in self._processes]

    def receive(self, timeout_s: float | None = None) -> tuple[int, Any] | None:
        """Return the number of a process and the next frame it sent here; None if none in time.

        Raise :exc:`ActorError` when an actor in a process raised, and
        :exc:`RayUnavailableError` when a process is gone, or the head of the cluster.
        """
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            self._look()
            left_s = _LOOK_S if until is None else until - time.monotonic()
            try:
                received = self.mesh.receive(max(0.0, min(left_s, _LOOK_S)))
            except MemberLostError as lost:
                raise self._reason(lost) from None
            if received is not None or left_s <= 0:
                return received

    def send(self, process: int, value: Any) -> None:
        """Send *value* to a process; raise as `receive` does."""
        try:
            self.mesh.send(process, value)
        except MemberLostError as lost:
            raise self._reason(lost) from None

    def _look(self) -> None:
        """Look whether the head and all processes are alive, unless that was just done.

        Raise :exc:`RayUnavailableError` naming the one that is not. A process that is silent is as
        good as lost: whoever starts others in its place ends it (`restart`).
        """
        self._head.look()
        now = time.monotonic()
        since_s = now - self._looked_s
        if since_s < _LOOK_S:
            return
        self._looked_s = now
        if since_s > 2 * _LOOK_S:
            return  # this process was away itself, and what came meanwhile has not been read
        for member, silent_s in self.mesh.silent_s().items():
            if silent_s > self._silence_s:
                raise ProcessLostError(
                    f"process {member} of the Ray backend, {self._labels[member].name}, has given "
                    f"no sign of life for {silent_s:.0f} s: it is stopped, or its machine hangs. "
                    "No process of this run is left; start it again, and if it is only slow, with "
                    "a longer silence"
                )

    def _reason(self, lost: MemberLostError) -> Exception:
        """Return why a process is gone: an actor's error in any process, or the loss itself."""
        ended, _ = ray.wait(self._serving, num_returns=len(self._serving), timeout=_LOOK_S)
        for one in ended:
            try:
                ray.get(one)
            except RayTaskError as error:
                return _cause(error)
            except RayError:
                pass  # the process itself is gone
        return ProcessLostError(
            f"process {lost.member} of the Ray backend is gone: it was killed (out of memory?) or "
            "stopped, or its node or the whole cluster went away. No process of this run is left; "
            "start it again"
        )


def _start(run: str, labels: Sequence[Label], cores: float) -> tuple[str, list[Any]]:
    """Return a namespace of its own, and the processes that Ray starts in it."""
    namespace = f"{run}-{secrets.token_hex(_NAMESPACE_BYTES)}"
    remote = ray.remote(num_cpus=cores, scheduling_strategy="SPREAD")
    return namespace, [
        remote(_labelled(label.kind)).options(name=label.name, namespace=namespace).remote()
        for label in labels
    ]


def _end(processes: Sequence[Any]) -> None:
    for process in processes:
        with suppress(RayError):  # gone with its node, or the whole cluster
            ray.kill(process)  # by force, after a while, if it is stopped


def _cause(error: RayTaskError) -> Exception:
    """Return the actor's own error if the user can fix it, else an :exc:`ActorError`."""
    cause = error.cause
    return cause if isinstance(cause, JoinsimError) else ActorError(str(cause))
