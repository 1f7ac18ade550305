"""Run the same join inline, on Ray in virtual time, and live on Ray.

In virtual time the digest is the same wherever the actors live. Live, nothing is simulated: what is
printed was measured on this machine. Pass the address of a running cluster, as HOST:PORT or auto;
without one, Ray is started here and stopped again.
"""

import sys

import numpy as np

import joinsim as js

QUERY = """
SELECT * FROM orders, payments
WHERE orders.customer = payments.customer
AND payments.ts BETWEEN orders.ts - INTERVAL '5 ms' AND orders.ts + INTERVAL '5 ms'
"""


def main(address: str | None = None) -> None:
    rng = np.random.default_rng(7)
    streams = {
        name: {"ts": np.arange(5_000) * 100_000 + shift, "customer": rng.integers(0, 50, 5_000)}
        for name, shift in (("orders", 0), ("payments", 50_000))
    }
    inline = js.run(QUERY, streams, topology="hp_oij", replicas=2)
    with js.ray_cluster(address):  # both runs are on processes that are started once
        ray = js.run(QUERY, streams, topology="hp_oij", replicas=2, backend="ray")
        live = js.run(QUERY, streams, topology="hp_oij", replicas=2, clock="live")
    print(f"inline {inline.digest}, on Ray {ray.digest}: equal {inline.digest == ray.digest}")
    print(f"pairs: {inline.pairs.num_rows:,}, {ray.pairs.num_rows:,}, {live.pairs.num_rows:,}")
    print(f"live: {live.summary['throughput_tps']:,.0f} tuples/s, measured")


if __name__ == "__main__":
    main(*sys.argv[1:2])
