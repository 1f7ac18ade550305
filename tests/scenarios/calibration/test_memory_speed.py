"""Memory as it is measured here."""

from __future__ import annotations

import numpy as np
import pytest

from scenarios.calibration import memory_speed as measuring
from scenarios.calibration.memory_speed import chain, chase, measure_memory


def test_a_chain_visits_every_line_once() -> None:
    following = chain(1 << 14)
    place, seen = 0, set()
    for _ in range(len(following) // 8):
        seen.add(place)
        place = int(following[place])
    assert place == 0
    assert seen == set(range(0, len(following), 8))
    assert chase(following, 3) == following[following[following[0]]]


def test_memory_is_measured_at_every_size() -> None:
    memory = measure_memory(sizes=(1 << 14, 1 << 22), cores=2)
    assert memory.sizes == (1 << 14, 1 << 22)
    assert memory.cores == 2
    assert np.all(np.array([memory.wait_ps, memory.read_ps]) > 0)


def test_what_cores_take_from_each_other_is_relative_to_one_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read_ps(chains: list[np.ndarray]) -> int:
        if len(chains) == 1:
            return 1_000
        return 2_500 if chains[0] is not chains[1] else 990  # less than alone is noise

    monkeypatch.setattr(measuring, "_read_ps", read_ps)
    memory = measure_memory(sizes=(1 << 14,), cores=2)
    assert (memory.read_ps, memory.apart_percents, memory.same_percents) == (
        (1_000,), (250,), (100,),
    )  # fmt: skip
