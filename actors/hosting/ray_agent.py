"""A replacement for the two agents that Ray starts beside every node of a cluster.

One serves figures to pages, the other installs what a ``runtime_env`` names. A cluster of our own
has no use for them; but its node waits for both, and they take more processor time than all else
that starts. Run as a script, with an agent's arguments, this file states that nobody listens on
their ports, and ends with the node. It imports nothing but Python's own.
"""

from __future__ import annotations

import os
import sys
import time

_PORTS = (
    "metrics_agent_port",
    "metrics_export_port",
    "dashboard_agent_listen_port",
    "runtime_env_agent_port",
)
_NOBODY = "-1"
_LOOK_S = 1.0


def state_ports(arguments: list[str]) -> None:
    """Write the files that the node waits for; whole, for it may read one at any time."""
    given = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    if "--node-id" not in given:
        return  # an older Ray, whose node waits for none
    for port in _PORTS:
        path = f"{given['--session-dir']}/{port}_{given['--node-id']}"
        with open(f"{path}.{os.getpid()}", "w") as file:
            file.write(_NOBODY)
        os.replace(file.name, path)


if __name__ == "__main__":
    node = os.getppid()
    state_ports(sys.argv[1:])
    while os.getppid() == node:
        time.sleep(_LOOK_S)
