"""PIM-Tree while values drift (Figures 13a and 13b), phase by phase, on simulated cores.

A self join of normal values: four windows of tuples around 0, ten windows over which the mean
moves, and four around its end. The paper does not say how far it moves at r = 1; 28 deviations make
its 77 % of inserts meet in one subindex. Sixteen threads on eight cores share the index; time is
that of the counted work (`joins.window_join.cores.pim_tree`). Printed are how inserts are spread
while values drift, that is the share of the fullest subindex and how many get next to nothing, and
the throughput of the second and third phase over that of values that hold still.

Run: ``python -m benchmarks.pim_drift [--window-bits 14] [--json]``
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.measure import Result, report
from joins.hashing import mix
from joins.indexes.pim_tree.layout import DEPTH, LEVEL_STARTS, SUBINDEXES, ordered
from joins.indexes.pim_tree.pim_tree import PimTree
from joins.indexes.pim_tree.probe import active_tree, run_slot
from joins.window_join.cores.pim_tree import CoresJoin
from joins.window_join.rows import Rows, make_rows
from netsim.cost import load_profile
from scenarios.synthetic.distributions import drifting

SPEEDS = (0.0, 0.1, 0.2, 0.4, 0.7, 1.0)
_BEFORE, _DRIFTING, _AFTER = 4, 10, 4
"""Lengths of the three phases, in windows."""
_BATCHES_PER_WINDOW = 8
_SHIFT = 28
_IDLE = 0.1
_SETTLED = 2
"""Windows of the last phase that pass before it is measured: merges must have seen its values."""


def make_work(window: int, speed: float) -> Rows:
    """Return the arrivals of all three phases."""
    position = np.arange((_BEFORE + _DRIFTING + _AFTER) * window)
    key = drifting(
        position,
        mix(position),
        mean=0,
        deviation=1,
        shift=_SHIFT * speed,
        first=_BEFORE * window,
        tuples=_DRIFTING * window,
    )
    band = np.sqrt(4 * np.pi) / window  # two matches a tuple where values hold still
    return make_rows(
        side=np.zeros(len(position), np.int64),
        position=position,
        key=key,
        low=key - band,
        high=key + band,
        start=np.maximum(0, position - window),
        stop=position,
    )


def spread(index: PimTree, keys: np.ndarray) -> tuple[float, float]:
    """Return how *keys* would be spread over subindexes.

    The share of them that the fullest one gets, and the share of subindexes that get no more than a
    tenth of the mean.
    """
    forest = index.forest
    run, tree = run_slot(forest, 0, 0), active_tree(forest, 0)
    depth = int(forest.tree_state[tree, DEPTH])
    if depth == 0:
        return 1.0, 0.0
    begin = int(forest.run_shape[run, LEVEL_STARTS + depth - 1])
    borders = forest.run_inner[run, begin : int(forest.run_shape[run, LEVEL_STARTS + depth])]
    subindexes = int(forest.tree_state[tree, SUBINDEXES])
    inserts = np.bincount(np.searchsorted(borders, keys), minlength=subindexes)[:subindexes]
    return float(inserts.max() / len(keys)), float(np.mean(inserts <= _IDLE * inserts.mean()))


def phases(window: int, speed: float) -> tuple[float, float, float, float]:
    """Return the two shares of `spread`, and ns a tuple in the second and the third phase."""
    index = PimTree(merge_ratio=1.0)
    join = CoresJoin(index, unit_ps=load_profile("shared_memory").unit_ps, threads=16, cores=8)
    rows = make_work(window, speed)
    batch = window // _BATCHES_PER_WINDOW
    spent, shares = [], []
    for begin in range(0, len(rows.side), batch):
        part = rows.part(begin, begin + batch)
        if _BEFORE * window <= begin < (_BEFORE + _DRIFTING) * window:
            shares.append(spread(index, ordered(part.key)))
        spent.append(join.join(part).work.elapsed_ns / batch)
    end = _BEFORE + _DRIFTING
    drift_ns = spent[_BEFORE * _BATCHES_PER_WINDOW : end * _BATCHES_PER_WINDOW]
    settled_ns = spent[(end + _SETTLED) * _BATCHES_PER_WINDOW :]
    fullest, idle = np.mean(shares, axis=0)
    return float(fullest), float(idle), float(np.mean(drift_ns)), float(np.mean(settled_ns))


def main() -> None:
    """Run all speeds and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--window-bits", type=int, default=14, help="window length 2^BITS (14)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    window = 1 << parser.parse_args().window_bits
    results = []
    *_, still_drift_ns, still_after_ns = phases(window, 0.0)
    for speed in SPEEDS:
        share, idle, drift_ns, after_ns = phases(window, speed)
        drift, after = still_drift_ns / drift_ns, still_after_ns / after_ns
        paper = {0.1: "paper: about 1", 0.4: "paper: 0.35 on average", 1.0: "paper: 0.16"}.get(
            speed, ""
        )
        results += [
            Result.of(
                f"r {speed}: fullest subindex",
                [100 * share],
                unit="% of inserts",
                note="paper: 77" if speed == 1 else "",
            ),
            Result.of(
                f"r {speed}: with next to none",
                [100 * idle],
                unit="% of subindexes",
                note="paper: 70" if speed == 1 else "",
            ),
            Result.of(f"r {speed}: drifting", [drift], unit="times r 0", note=paper),
            Result.of(f"r {speed}: after it", [after], unit="times r 0", target=0.9),
        ]
    report(f"drifting values, windows of {window} tuples", results)


if __name__ == "__main__":
    main()
