"""Memory as it is measured here."""

from __future__ import annotations

import numpy as np

from scenarios.calibration.memory import chain, chase, measure_memory


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
    assert min(memory.apart_percents + memory.same_percents) >= 100
