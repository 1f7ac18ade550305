"""Live runs on a Ray cluster of several nodes, on this machine; and what is left when it fails."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from actors.hosting.ray_cluster import JOB, SHIPPED, ray

_NODE = {"num_cpus": 1, "object_store_memory": 100 * 2**20}
_FOR_EVER = ("10000000", "1000000")  # a message each millisecond
_GONE_S = 30


def cluster_with(head_cpus: int) -> Any:
    # Not before Ray has been imported our way, which sets what it reads then.
    importlib.import_module("ray.cluster_utils")
    head = _NODE | {"num_cpus": head_cpus, "include_dashboard": False}
    return ray.cluster_utils.Cluster(initialize_head=True, head_node_args=head)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    cluster = cluster_with(head_cpus=1)
    cluster.add_node(**_NODE)
    yield cluster
    cluster.shutdown()


@pytest.fixture
def lone_head() -> Iterator[Any]:
    """Give a cluster of one node that is the test's own, and may lose its head."""
    cluster = cluster_with(head_cpus=2)
    yield cluster
    cluster.shutdown()


def start(cluster: Any, count: str, gap_ns: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.actors.cluster_run", cluster.address, "2", count, gap_ns],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )


def pids_once_running(run: subprocess.Popen[str]) -> list[int]:
    assert run.stdout is not None
    pids: list[int] = []
    for line in run.stdout:
        if line.startswith("pids"):
            pids = [int(pid) for pid in line.split()[1:]]
        if line.startswith("running"):
            return pids
    raise AssertionError(run.communicate(timeout=60)[1])


def assert_ended(pids: list[int]) -> None:
    deadline = time.monotonic() + _GONE_S
    for pid in pids:
        while os.path.exists(f"/proc/{pid}"):
            assert time.monotonic() < deadline, f"process {pid} is left"
            time.sleep(0.1)


def test_a_live_run_is_spread_over_the_nodes_and_loses_nothing(cluster: Any) -> None:
    run = start(cluster, "500", "0")
    out, err = run.communicate(timeout=120)
    assert run.returncode == 0, err
    assert "nodes 2\n" in out
    assert "results 500\n" in out


def test_a_live_run_works_where_ray_job_submit_has_shipped_the_repository(cluster: Any) -> None:
    job = json.dumps({"runtime_env": SHIPPED, "metadata": {}})
    run = start(cluster, "20", "0", **{JOB: job})
    out, err = run.communicate(timeout=120)
    assert run.returncode == 0, err
    assert "results 20\n" in out


def test_ctrl_c_ends_a_live_run_and_its_processes(cluster: Any) -> None:
    run = start(cluster, *_FOR_EVER)
    pids = pids_once_running(run)
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=_GONE_S)
    assert run.returncode != 0
    assert len(pids) == 2
    assert_ended(pids)


def test_a_live_run_that_is_killed_leaves_no_process(cluster: Any) -> None:
    run = start(cluster, *_FOR_EVER)
    pids = pids_once_running(run)
    run.kill()
    run.communicate(timeout=_GONE_S)
    assert_ended(pids)


def test_a_head_that_goes_away_alone_ends_a_live_run_before_ray_would(lone_head: Any) -> None:
    address = lone_head.address
    run = start(lone_head, *_FOR_EVER)
    pids = pids_once_running(run)
    lone_head.head_node.kill_gcs_server()
    _, err = run.communicate(timeout=_GONE_S)
    assert run.returncode != 0
    assert f"the head of the Ray cluster at {address} is gone" in err
    assert_ended(pids)


def test_a_cluster_that_goes_away_ends_a_live_run_with_one_clear_message(cluster: Any) -> None:
    run = start(cluster, *_FOR_EVER)
    pids = pids_once_running(run)
    cluster.shutdown()
    _, err = run.communicate(timeout=_GONE_S)
    assert run.returncode != 0
    assert "the whole cluster went away" in err
    assert_ended(pids)
