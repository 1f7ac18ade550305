"""What a probe sees among a few entries, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from joins.hashing import mix
from joins.machine.compiling import kernel
from joins.window_join.batches.run_stacks import HALF, PLACES_MOST
from joins.window_join.batches.seen_lanes import FEW, seen_beside, seen_in_words

SIDE, AT = 1, 3


@kernel
def in_words(words, high, base, start, places, found):
    found[0], found[1] = seen_in_words(words, SIDE, AT, high, base, start, places)


@kernel
def beside(words, place, high, base, start, places, found):
    found[0], found[1] = seen_beside(words, place, SIDE, AT, high, base, start, places)


@pytest.mark.parametrize("base", [0, 12_345, 2**40])
@pytest.mark.parametrize(("start", "places"), [(0, 40), (5, 4), (9, 0), (0, PLACES_MOST)])
@pytest.mark.parametrize("greatest", [-3, 0, 2, 5])
def test_entries_in_the_range_and_the_window_are_counted_and_mixed(base, start, places, greatest):
    rng = np.random.default_rng(start)
    keys = np.sort(rng.integers(-5, 5, (2, 20)))
    place = rng.integers(0, 12, (2, 20))
    place[SIDE, AT + 2] = PLACES_MOST  # as behind a run
    few = slice(AT, AT + FEW)
    seen = (keys[SIDE, few] <= greatest) & (place[SIDE, few] >= start)
    seen &= place[SIDE, few] < start + places
    fingerprint = mix(base + place[SIDE, few][seen]).sum(dtype=np.uint64)
    expected = [seen.sum(), fingerprint]

    found = np.zeros(2, np.uint64)
    in_words(keys << HALF | place, (greatest + 1 << HALF) - 1, base, start, places, found)
    assert found.tolist() == expected
    beside(keys, place.astype(np.int32), greatest, base, start, places, found)
    assert found.tolist() == expected
