"""The head of a Ray cluster is missed when it stays away, and only by those who have seen it."""

from __future__ import annotations

import os
import re
import socket
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from actors.hosting import ray_cluster
from actors.hosting.processes import RayUnavailableError
from actors.hosting.ray_cluster import ClusterHead, private_token, ray
from actors.hosting.ray_processes import RayProcesses, _RayProcess
from tests.actors.meshes import labels


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster, "_LOOK_S", 0.0)
    monkeypatch.setattr(ray_cluster, "_GONE_S", 0.0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Return the clock that a missing head is timed by; it is set by hand."""
    by_hand = SimpleNamespace(at=0.0)
    by_hand.monotonic = lambda: by_hand.at
    monkeypatch.setattr(ray_cluster, "time", by_hand)
    return by_hand


def address(listener: socket.socket) -> str:
    return "{}:{}".format(*listener.getsockname()[:2])


@pytest.fixture
def nobody() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return address(listener)


def test_a_head_that_comes_back_in_time_is_not_missed_and_one_that_does_not_is(
    clock: SimpleNamespace,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        place = listener.getsockname()
        head = ClusterHead(address(listener))
    clock.at = 10
    head.look()
    with socket.create_server(place):
        clock.at = 13
        head.look()
    clock.at = 24
    head.look()
    clock.at = 26
    with pytest.raises(RayUnavailableError, match=f"{head.address} is gone.* answered for 13 s"):
        head.look()


def test_a_head_that_was_just_looked_at_is_not_looked_at_again(clock: SimpleNamespace) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        head = ClusterHead(address(listener))
        listener.settimeout(10)
        for at in (1, 2, 2.5, 3.9):
            clock.at = at
            head.look()
        for _ in ("at first", "after two seconds"):
            listener.accept()[0].close()
        listener.settimeout(0)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_head_out_of_reach_from_the_first_is_never_missed(impatient: None, nobody: str) -> None:
    ClusterHead(nobody).look()


def test_processes_of_a_cluster_whose_head_is_gone_are_not_asked_for(
    ray_running: None, impatient: None, nobody: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray, "get_runtime_context", lambda: SimpleNamespace(gcs_address=nobody))
    with pytest.raises(RayUnavailableError, match=f"cluster at {nobody} is gone"):
        RayProcesses(labels(1))


def test_a_process_whose_driver_has_left_stays_while_the_head_is_there(
    impatient: None,
) -> None:
    asked = 0
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def needed() -> bool:
            nonlocal asked
            asked += 1
            if asked == 9:
                listener.close()
            return False

        ClusterHead(address(listener)).wait_until_alone(needed)
    assert asked == 8 + 3


def test_a_process_that_misses_the_head_stays_while_its_driver_is_there(
    impatient: None, nobody: str
) -> None:
    needed = iter([True, True, False, False, True, False, False, False])
    ClusterHead(nobody).wait_until_alone(lambda: next(needed))
    assert not list(needed)


def test_a_process_whose_mesh_is_dropped_as_it_looks_for_its_driver_has_none() -> None:
    meshes = iter([SimpleNamespace(driver=1, has=lambda peer: True), None])

    class Relisting(_RayProcess):
        _mesh = property(lambda self: next(meshes))

    process = Relisting.__new__(Relisting)
    assert [process._has_driver(), process._has_driver()] == [True, False]


def test_the_token_of_clusters_is_for_its_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in [name for name in os.environ if name.startswith("RAY_AUTH_")]:
        monkeypatch.delenv(name)
    token = tmp_path / ".ray" / "auth_token"
    private_token()
    made = token.read_text()
    assert len(made) == 64
    assert token.stat().st_mode & 0o777 == 0o600
    token.chmod(0o644)  # as Ray itself makes it
    private_token()
    assert token.stat().st_mode & 0o777 == 0o600
    assert token.read_text() == made
    assert [path.name for path in token.parent.iterdir()] == ["auth_token"]


@pytest.mark.parametrize("ends_with", ["the node", "an error"])
def test_ray_is_asked_for_its_node_once_that_is_known_or_the_head_fails(
    clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, ends_with: str
) -> None:
    ours, other = ray.NodeID.from_random(), ray.NodeID.from_random()
    seen = iter([{}, {other: 1}, {other: 1, ours: 1}])
    asked: list[str] = []

    def nodes(timeout: float) -> object:
        asked.append("head")
        if ends_with == "an error":
            raise ray.exceptions.RpcError("it does not answer")
        return next(seen)

    clock.sleep = lambda seconds: None
    head = SimpleNamespace(get_all_node_info=nodes)
    monkeypatch.setattr(ray._raylet, "GcsClient", lambda address: head)
    ray_cluster._get_registered_node(lambda *_: asked.append("node"), "127.0.0.1:1", ours.hex())
    assert asked == (["head"] * 3 if ends_with == "the node" else ["head"]) + ["node"]


@pytest.mark.parametrize("address", ["no-such-host.invalid:6379", "127.0.0.1:1", "[::1]:1"])
def test_an_address_where_nobody_answers_is_refused_soon(address: str) -> None:
    begun = time.monotonic()
    with pytest.raises(RayUnavailableError, match=f"no Ray at {re.escape(address)}: nothing answ"):
        ray_cluster._start(address, 1)
    assert time.monotonic() - begun < 15
