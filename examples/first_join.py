"""A notebook: a first join, its answer, and where its time goes. Cells begin with ``# %%``."""

# %% Two streams of readings; which are near each other in value, among the last 200?
import numpy as np

import joinsim as js

rng = np.random.default_rng(1)
left = {"ts": np.arange(2_000) * 1_000, "value": rng.normal(20, 5, 2_000).round(2)}
right = {"ts": np.arange(2_000) * 1_000 + 500, "value": rng.normal(20, 5, 2_000).round(2)}
QUERY = """
SELECT * FROM L, R WHERE ABS(L.value - R.value) <= 0.05
WINDOW AS (SLIDE INTERVAL '1' ON '200')
"""

# %% Run it on one system. The verdict compares each tuple's pairs with what an oracle expects.
run = js.run(QUERY, {"L": left, "R": right}, topology="split_join", pes=4, network="data-centre")
print(run)

# %% The pairs, as an Arrow table of positions; and the tuples that they name.
pairs = run.pairs
first = pairs.slice(0, 1).to_pylist()[0]
probing, stored = (("L", "R"), ("R", "L"))[first["probe_stream"]]
print(
    run.streams[probing].slice(first["probe_id"], 1).to_pylist(),
    run.streams[stored].slice(first["match_id"], 1).to_pylist(),
)

# %% Which channel carries most? The trace has every message: when it was sent, arrived, was done.
print(run.network.sort_by([("bytes", "descending")]).slice(0, 3).to_pylist())

# %% The same on twice as many PEs: virtual throughput, and the digest of a run that repeats.
for pes in (1, 2, 4, 8):
    again = js.run(QUERY, {"L": left, "R": right}, topology="split_join", pes=pes, pairs=False)
    print(f"{pes} PEs: {again.summary['throughput_tps']:>10,.0f} tuples/s  {again.digest}")

# %% One page with all of it.
print(f"wrote {run.report('first_join.html')}")
