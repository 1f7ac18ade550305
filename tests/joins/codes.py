"""Codes of values for tests: few, so that ties are everywhere, over the whole range of int64."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from joins.codes import encode

LEAST, GREATEST = (int(bound) for bound in (np.iinfo(np.int64).min, np.iinfo(np.int64).max))

_FLOATS = [-np.inf, -1e300, -1.5, -5e-324, -0.0, 0.1, 2.0, np.inf]
CODES = (
    *(LEAST, LEAST + 1, -3, -1, 0, 1, 2, GREATEST - 1, GREATEST),
    *encode(np.array(_FLOATS)).tolist(),
)
"""The extremes, small integers, and what floats lie at: near the extremes, but for the smallest."""

codes = st.integers(-6, 6) | st.sampled_from(CODES)


def draw_codes(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return *n* of `CODES`, int64."""
    return rng.choice(np.array(CODES), n)
