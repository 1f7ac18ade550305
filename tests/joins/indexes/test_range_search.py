"""Ranges found through the offset array against ranges found in all keys."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.indexes.range_search import find_ranges, find_ranges_in_brackets
from joins.work import Work, new_counters
from tests.joins.codes import codes
from tests.joins.indexes.bracketing import brackets_of

KEYS = st.lists(codes, max_size=30)
PROBES = st.lists(st.tuples(codes, codes), max_size=10)


@settings(deadline=None)
@given(stored=KEYS, own=KEYS, probes=PROBES)
def test_a_range_holds_the_stored_keys_between_its_ends_however_it_is_found(stored, own, probes):
    """Also the stored keys that lie between two neighbouring own keys."""
    stored_keys, own_keys = np.array(sorted(stored), np.int64), np.array(sorted(own), np.int64)
    lo, hi = (np.array([probe[side] for probe in probes], np.int64) for side in (0, 1))
    brackets = brackets_of([own_keys], [stored_keys])
    for bracketed in (False, True):
        begin, end = np.empty((2, len(probes)), np.int64)
        counters = new_counters()
        if bracketed:
            find_ranges_in_brackets(
                stored_keys, own_keys, brackets.offsets[0], lo, hi, begin, end, counters
            )
        else:
            find_ranges(stored_keys, lo, hi, begin, end, counters)
        for i, (low, high) in enumerate(probes):
            inside = [key for key in sorted(stored) if low <= key <= high]
            assert stored_keys[begin[i] : end[i]].tolist() == inside
        # Four searches, each of a run of at most 30 keys.
        assert Work.from_counters(counters).comparisons <= 20 * len(probes)
