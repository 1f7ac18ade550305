"""Algorithm 1: loads are balanced by splitting, homes stay, and no key is split in vain."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from joins.key_splitting import copies, split_busiest, split_keys


def loads(counts: dict[int, int], split: dict[int, tuple[int, ...]], replicas: int) -> list[float]:
    found = [0.0] * replicas
    for key, among in split.items():
        for replica in among:
            found[replica] += counts[key] / len(among)
    return found


@given(data=st.data(), replicas=st.integers(1, 6), threshold=st.sampled_from([1.0, 1.1, 2.0]))
def test_every_key_keeps_its_home_and_loads_are_balanced_or_keys_split_as_far_as_they_may(
    data: st.DataObject, replicas: int, threshold: float
) -> None:
    counts = data.draw(st.dictionaries(st.integers(-9, 9), st.integers(1, 1000), max_size=9))
    homes = {key: data.draw(st.integers(0, replicas - 1)) for key in counts}
    most = data.draw(st.integers(1, 8))
    split = split_keys(counts, homes, replicas=replicas, threshold=threshold, max_splitting=most)
    assert split.keys() == counts.keys()
    for key, among in split.items():
        assert among[0] == homes[key]
        assert len(set(among)) == len(among) <= min(most, replicas)
    if not counts:
        return
    load = loads(counts, split, replicas)
    balanced = min(load) > 0 and max(load) <= threshold * sum(load) / replicas * (1 + 1e-9)
    assert balanced or all(len(among) == min(most, replicas) for among in split.values())


def test_one_key_is_split_over_all_and_many_equal_keys_over_none() -> None:
    assert split_keys({5: 9}, {5: 2}, replicas=3, threshold=1.1, max_splitting=3) == {5: (2, 0, 1)}
    even = {key: 10 for key in range(6)}
    homes = {key: key % 3 for key in even}
    split = split_keys(even, homes, replicas=3, threshold=1.1, max_splitting=3)
    assert split == {key: (home,) for key, home in homes.items()}


def test_the_papers_three_keys_need_one_split() -> None:
    """Figure 2: frequencies 60, 20 and 20 % on two replicas; only the first key is split."""
    counts, homes = {0: 60, 1: 20, 2: 20}, {0: 0, 1: 1, 2: 1}
    split = split_keys(counts, homes, replicas=2, threshold=1.2, max_splitting=2)
    assert split == {0: (0,), 1: (1,), 2: (1,)}
    split = split_keys(counts, homes, replicas=2, threshold=1.1, max_splitting=2)
    assert max(map(len, split.values())) == 2


@given(data=st.data(), replicas=st.integers(1, 5), threshold=st.sampled_from([1.0, 1.1, 2.0]))
def test_splitting_keys_of_the_busiest_replica_ends_where_no_split_of_them_helps(
    data: st.DataObject, replicas: int, threshold: float
) -> None:
    counts = data.draw(
        st.dictionaries(st.integers(-9, 9), st.integers(1, 1000), min_size=1, max_size=6)
    )
    homes = {key: data.draw(st.integers(0, replicas - 1)) for key in counts}
    most = data.draw(st.integers(1, 6))
    split = split_busiest(counts, homes, replicas=replicas, threshold=threshold, max_splitting=most)
    assert {key: among[0] for key, among in split.items()} == homes
    assert all(len(set(among)) == len(among) <= min(most, replicas) for among in split.values())
    load = loads(counts, split, replicas)
    if min(load) > 0 and max(load) <= threshold * sum(load) / replicas * (1 + 1e-9):
        return
    busiest = load.index(max(load))
    for key, more in product(split, range(replicas)):
        among = split[key]
        if busiest in among and more not in among and len(among) < most:
            after = loads(counts, split | {key: (*among, more)}, replicas)
            assert max(after) >= max(load) * (1 - 1e-9)


def test_where_one_key_is_hot_our_heuristic_balances_with_fewer_copies() -> None:
    counts = {0: 600} | {key: 40 for key in range(1, 11)}
    homes = {key: key % 4 for key in counts}
    ours, papers = (
        heuristic(counts, homes, replicas=4, threshold=1.2, max_splitting=4)
        for heuristic in (split_busiest, split_keys)
    )
    for split in (ours, papers):
        assert max(loads(counts, split, 4)) <= 1.2 * 250
    assert copies(counts, ours) < copies(counts, papers)
