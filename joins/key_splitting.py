"""Over which replicas each key is split: PPOIJ's Algorithm 1, and a heuristic of our own.

Lines 4 to 10 of Algorithm 1, which assign every key a first replica, are left out. Here it has one
already, its home: keys are counted while each is at its home, and a key must stay there so that
probes reach its stored tuples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

Split = Mapping[int, tuple[int, ...]]
"""Key to the replicas over which its tuples are spread evenly, its home first."""


def split_keys(
    counts: Mapping[int, int],
    homes: Mapping[int, int],
    *,
    replicas: int,
    threshold: float,
    max_splitting: int,
) -> dict[int, tuple[int, ...]]:
    """Return for every key its replicas, its home first.

    Keys are split further, the most frequent first, until replicas are balanced or every key is
    split as far as it may be.

    Parameters
    ----------
    counts
        Key to its number of tuples.
    homes
        Key to its first replica.
    replicas
        How many there are.
    threshold
        θ, at least 1: they are balanced when none has more than θ times the average load, and each
        has some.
    max_splitting
        Replicas of one key at the most; more than there are changes nothing. (The listing's line 14
        compares with N, and its input with line 23 has this bound.)
    """
    limit = min(max_splitting, replicas)
    split, load = _at_home(counts, homes, replicas)
    while not _balanced(load, threshold) and any(len(among) < limit for among in split.values()):
        for key, among in split.items():
            if len(among) == limit:
                continue
            least = _least_loaded(load, among)
            load = _after_split(load, counts[key], among, least)
            among.append(least)
            if _balanced(load, threshold):
                break
    return {key: tuple(among) for key, among in split.items()}


def split_busiest(
    counts: Mapping[int, int],
    homes: Mapping[int, int],
    *,
    replicas: int,
    threshold: float,
    max_splitting: int,
) -> dict[int, tuple[int, ...]]:
    """Return for every key its replicas, its home first; parameters are those of `split_keys`.

    Algorithm 1 goes through all keys in turn, and so splits many that overload no replica. Here
    only keys of the most loaded replica are split, each time the one whose split leaves the loads
    most even, until replicas are balanced or no split of its keys makes them more even.
    """
    limit = min(max_splitting, replicas)
    split, load = _at_home(counts, homes, replicas)
    while not _balanced(load, threshold):
        busiest = max(range(replicas), key=lambda i: load[i])
        best, chosen = _unevenness(load), None
        for key, among in split.items():
            if busiest in among and len(among) < limit:
                least = _least_loaded(load, among)
                after = _after_split(load, counts[key], among, least)
                if _unevenness(after) < best:
                    best, chosen, following = _unevenness(after), (among, least), after
        if chosen is None:
            break
        load = following
        chosen[0].append(chosen[1])
    return {key: tuple(among) for key, among in split.items()}


HEURISTICS = {"algorithm_1": split_keys, "busiest_first": split_busiest}
"""Ways to split keys, by name."""


def add_counts(counts: dict[int, int], keys: np.ndarray, more: np.ndarray) -> None:
    """Add *more* tuples of each of *keys* to *counts*."""
    for key, count in zip(keys.tolist(), more.tolist(), strict=True):
        counts[key] = counts.get(key, 0) + count


def loads(
    counts: Mapping[int, int], split: Mapping[int, Sequence[int]], replicas: int
) -> list[float]:
    """Return per replica how many tuples it stores; *split* names every key of *counts*."""
    load = [0.0] * replicas
    for key, count in counts.items():
        for replica in split[key]:
            load[replica] += count / len(split[key])
    return load


def copies(counts: Mapping[int, int], split: Split) -> int:
    """Return to how many replicas all tuples of *counts* travel together."""
    return sum(count * len(split[key]) for key, count in counts.items())


def _at_home(
    counts: Mapping[int, int], homes: Mapping[int, int], replicas: int
) -> tuple[dict[int, list[int]], list[float]]:
    """Return each key's replicas, the most frequent key first, and the loads, all keys unsplit."""
    split = {key: [homes[key]] for key in sorted(counts, key=lambda key: (-counts[key], key))}
    return split, loads(counts, split, replicas)


def _least_loaded(load: list[float], among: list[int]) -> int:
    """Return the least loaded replica that is not in *among*."""
    return min((i for i in range(len(load)) if i not in among), key=lambda i: load[i])


def _after_split(load: list[float], count: int, among: list[int], more: int) -> list[float]:
    """Return the loads when a key of *count* tuples is split over one replica more."""
    part, smaller = count / len(among), count / (len(among) + 1)
    after = load.copy()
    for replica in among:
        after[replica] += smaller - part
    after[more] += smaller
    return after


def _unevenness(load: list[float]) -> tuple[float, float]:
    return max(load), sum(one * one for one in load)


def _balanced(loads: list[float], threshold: float) -> bool:
    return min(loads) > 0 and max(loads) * len(loads) <= threshold * sum(loads)
