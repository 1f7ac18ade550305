"""The head of a Ray cluster is missed when it stays away, and only by those who have seen it."""

from __future__ import annotations

import socket

import pytest

from actors.hosting import ray_head
from actors.hosting.errors import RayUnavailableError
from actors.hosting.ray_head import Head


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_head, "_LOOK_S", 0.0)
    monkeypatch.setattr(ray_head, "_GONE_S", 0.0)


def address(listener: socket.socket) -> str:
    return "{}:{}".format(*listener.getsockname()[:2])


def test_a_head_that_does_not_answer_any_more_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        head = Head(address(listener))
        head.look()
    with pytest.raises(RayUnavailableError, match=f"cluster at {head.address} is gone"):
        head.look()


def test_a_head_that_comes_back_in_time_is_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_head, "_GONE_S", 60.0)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        at = listener.getsockname()
        head = Head(address(listener))
    head.look()
    monkeypatch.setattr(ray_head, "_GONE_S", 0.0)
    with socket.create_server(at):
        head.look()


def test_a_head_out_of_reach_from_the_first_is_never_missed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        nobody = address(listener)
    head = Head(nobody)
    head.look()
