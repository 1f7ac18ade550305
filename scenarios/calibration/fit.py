"""From watched runs to a cost profile: least squares of relative errors, no cost below zero.

A profile for all systems at once would have to explain with one price a comparison what some do in
vectors and others along pointers. So the units keep the prices of the default profile, and each
operator of each system gets a factor for its own work beside what a message and a tuple cost in the
code around it. The transport of messages is fitted to live runs, over all systems together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from netsim.cost import LOCAL, OPERATORS, CostProfile, load_profile
from netsim.operator_cost import OperatorCost
from scenarios.calibration.observe import Observed
from scenarios.calibration.transport import Carried

_PS_PER_S = 1e12
COSTS = tuple(cost.name for cost in fields(CostProfile) if cost.name != "name")
"""What a profile prices."""

Operators = Mapping[str, Mapping[str, OperatorCost]]
"""System to operator to its cost."""


@dataclass(frozen=True, kw_only=True)
class Calibrated:
    """A profile that was measured.

    Attributes
    ----------
    base
        The units' prices, and the transport between processes.
    local_message_ps
        Transport of a message within a process.
    operators
        What operators cost on top, by system and name.
    """

    base: CostProfile
    local_message_ps: int
    operators: Operators


def fit(
    observed: Mapping[str, Mapping[str, Sequence[Observed]]], carried: Sequence[Carried]
) -> Calibrated:
    """Return the costs nearest to what runs took.

    Parameters
    ----------
    observed
        System to operator to its part in each run.
    carried
        Live runs.

    Raises
    ------
    ValueError
        There are no runs.
    """
    if not observed or not carried:
        raise ValueError("a profile is fitted to runs; there are none")
    local_ps, more_ps, byte_ps = _relative_fit(
        np.array([run.counts for run in carried]), np.array([run.seconds for run in carried])
    )
    base = replace(
        load_profile(),
        name="calibrated",
        message_ps=local_ps + more_ps,
        row_ps=0,
        byte_ps=byte_ps,
    )
    operators = {
        system: {role: fit_operator(base, runs) for role, runs in roles.items()}
        for system, roles in observed.items()
    }
    return Calibrated(base=base, local_message_ps=local_ps, operators=operators)


def fit_operator(base: CostProfile, runs: Sequence[Observed]) -> OperatorCost:
    """Return the cost nearest to what an operator took in some *runs*, each weighing the same."""
    counts = np.array([_counts(base, run) for run in runs], np.float64)
    message_ps, row_ps, work = _relative_fit(counts, np.array([run.seconds for run in runs]))
    return OperatorCost(message_ps=message_ps, row_ps=row_ps, work_percent=round(work / 10))


def seconds(base: CostProfile, cost: OperatorCost, run: Observed) -> float:
    """Return what *cost* makes of an operator's part in a run."""
    prices = [cost.message_ps, cost.row_ps, cost.work_percent * 10]
    return float(np.dot(_counts(base, run), prices)) / _PS_PER_S


def _counts(base: CostProfile, run: Observed) -> list[float]:
    """Return messages, tuples, and work in nanoseconds of the profile's."""
    return [run.messages, run.rows, base.work_ns(run.work)]


def _relative_fit(counts: np.ndarray, took: np.ndarray) -> list[int]:
    """Return picoseconds of each column's unit; runs that took no time say nothing."""
    counts, took = counts[took > 0], took[took > 0]
    found = least_squares(counts / took[:, None], np.ones(len(took)))
    return [round(cost * _PS_PER_S) for cost in found.tolist()]


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


def write(profile: Calibrated, path: Path, told: str) -> None:
    """Write *profile* as a TOML file, *told* as its first line."""
    lines = [f"# {told}", *(f"{name} = {getattr(profile.base, name)}" for name in COSTS)]
    lines.append(f"{LOCAL} = {profile.local_message_ps}")
    for system, roles in profile.operators.items():
        for role, cost in roles.items():
            values = (f"{key} = {value}" for key, value in vars(cost).items())
            lines += ["", f'[{OPERATORS}.{system}."{role}"]', *values]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
