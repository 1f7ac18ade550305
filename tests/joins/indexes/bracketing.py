"""Brackets of a stream's own sorted keys among stored ones, for probes that take them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from joins.indexes.immutable.order_arrays import offset
from joins.indexes.range_search import Brackets


def brackets_of(own: Sequence[np.ndarray], stored: Sequence[np.ndarray]) -> Brackets:
    """Return the brackets of *own* keys, ascending as *stored* ones are, a column per predicate."""
    arrays = (offset(mine, theirs)[0] for mine, theirs in zip(own, stored, strict=True))
    return Brackets(tuple(own), tuple(arrays))
