"""How many expired pairs does SPO-Join report when its PEs share a window count by a cache?

Section 4.2 of the SPO-Join paper: a PE that goes by a count of its own finds tuples that have left
the window. The rate depends on when messages arrive, so it is measured over seeds and printed as a
mean with its standard error.
"""

from math import sqrt
from statistics import mean, stdev

import joinsim as js

SEEDS = range(1, 6)


def main() -> None:
    scenario = js.scenario("spo-q3", scale="smoke").with_settings(
        {
            "window_state": "cache",
            "network.jitter": "2 ms",
            "feeding.rate_tps": 100_000,
            "feeding.batch_rows": 50,
        }
    )
    rates = []
    for seed in SEEDS:
        run = scenario.run(seed=seed)
        assert isinstance(run, js.Run)
        rates.append(run.verdict.expired / run.verdict.produced)
        print(f"seed {seed}: {run.verdict.expired:,} of {run.verdict.produced:,} pairs expired")
    error = stdev(rates) / sqrt(len(rates))
    print(f"false positives: {mean(rates):.2%} ± {error:.2%} (standard error, {len(rates)} seeds)")


if __name__ == "__main__":
    main()
