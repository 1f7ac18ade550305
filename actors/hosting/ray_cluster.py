"""Starting, reaching and stopping Ray, and noticing that the head of its cluster is gone.

Together with `ray_processes` the only user of Ray.

Ray ends a driver that misses the head for a minute from within, whatever it is doing, and nothing
of ours is called then; the processes it started stay until their nodes end as well. So
`ClusterHead` tests whether it is there, to stop before that and report why. A head that is started
again meanwhile is the same to Ray, and so it is here. A head that hangs looks like a busy one: the
test is whether its machine takes a connection for it.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from pydantic import PositiveInt

# Read by Ray when it is imported: nothing is reported to anybody, and no warning hides our output.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
# Off, Ray takes the loopback address for its own, and then listens on no other.
os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
# On, SIGTERM aborts a process that uses Ray, whatever handles it in Python.
os.environ.setdefault("RAY_DISABLE_FAILURE_SIGNAL_HANDLER", "1")

from actors.hosting import ray_agent
from actors.hosting.descendants import ending_with
from actors.hosting.processes import RayUnavailableError, check_reachable
from joins.threads import usable_cores

try:
    import ray as ray  # other modules import it from here, so that these settings apply
except ModuleNotFoundError:
    raise RayUnavailableError(
        "Ray is not installed: it is an extra, pip install 'joinsim[ray]'"
    ) from None

_REPOSITORY = Path(__file__).resolve().parents[2]
_PACKAGES = ("joinsim", "scenarios", "spark_bridge", "topologies", "netsim", "actors", "joins")
SHIPPED = (
    {
        "working_dir": str(_REPOSITORY),
        "excludes": [".git", ".venv", "runs", "prepared", ".hypothesis", ".mypy_cache"],
    }
    if (_REPOSITORY / "pyproject.toml").is_file()
    else {"py_modules": [str(_REPOSITORY / name) for name in _PACKAGES]}
)
"""Ray's ``runtime_env``: ships the checkout, or our packages where they are installed beside all
others."""

JOB = "RAY_JOB_CONFIG_JSON_ENV_VAR"
"""Set by `ray job submit`, which has shipped the repository itself and allows nobody else to."""
_OBJECT_STORE_BYTES = 2 * 2**30
_SYSTEM_CONFIG = {"kill_worker_timeout_milliseconds": 1000}
"""How Ray ends a process that is stopped, and heeds nothing else: by force, after a second in the
place of five. Until then no other has its place."""
_AGENT_COMMAND = "_build_python_executable_command_memory_profileable"
"""Ray's function that returns how its agents are started, before their own arguments."""


_entered = False


@contextmanager
def ray_cluster(
    address: str | None = None, *, processes: PositiveInt | None = None
) -> Iterator[bool]:
    r"""Provide Ray during a ``with``: a running cluster, or one of our own on this machine.

    Inside another `ray_cluster`, or where Ray is running in this process already, that one serves.
    So several runs inside one start Ray once, and those that want the same processes one after the
    other find them started, with all that they have compiled. Yield whether runs may leave their
    processes for later ones: whether another `ray_cluster` is around this one.

    A cluster that is started here is for joinsim's runs: it has none of Ray's agents, without which
    tasks of your own that name a ``runtime_env`` do not start. Start Ray yourself for those.

    Examples
    --------
    >>> import joinsim as js
    >>> streams = {"trips": js.synthetic(200, {"fare": "uniform(1, 9)"})}
    >>> query = "SELECT * FROM trips WHERE trips.fare1 < trips.fare2 " \
    ...     "WINDOW AS (SLIDE INTERVAL '10' ON '50')"
    >>> with js.ray_cluster():
    ...     runs = [js.run(query, streams, backend="ray", seed=seed) for seed in (1, 2)]
    >>> [run.verdict.exact for run in runs]
    [True, True]

    Parameters
    ----------
    address
        ``HOST:PORT``, ``ray://HOST:PORT`` or ``auto``; None starts Ray here, listening on the
        loopback interface only, and stops it at the end.
    processes
        How many processes will be wanted at the same time; None: as many as there are cores.

    Raises
    ------
    RayUnavailableError
        When nothing answers at *address*, or Ray cannot start.
    """
    global _entered
    if ray.is_initialized():
        yield _entered
        return
    wanted = processes or usable_cores()
    with ending_with(ray.shutdown, start=lambda: _start(address, wanted)):
        _entered = True
        try:
            yield False
        finally:
            _entered = False


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Replace an attribute, as `unittest.mock` does, which takes every process 0.15 s to import."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextmanager
def _without_side_effects() -> Iterator[None]:
    """Make Ray leave SIGTERM and stdout alone, and start only processes that runs need.

    By SIGTERM it would end its cluster below those that are talking to it, and then the whole
    process. Onto stdout it prints that a process has died, whatever becomes of that.

    A cluster of our own neither grows nor copies logs nor has pages nor installs packages. Ray
    starts a process for each of these even so, takes more processor time for them than for all
    else, and waits for some; its node ends without those that `ray_agent` replaces.
    """
    utils, worker, services = ray._private.utils, ray._private.worker, ray._private.services
    node, agent = ray._private.node.Node, ray_agent.__file__
    with (
        _replaced(utils, "set_sigterm_handler", lambda handler: None),
        _replaced(worker, "listen_error_messages", lambda of, stopped: None),
        _replaced(node, "start_monitor", lambda node: None),
        _replaced(node, "start_log_monitor", lambda node: None),
        _replaced(node, "start_api_server", lambda node, **options: None),
        _replaced(services, "get_node", partial(_get_registered_node, services.get_node)),
        _replaced(services, _AGENT_COMMAND, lambda *_: [sys.executable, "-IS", agent]),
    ):
        yield


