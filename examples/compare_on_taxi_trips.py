"""Which system should I use? Rank those that can answer one query, on real taxi trips.

The query asks for trips that were longer yet cheaper than an earlier one. Every system gets the
same data, seed and network, and every answer is checked.
"""

import joinsim as js

TRIPS = "yellow_taxi_sample.parquet"  # it comes with joinsim
QUERY = """
SELECT * FROM trips
WHERE trips.trip_distance1 > trips.trip_distance2 AND trips.fare_amount1 < trips.fare_amount2
WINDOW AS (SLIDE INTERVAL '200' ON '1000')
"""


def main() -> None:
    ranked = js.compare(
        QUERY,
        {"trips": TRIPS},
        time="pickup_datetime",
        rows=4_000,
        network="data-centre",
        topologies=["spo_join", "split_join", "chain_index", "nested_loop"],
        feeding={"batch_rows": 200},
    )
    print(ranked)
    print(f"fastest exact system: {ranked.fastest}")


if __name__ == "__main__":
    main()
