"""Which lines of a panel run upon each other, so that none is hidden behind another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_APART = 0.012
"""Share of a panel's height from which two lines can be told apart: the width of a line."""


@dataclass(frozen=True, kw_only=True)
class Turns:
    """How many lines coincide, and which of them a line is.

    Attributes
    ----------
    together
        int64, a row per line: lines that coincide with it there, itself among them; 0 where it has
        no point.
    place
        int64, of the same shape: which of these it is, from 0.
    """

    together: np.ndarray
    place: np.ndarray


def coinciding(heights: np.ndarray) -> tuple[Turns, Turns]:
    """Return the turns that lines take at their points, and on the stretches between two of them.

    *heights*, lines by points, are shares of the panel's height; NaN where a line has no point.
    Lines coincide on a stretch if they do at both of its ends.
    """
    group = np.stack([_groups(column) for column in heights.T], axis=1)
    same = group[:, np.newaxis] == group  # NaN is like nothing, not even itself
    return _turns(same), _turns(same[..., :-1] & same[..., 1:])


def _groups(heights: np.ndarray) -> np.ndarray:
    """Return the lowest height among those a line cannot be told apart from, line by line."""
    groups = np.full(len(heights), np.nan)
    lowest = -np.inf
    for line in np.argsort(heights):
        if not heights[line] <= lowest + _APART:
            lowest = heights[line]
        groups[line] = lowest
    return groups


def _turns(same: np.ndarray) -> Turns:
    earlier = np.tri(len(same), k=-1, dtype=bool)[..., np.newaxis]
    return Turns(together=same.sum(axis=1), place=(same & earlier).sum(axis=1))
