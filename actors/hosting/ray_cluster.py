"""Starting, reaching and stopping Ray; together with `ray_processes` the only user of Ray."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Read by Ray when it is imported: nothing is reported to anybody, and no warning hides our output.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
# Off, Ray takes the loopback address for its own, and then listens on no other.
os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
# On, SIGTERM aborts a process that uses Ray, whatever handles it in Python.
os.environ.setdefault("RAY_DISABLE_FAILURE_SIGNAL_HANDLER", "1")

import ray

from actors.hosting.descendants import ending_with
from actors.hosting.errors import RayUnavailableError

_REPOSITORY = Path(__file__).resolve().parents[2]
SHIPPED = {
    "working_dir": str(_REPOSITORY),
    "excludes": [".git", ".venv", "runs", "prepared", "data", ".hypothesis", ".mypy_cache"],
}
"""What a cluster is to have of us, as Ray's ``runtime_env``."""

JOB = "RAY_JOB_CONFIG_JSON_ENV_VAR"
"""Set by `ray job submit`, which has shipped the repository itself and lets nobody do it again."""
_OBJECT_STORE_BYTES = 2 * 2**30


@contextmanager
def ray_cluster(address: str | None = None, *, processes: int) -> Iterator[None]:
    """Have Ray for the time of a ``with``: a running cluster, or one of our own on this machine.

    Inside another `ray_cluster`, or where Ray is running in this process already, that one serves.

    Parameters
    ----------
    address
        ``HOST:PORT``, ``ray://HOST:PORT`` or ``auto``; None starts Ray here, listening on the
        loopback interface only, and stops it at the end.
    processes
        How many processes will be wanted at the same time.

    Raises
    ------
    RayUnavailableError
        When nothing answers at *address*, or Ray cannot start.
    """
    if ray.is_initialized():
        yield
        return
    with ending_with(ray.shutdown, start=lambda: _start(address, processes)):
        yield


@contextmanager
def _sigterm_as_it_is() -> Iterator[None]:
    """Have Ray leave SIGTERM alone.

    It would end its cluster below those that are talking to it, and then the whole process.
    """
    utils = ray._private.utils
    theirs, utils.set_sigterm_handler = utils.set_sigterm_handler, lambda handler: None
    try:
        yield
    finally:
        utils.set_sigterm_handler = theirs


@_sigterm_as_it_is()
def _start(address: str | None, processes: int) -> None:
    try:
        if address is None:
            ray.init(
                address="local",  # without it Ray joins whatever cluster it finds on the machine
                num_cpus=processes,
                include_dashboard=False,
                _node_ip_address="127.0.0.1",
                object_store_memory=_OBJECT_STORE_BYTES,
                log_to_driver=False,
                logging_level=logging.ERROR,
                configure_logging=True,
            )
        else:
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
            f"no Ray {where}: {reason}. Give --address HOST:PORT of a running cluster "
            "(`ray start --head` prints it), or leave it out to start Ray here"
        ) from None
