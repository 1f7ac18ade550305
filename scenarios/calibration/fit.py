"""From watched runs to a cost profile: least squares of relative errors, no cost below zero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np

from netsim.cost import CostProfile, load_profile
from scenarios.calibration.observe import Observed

_PS_PER_S = 1e12
COSTS = tuple(cost.name for cost in fields(CostProfile) if cost.name != "name")
"""What a profile prices, in the order of `Observed.counts`."""


def fit(runs: Sequence[Observed]) -> CostProfile:
    """Return the costs whose sums come nearest to what the *runs* took, each run weighing the same.

    What no run did costs what it costs in the default profile.

    Raise :exc:`ValueError` without any runs.
    """
    if not runs:
        raise ValueError("a profile is fitted to runs; there are none")
    counts = np.array([run.counts for run in runs])
    done = counts.sum(axis=0).tolist()
    relative = counts / np.array([[run.seconds] for run in runs])
    seconds = least_squares(relative, np.ones(len(runs)))
    default = load_profile()
    costs = {
        name: round(cost * _PS_PER_S) if often else getattr(default, name)
        for name, cost, often in zip(COSTS, seconds.tolist(), done, strict=True)
    }
    return CostProfile(name="calibrated", **costs)


def errors(profile: CostProfile, runs: Sequence[Observed]) -> np.ndarray:
    """Return for each run how far its priced seconds are from those measured, as a fraction."""
    prices = np.array([getattr(profile, name) for name in COSTS]) / _PS_PER_S
    return np.array([run.counts @ prices / run.seconds - 1 for run in runs])


def least_squares(rows: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return x of 0 or more that brings ``rows @ x`` nearest to *wanted* (Lawson and Hanson)."""
    scale = np.linalg.norm(rows, axis=0)
    scale[scale == 0] = 1.0
    scaled = rows / scale
    x, free = np.zeros(rows.shape[1]), np.zeros(rows.shape[1], bool)
    for _ in range(3 * len(x)):
        pull = scaled.T @ (wanted - scaled @ x)
        pull[free] = 0.0
        if pull.max(initial=0.0) < 1e-9:
            break
        free[pull.argmax()] = True
        while True:
            best = np.zeros_like(x)
            best[free] = np.linalg.lstsq(scaled[:, free], wanted, rcond=None)[0]
            below = free & (best <= 0)
            if not below.any():
                break
            step = (x[below] / np.maximum(x[below] - best[below], 1e-300)).min()
            x = np.maximum(x + step * (best - x), 0.0)
            free &= x > 1e-15
        x = best
    return x / scale


def write(profile: CostProfile, path: Path, told: str) -> None:
    """Write *profile* as a TOML file, *told* as its first line."""
    lines = [f"# {told}", *(f"{name} = {getattr(profile, name)}" for name in COSTS)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
