"""What worlds are made of, drawn by numpy from a seed, as strategies of hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from hypothesis import strategies as st

Value = TypeVar("Value")


def drawn(draw: Callable[..., Value], *arguments: Any, **options: Any) -> st.SearchStrategy[Value]:
    """Return what *draw*, of `scenarios.worlds.drawing`, draws from seeds."""
    seeds = st.integers(0, 2**32 - 1)
    return seeds.map(lambda seed: draw(np.random.default_rng(seed), *arguments, **options))
