"""From live runs to a cost profile: least squares of relative errors, no cost below zero.

One profile for all systems would need one price for a comparison, which some do in vectors and
others along pointers. So the units have the prices of the default profile, and each operator of
each system gets factors for its own work, one for each group of units, beside what a message and a
tuple cost in the code around it. Where runs do not separate the groups, their factors stay as near
to 1 as possible. The transport of messages is fitted to live runs, over all systems together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from actors.hosting.live.post import Served
from actors.whole_files import write_text
from netsim.cost import (
    GROUPS,
    OPERATORS,
    TRANSPORT,
    CostProfile,
    OperatorCost,
    Transport,
    load_profile,
)
from scenarios.calibration.live_runs import Carried

_PS_PER_S = 1e12
_PULL = 0.001
"""Weight of a factor's distance from 1 beside a run's relative error: it decides where these do
not."""
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
        The units' prices, and what receiving a message from another process costs.
    transport
        What else messages cost.
    operators
        What operators cost on top, by system and name.
    """

    base: CostProfile
    transport: Transport
    operators: Operators


def fit(
    observed: Mapping[str, Mapping[str, Sequence[Served]]], carried: Sequence[Carried]
) -> Calibrated:
    """Return the costs nearest to what runs took.

    Parameters
    ----------
    observed
        System to operator to its part in each run.
    carried
        What processes of the runs passed on.

    Raises
    ------
    ValueError
        There are no runs.
    """
    if not observed or not carried:
        raise ValueError("a profile is fitted to runs; there are none")
    local_ps, more_ps, byte_ps, sent_ps, sent_byte_ps = _relative_fit(
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
    transport = Transport(
        local_message_ps=local_ps, sent_message_ps=sent_ps, sent_byte_ps=sent_byte_ps
    )
    return Calibrated(base=base, transport=transport, operators=operators)


def fit_operator(base: CostProfile, runs: Sequence[Served]) -> OperatorCost:
    """Return the cost nearest to what an operator took in some *runs*, each weighing the same."""
    counts = np.array([_counts(base, run) for run in runs], np.float64)
    factors = np.zeros((len(GROUPS), counts.shape[1]))
    factors[:, -len(GROUPS) :] = np.eye(len(GROUPS)) * 1e9  # nanoseconds as seconds
    message_ps, row_ps, *of_groups = _relative_fit(
        counts, np.array([run.worked_ns / 1e9 for run in runs]), near_one=factors
    )
    percents = {group: round(ps / 10) for group, ps in zip(GROUPS, of_groups, strict=True)}
    return OperatorCost(message_ps=message_ps, row_ps=row_ps, **percents)


def fitted_ns(base: CostProfile, cost: OperatorCost, run: Served) -> float:
    """Return what *cost* makes of an operator's part in a run."""
    factors = [getattr(cost, group) * 10 for group in GROUPS]
    return float(np.dot(_counts(base, run), [cost.message_ps, cost.row_ps, *factors])) / 1000


def misfit(profile: Calibrated, observed: Mapping[str, Mapping[str, Sequence[Served]]]) -> float:
    """Return the median relative error of *profile* in what operators took in runs."""
    errors = [
        fitted_ns(profile.base, profile.operators[system][role], run) / run.worked_ns - 1
        for system, roles in observed.items()
        for role, runs in roles.items()
        for run in runs
        if run.worked_ns
    ]
    return float(np.median(np.abs(errors)))


def _counts(base: CostProfile, run: Served) -> list[float]:
    """Return messages, tuples, and work in nanoseconds of the profile's, by group."""
    free = {unit: 0 for units in GROUPS.values() for unit in units}
    priced = [{unit: getattr(base, unit) for unit in units} for units in GROUPS.values()]
    work = [replace(base, **(free | units)).work_ns(run.work) for units in priced]
    return [run.messages, run.rows, *work]


def _relative_fit(
    counts: np.ndarray, took: np.ndarray, near_one: np.ndarray | None = None
) -> list[int]:
    """Return picoseconds of each column's unit; runs that took no time are ignored.

    Rows of *near_one*, times the units' seconds, are pulled towards 1.
    """
    counts, took = counts[took > 0], took[took > 0]
    rows, wanted = counts / took[:, None], np.ones(len(took))
    if near_one is not None:
        rows = np.vstack([rows, near_one * _PULL])
        wanted = np.append(wanted, np.full(len(near_one), _PULL))
    scale = np.linalg.norm(rows, axis=0)  # a message and a comparison are far apart
    scale[scale == 0] = 1.0
    # Only here: importing scipy takes a while, and most commands fit nothing.
    from scipy.optimize import nnls

    costs, _ = nnls(rows / scale, wanted)
    return [round(cost * _PS_PER_S) for cost in (costs / scale).tolist()]


def write_profile(profile: Calibrated, path: Path, comment: str) -> None:
    """Write *profile* as a TOML file, *comment* as its first line."""
    lines = [f"# {comment}", *(f"{name} = {getattr(profile.base, name)}" for name in COSTS)]
    tables = {TRANSPORT: profile.transport} | {
        f'{OPERATORS}.{system}."{role}"': cost
        for system, roles in profile.operators.items()
        for role, cost in roles.items()
    }
    for table, costs in tables.items():
        lines += ["", f"[{table}]", *(f"{key} = {value}" for key, value in vars(costs).items())]
    write_text(path, "\n".join(lines) + "\n")
