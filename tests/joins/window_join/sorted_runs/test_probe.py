"""What a probe sees among a few entries, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from joins.machine.compiling import kernel
from joins.window_join.sorted_runs.probe import FEW, UNSEEN, seen_beside, seen_in_words
from joins.window_join.sorted_runs.stacks import HALF, PLACES_MOST

SIDE, AT, TO = 1, 3, 2
BEHIND = 99


@kernel
def in_words(words, high, start, places, seen, found):
    found[0], found[1] = seen_in_words(words, SIDE, AT, high, start, places, seen, TO)


@kernel
def beside(words, place, high, start, places, seen, found):
    found[0], found[1] = seen_beside(words, place, SIDE, AT, high, start, places, seen, TO)


@pytest.mark.parametrize(("start", "places"), [(0, 40), (5, 4), (9, 0), (0, PLACES_MOST)])
@pytest.mark.parametrize("greatest", [-3, 0, 2, 5])
def test_entries_in_the_range_are_listed_and_those_in_the_window_too_counted(
    start, places, greatest
):
    rng = np.random.default_rng(start)
    keys = np.sort(rng.integers(-5, 5, (2, 20)))
    place = rng.integers(0, 12, (2, 20))
    place[SIDE, AT + 2] = PLACES_MOST  # as behind a run
    few = slice(AT, AT + FEW)
    in_range = int((keys[SIDE, few] <= greatest).sum())
    in_window = (place[SIDE, few] >= start) & (place[SIDE, few] < start + places)
    listed = np.where(in_window, place[SIDE, few], UNSEEN)[:in_range].tolist()

    words = keys << HALF | place
    ways: list[tuple[Callable[..., Any], list[np.ndarray], int]] = [
        (in_words, [words], (greatest + 1 << HALF) - 1),
        (beside, [keys, place.astype(np.int32)], greatest),
    ]
    for see, columns, high in ways:
        seen, found = np.full(TO + FEW + 1, BEHIND), np.zeros(2, np.int64)
        see(*columns, high, start, places, seen, found)
        assert found.tolist() == [in_range, in_window[:in_range].sum()]
        assert seen[: TO + in_range].tolist() == [BEHIND] * TO + listed
        assert seen[TO + FEW] == BEHIND
