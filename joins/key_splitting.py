"""Over which replicas each key is split (PPOIJ, Algorithm 1, without lines 4 to 10).

Lines 4 to 10 give every key a first replica. Here it has one already, its home: keys are measured
while each is at its home, and a key must stay there for its stored tuples to be found.
"""

from __future__ import annotations

from collections.abc import Mapping


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
        Key to the tuples that were seen of it.
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
    split = {key: [homes[key]] for key in sorted(counts, key=lambda key: (-counts[key], key))}
    loads = [0.0] * replicas
    for key, among in split.items():
        loads[among[0]] += counts[key]
    while not _balanced(loads, threshold) and any(len(among) < limit for among in split.values()):
        for key, among in split.items():
            if len(among) == limit:
                continue
            least = min((i for i in range(replicas) if i not in among), key=lambda i: loads[i])
            part, smaller = counts[key] / len(among), counts[key] / (len(among) + 1)
            for replica in among:
                loads[replica] += smaller - part
            loads[least] += smaller
            among.append(least)
            if _balanced(loads, threshold):
                break
    return {key: tuple(among) for key, among in split.items()}


def _balanced(loads: list[float], threshold: float) -> bool:
    return min(loads) > 0 and max(loads) * len(loads) <= threshold * sum(loads)
