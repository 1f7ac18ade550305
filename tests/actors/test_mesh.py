"""Connections between processes: everything arrives, in order, and nobody waits for ever."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from actors.hosting import mesh
from actors.hosting.links import greet
from actors.hosting.mesh import Door, MemberLostError
from tests.actors.meshes import SECRETS, meshes


def test_two_that_send_to_each_other_more_than_fits_the_wire_do_not_wait_for_each_other() -> None:
    one, other, driver = meshes(2)
    much = np.arange(4_000_000)

    def send_and_take() -> None:
        one.send(1, much)
        one.receive(20)

    with one, other, driver:
        thread = threading.Thread(target=send_and_take)
        thread.start()
        other.send(0, much)
        received = other.receive(20)
        thread.join(20)
        assert received is not None
        assert not thread.is_alive()
        assert np.array_equal(received[1], much)


def test_what_was_sent_before_a_member_left_is_received_before_the_loss_is_reported() -> None:
    one, other, driver = meshes(2)
    with other, driver:
        with one:
            one.send(2, "last words")
        assert driver.receive(10) == (0, "last words")
        with pytest.raises(MemberLostError, match="process 0 is gone"):
            driver.receive(10)
        assert (driver.has(0), driver.has(1)) == (False, True)


def test_a_wait_may_be_as_long_as_times_go() -> None:
    one, driver = meshes(1)
    with one, driver:
        later = threading.Timer(0.1, one.send, (1, "in time"))
        later.start()
        assert driver.receive(2**63 / 1e9) == (0, "in time")
        later.join()


def test_a_silent_member_is_seen_and_one_that_works_is_not_silent() -> None:
    one, other, driver = meshes(2)
    with one, other, driver:
        assert driver.silent_s().keys() == {0, 1}
        assert max(driver.silent_s().values()) < 1


def test_a_member_that_waits_in_vain_for_another_closes_its_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mesh, "GREETING_S", 0.5)
    first, second = Door("127.0.0.1"), Door("127.0.0.1")
    addresses = [first.address, second.address]
    with ThreadPoolExecutor(4) as pool:
        joining = pool.submit(first.join, 0, addresses, 3, SECRETS)
        link = greet(first.address, 0, 1, SECRETS)
        with pytest.raises(TimeoutError, match="process 2 did not connect"):
            joining.result(10)
        reading = pool.submit(link.read)
        try:
            assert isinstance(reading.exception(5), EOFError)
        finally:
            link.close()
