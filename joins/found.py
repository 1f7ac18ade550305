"""What a probe of one index found, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from joins.work import Work


@dataclass(frozen=True, kw_only=True)
class Found:
    """The matches of some probing tuples in one index, a row per probing tuple.

    Attributes
    ----------
    count
        int64, matches found for each.
    fingerprint
        uint64, for each the wrapping sum over its matches of ``splitmix64(position)``.
    match_id
        int64, positions of the matches of the first row, then of the second, ...; in no particular
        order within a row; None when only counted.
    work
        What the probes cost together.
    """

    count: np.ndarray
    fingerprint: np.ndarray
    match_id: np.ndarray | None
    work: Work
