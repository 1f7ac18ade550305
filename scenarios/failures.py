"""Failures as people see them: one message, never a traceback, never exit code 0."""

from __future__ import annotations

import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from actors.hosting.errors import RayUnavailableError
from joins.queries.query import QueryError
from netsim.network import NetworkError
from scenarios.run_directory import OutputError
from scenarios.scenario_files import ConfigError
from spark_bridge.errors import DataError, EngineUnavailable
from topologies import TopologyError

EXIT_PASS, EXIT_FAIL, EXIT_UNKNOWN, EXIT_STOPPED = range(4)

_FOR_PEOPLE = (
    ConfigError,
    DataError,
    NetworkError,
    OutputError,
    QueryError,
    RayUnavailableError,
    EngineUnavailable,
    TopologyError,
)


@contextmanager
def guarded() -> Iterator[None]:
    """Turn failures into a message on stderr and exit code 3.

    What a person can mend is said as it is; anything else is a fault of ours, and its traceback
    goes to a file.
    """
    try:
        yield
    except _FOR_PEOPLE as error:
        _say(str(error))
    except KeyboardInterrupt:
        _say("stopped")
    except Exception as error:  # the last net: a person never sees a traceback
        _say(f"{type(error).__name__}: {error}\nThe traceback is in {_keep_traceback()}")
    sys.exit(EXIT_STOPPED)


def _say(message: str) -> None:
    Console(stderr=True, soft_wrap=True).print(
        f"joinsim: {message}", style="bold red", markup=False, highlight=False
    )


def _keep_traceback() -> str:
    with tempfile.NamedTemporaryFile("w", prefix="joinsim-", suffix=".txt", delete=False) as file:
        traceback.print_exc(file=file)
    return file.name
