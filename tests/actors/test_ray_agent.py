"""The replacement of Ray's agents states its ports and ends with its node; Ray's do not start."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil

from actors.hosting import ray_agent
from actors.hosting.ray_cluster import ray

_NODE = """
import subprocess, sys
agent = subprocess.Popen([sys.executable, "-IS", *sys.argv[1:]])
print(agent.pid, flush=True)
sys.stdin.read()
"""


def test_it_states_its_ports_and_ends_with_its_node(tmp_path: Path) -> None:
    agent = [ray_agent.__file__, "agent.py", f"--session-dir={tmp_path}", "--node-id=a1", "--head"]
    with subprocess.Popen(
        [sys.executable, "-c", _NODE, *agent],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as node:
        assert node.stdout
        process = psutil.Process(int(node.stdout.readline()))
        names = ray._raylet
        ports = (
            names.METRICS_AGENT_PORT_NAME,
            names.METRICS_EXPORT_PORT_NAME,
            names.DASHBOARD_AGENT_LISTEN_PORT_NAME,
            names.RUNTIME_ENV_AGENT_PORT_NAME,
        )
        files = {f"{port}_a1" for port in ports}
        until = time.monotonic() + 30
        while {path.name for path in tmp_path.iterdir()} != files:
            assert time.monotonic() < until
            time.sleep(0.02)
        assert {path.read_text() for path in tmp_path.iterdir()} == {"-1"}
        assert process.is_running()
        node.kill()
    process.wait(30)


def test_a_cluster_of_our_own_has_none_of_rays_agents(ray_running: None) -> None:
    below = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # what another test has started may end meanwhile
            below.append(process.cmdline())
    assert sum(command[2:3] == [ray_agent.__file__] for command in below) == 2
    titles = {command[0].strip() for command in below if command}
    assert not titles & {"ray::DashboardAgent", "ray::RuntimeEnvAgent"}