def _get_registered_node(get_node: Callable[[str, str], Any], address: str, node_id: str) -> Any:
    """Call *get_node* once that node is known: where it is not yet, Ray sleeps for a second."""
    head = ray._raylet.GcsClient(address=address)
    until = time.monotonic() + _REGISTERED_S
    with suppress(ray.exceptions.RpcError):  # Ray itself reports what is wrong
        while time.monotonic() < until:
            if any(known.hex() == node_id for known in head.get_all_node_info(timeout=_CONNECT_S)):
                break
            time.sleep(_LOOK_FOR_NODE_S)
    return get_node(address, node_id)


def private_token() -> None:
    """Make the user's token file for Ray's clusters readable by the user alone.

    Ray creates a missing one readable by everybody on the machine.
    """
    if any(name.startswith("RAY_AUTH_") for name in os.environ):
        return  # it is somewhere else, or not wanted
    with suppress(OSError, RuntimeError):  # no home, or one to read: Ray says so if it matters
        path = Path.home() / ".ray" / "auth_token"
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            with NamedTemporaryFile("w", dir=path.parent) as made:  # for its owner alone
                made.write(secrets.token_hex(32))
                made.flush()
                os.link(made.name, path)  # whole or not at all, and never in place of another's
        path.chmod(0o600)


@_without_side_effects()
def _start(address: str | None, processes: int) -> None:
    try:
        if address is None:
            private_token()
            ray.init(
                address="local",  # without it Ray joins whatever cluster it finds on the machine
                num_cpus=processes,
                include_dashboard=False,
                _node_ip_address="127.0.0.1",
                object_store_memory=_OBJECT_STORE_BYTES,
                log_to_driver=False,
                logging_level=logging.ERROR,
                configure_logging=True,
                _system_config=_SYSTEM_CONFIG,
            )
        else:
            check_reachable(address)
            ray.init(
                address=address,
                runtime_env=None if JOB in os.environ else SHIPPED,
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        where = f"at {address}" if address else "on this machine"
        reason = str(error).splitlines()[0]
        raise RayUnavailableError(
            f"no Ray {where}: {reason}. The address is HOST:PORT of a running cluster "
            "(`ray start --head` prints it); leave it out to start Ray here"
        ) from None


_LOOK_S = 2.0
_LOOK_FOR_NODE_S = 0.02
_REGISTERED_S = 30.0
_CONNECT_S = 1.0
_GONE_S = 12.0
"""For so long a head may be missing: one that is started again is back by then, and what stops for
it has stopped within half a minute."""
_LOOKS_ALONE = 3
"""So many times in turn a process that nobody needs must miss the head. It may be less patient than
its driver, which has gone before it because it missed the head."""


class ClusterHead:
    """The head at *address*, ``HOST:PORT``, looked at now and then."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._seen = self._looked = time.monotonic()
        # From outside the cluster, through Ray's proxy, it may never be seen: nobody misses it.
        self._in_reach = self.answers()

    def answers(self) -> bool:
        """Return whether it takes a connection now."""
        host, _, port = self.address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()
        except OSError:
            return False
        return True

    def look(self) -> None:
        """Look whether it is there, unless that was just done.

        Raise :exc:`RayUnavailableError` when it has been missing for too long.
        """
        now = time.monotonic()
        if not self._in_reach or now - self._looked < _LOOK_S:
            return
        self._looked = now
        if self.answers():
            self._seen = now
        elif now - self._seen > _GONE_S:
            raise RayUnavailableError(
                f"the head of the Ray cluster at {self.address} is gone: it has not answered for "
                f"{now - self._seen:.0f} s. No process of this run is left; start it again when "
                "there is a cluster"
            )

    def wait(self) -> None:
        """Return when it is there; raise :exc:`RayUnavailableError` when it has been away too long.

        For a process that belongs to the cluster, and so is in reach of the head.
        """
        self._in_reach = True
        while not self.answers():
            self.look()
            time.sleep(_LOOK_S)

    def wait_until_alone(self, needed: Callable[[], bool]) -> None:
        """Return when this process is not *needed* and the head is not there to end it."""
        missed = 0
        while missed < _LOOKS_ALONE:
            time.sleep(_LOOK_S)
            missed = 0 if needed() or self.answers() else missed + 1
