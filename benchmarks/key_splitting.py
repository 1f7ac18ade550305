"""How far PPOIJ's Algorithm 1 is from the best assignment of keys to replicas, and ours.

In the clock: nothing; assignments are compared by what they come to.

The paper states the problem as equations (1) to (5): the greatest difference of a replica's load
from the average is to be least. Alone it has a trivial answer, all keys at all replicas; what makes
it hard is that a key may be split over few replicas, and that every copy costs. So two problems are
solved exactly, by HiGHS: the least difference with two replicas a key at the most, and the fewest
copies of a tuple with all loads within θ of the average. Cases are small, since the problem is
NP-hard: self-similar frequencies over a few keys. Heuristics begin with each key at the least
loaded replica (lines 4 to 8 of the listing).

Run: ``python -m benchmarks.key_splitting [--json]``
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from benchmarks.measure import Result, report
from joins.key_splitting import HEURISTICS, Split, copies, loads

_CASES = [(keys, replicas, seed) for keys, replicas in ((5, 3), (6, 4), (8, 4)) for seed in (1, 2)]
_TUPLES = 1_000
_SKEW = 0.35
_THRESHOLD = 1.1
_FEW = 2
_LIMIT_S = 30.0


def frequencies(keys: int, seed: int) -> dict[int, int]:
    """Return key to tuples, self-similar as in the paper's skewed experiments."""
    power = np.log(_SKEW) / np.log1p(-_SKEW)
    drawn = (keys * np.random.default_rng(seed).random(_TUPLES) ** power).astype(np.int64)
    found, counts = np.unique(drawn, return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))


def least_loaded_first(counts: Mapping[int, int], replicas: int) -> dict[int, int]:
    """Return each key's first replica: the least loaded one, the most frequent keys first."""
    load, homes = [0] * replicas, {}
    for key in sorted(counts, key=lambda key: (-counts[key], key)):
        homes[key] = int(np.argmin(load))
        load[homes[key]] += counts[key]
    return homes


def optimum(
    counts: Mapping[int, int], replicas: int, *, most: int, threshold: float | None
) -> float:
    """Return the fewest copies of all tuples within *threshold*; without, the least difference.

    Per key one degree is chosen, 1 to *most*, and as many replicas, each with an even part
    (equations 2 to 5); a difference is in tuples. Raise :exc:`RuntimeError` when HiGHS has not
    found the optimum in time.
    """
    tuples, degrees = np.array([*counts.values()]), np.arange(1, most + 1)
    choices, average = len(tuples) * most, tuples.sum() / replicas
    # One variable for whether a key has a degree, one for whether a replica then has a part of it,
    # and one for the difference.
    chosen, placed = np.split(np.eye(choices * (1 + replicas) + 1)[:-1], [choices])
    of_key = chosen.reshape(len(tuples), most, -1)
    at = placed.reshape(len(tuples), most, replicas, -1)
    load = np.einsum("ksrv,ks->rv", at, tuples[:, None] / degrees)
    goal = np.eye(load.shape[1])[-1]
    constraints = [
        LinearConstraint(of_key.sum(axis=1), 1, 1),
        LinearConstraint((at.sum(axis=2) - degrees[:, None] * of_key).reshape(choices, -1), 0, 0),
    ]
    if threshold is None:
        constraints += [
            LinearConstraint(load - goal, ub=average),
            LinearConstraint(load + goal, lb=average),
        ]
    else:
        constraints.append(LinearConstraint(load, ub=threshold * average))
        goal = np.einsum("ksv,ks->v", of_key, tuples[:, None] * degrees)
    whole = np.append(np.ones(len(goal) - 1), 0)
    found = milp(
        goal,
        constraints=constraints,
        integrality=whole,
        bounds=Bounds(0, np.where(whole, 1, np.inf)),
        options={"time_limit": _LIMIT_S},
    )
    if found.status:
        raise RuntimeError(f"no optimum of {len(counts)} keys on {replicas} replicas in time")
    return float(found.fun)


def difference(counts: Mapping[int, int], split: Split, replicas: int) -> float:
    """Return how far the load of a replica is from the average at the most, in tuples."""
    average = sum(counts.values()) / replicas
    return max(abs(one - average) for one in loads(counts, split, replicas))


def main() -> None:
    """Solve all cases exactly and by each heuristic, and print the gaps."""
    excess: dict[str, list[float]] = {name: [] for name in HEURISTICS}
    more: dict[str, list[float]] = {name: [] for name in HEURISTICS}
    for keys, replicas, seed in _CASES:
        counts = frequencies(keys, seed)
        homes = least_loaded_first(counts, replicas)
        least = optimum(counts, replicas, most=_FEW, threshold=None)
        fewest = optimum(counts, replicas, most=replicas, threshold=_THRESHOLD)
        for name, heuristic in HEURISTICS.items():
            few = heuristic(counts, homes, replicas=replicas, threshold=1.0, max_splitting=_FEW)
            within = heuristic(
                counts, homes, replicas=replicas, threshold=_THRESHOLD, max_splitting=replicas
            )
            excess[name].append(100 * (difference(counts, few, replicas) - least) / _TUPLES)
            more[name].append(copies(counts, within) / fewest)
    results = [
        Result.of(
            f"{name}: difference above the least, two replicas a key", values, unit="% of tuples"
        )
        for name, values in excess.items()
    ] + [
        Result.of(f"{name}: copies over the fewest, θ = {_THRESHOLD}", values, unit="times")
        for name, values in more.items()
    ]
    report(f"Splitting keys over replicas, {len(_CASES)} small cases against the optimum", results)


if __name__ == "__main__":
    main()
