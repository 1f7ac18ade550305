"""A notebook: systems against the window, and where their order changes. Cells: ``# %%``."""

# %% Trips that were longer, yet cheaper, than an earlier one in the window.
from typing import Any

import joinsim as js

SYSTEMS = ["spo_join", "split_join", "chain_index"]


def join(window: int, system: str, **settings: Any) -> dict[str, Any]:
    """Return the figures of a run over the first 4,000 trips."""
    query = (
        "SELECT * FROM trips WHERE trips.trip_distance1 > trips.trip_distance2 "
        "AND trips.fare_amount1 < trips.fare_amount2 "
        f"WINDOW AS (SLIDE INTERVAL '{window // 5}' ON '{window}')"
    )
    trips = {"trips": "yellow_taxi_sample.parquet"}
    run = js.run(
        query,
        trips,
        time="pickup_datetime",
        rows=4_000,
        topology=system,
        pairs=False,
        **settings,
    )
    assert run.verdict.exact
    return run.summary


# %% As fast as each takes them: the order changes with the window.
for window in (250, 1_000, 4_000):
    rates = {system: join(window, system)["throughput_tps"] for system in SYSTEMS}
    print(f"window {window}: {max(rates, key=lambda system: rates[system])} is fastest")
    for system, rate in rates.items():
        print(f"  {system:14}{rate:>12,.0f} tuples/s")

# %% At a rate of one's own latency counts: most of it is waiting for a batch to fill.
for linger in ("5 ms", "0.5 ms"):
    feeding = {"rate_tps": 50_000, "linger": linger}
    p99 = join(1_000, "split_join", feeding=feeding)["latency_ms"]["p99"]
    print(f"split_join, batches of {linger}: p99 {p99:.2f} ms at 50,000 tuples/s")

# %% `js.compare` ranks every system that can evaluate a query, with their variants, in one call.
