"""Rates that a system sustains, of systems whose capacity is known by construction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import joinsim as js
from scenarios.measures import Pace
from scenarios.sustainable import GROWTH, PRECISION, growth, highest_sustained

TUPLES = 4_000


def served(rate_tps: int, service_ns: float, batch: int = 1, extra_ns: int = 0) -> Pace:
    """Return the pace of one server that takes *service_ns* a tuple, fed at a rate."""
    last = np.arange(batch - 1, TUPLES, batch)
    ready = (last + 1) * (1e9 / rate_tps)
    work = batch * service_ns * np.arange(1, len(last) + 1)
    done = work + np.maximum.accumulate(ready - (work - batch * service_ns))
    trace = pa.table(
        {
            "receiver": ["server"] * len(last),
            "last": last,
            "done_ns": (done + extra_ns).astype(np.int64),
        }
    )
    return Pace(trace, {"source": "source", "server": "joiner"})


@pytest.mark.parametrize(("batch", "extra_ns"), [(1, 0), (50, 0), (1, 25_000_000)])
@pytest.mark.parametrize("guess", [3, 900, 10**7])
def test_the_capacity_of_a_server_is_found(batch: int, extra_ns: int, guess: int) -> None:
    def sustains(rate: int) -> bool:
        return growth(served(rate, 200_000, batch, extra_ns), TUPLES, rate) <= GROWTH

    found = highest_sustained(sustains, guess)
    assert 5_000 * (1 - PRECISION) <= found <= 5_000 * (1 + GROWTH) * 1.002


def test_a_system_that_sustains_nothing_has_the_rate_0() -> None:
    assert highest_sustained(lambda rate: False, 1_000) == 0


def test_a_link_sustains_its_bandwidth() -> None:
    query = "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '5' ON '20')"
    data = {"T": {"x": np.arange(1_000) * 7919 % 1_000}}
    how: Any = {"topology": "nested_loop", "feeding.batch_rows": 10, "network.bandwidth": "1 Mbps"}
    plain = js.run(query, data, topology="nested_loop", feeding={"batch_rows": 10}, pairs=False)
    sent = {row["receiver"]: row["bytes"] for row in plain.network.to_pylist()}
    capacity_tps = 1e6 / 8 / (max(sent["router"], sent["joiner.0"]) / 1_000)
    (point,) = js.sweep(query, data, over={}, find="sustainable", processes=1, **how).summary[
        "points"
    ]
    assert point["sustainable_tps"] == pytest.approx(capacity_tps, rel=PRECISION)
    rates = {int(rate): kept for rate, kept in point["rates"].items()}
    assert rates[point["sustainable_tps"]]
    assert min(rate for rate, kept in rates.items() if not kept) <= 1.03 * capacity_tps
