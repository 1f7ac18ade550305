from __future__ import annotations

import pytest

from netsim.cost import load_profile
from scenarios.surveys.memory_traffic import MemoryTrafficSurvey


def test_what_is_read_and_written_makes_the_total() -> None:
    found = MemoryTrafficSurvey(threads=3, window_bits=9).take(seed=1, profile=load_profile())
    assert found.passed
    traffic = found.record["gb_s"]
    assert traffic["total"] == pytest.approx(traffic["read"] + traffic["written"])
    share = 100 * traffic["written"] / traffic["total"]
    assert found.record["written_percent"] == pytest.approx(share)


def test_every_tuple_is_written_at_least_once() -> None:
    """An insert writes 16 bytes; at the speed of one thread that is a floor for the traffic."""
    profile = load_profile("shared_memory")
    one, four = (
        MemoryTrafficSurvey(threads=threads, window_bits=12).take(seed=1, profile=profile).record
        for threads in (1, 4)
    )
    assert one["gb_s"]["written"] > 16 / 10_000  # a tuple takes less than 10 us
    assert 2 < four["gb_s"]["total"] / one["gb_s"]["total"] < 4.5
