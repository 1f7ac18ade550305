"""From live runs to a cost profile: least squares of relative errors, no cost below zero.

Work has the prices of structures (`scenarios.calibration.structures`) and of units; each operator
of each system gets a factor for its own, which shares a process with other operators, beside what a
message and a tuple cost in the code around it. Where runs do not separate these, the factor stays
as near to 1 as possible. The transport of messages is fitted over all systems together.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from actors.hosting.live.post import Served
from actors.whole_files import write_text
from netsim.cost import (
    COSTS,
    MACHINE,
    MEMORY,
    OPERATORS,
    STRUCTURES,
    TRANSPORT,
    CostProfile,
    OperatorCost,
    Transport,
)
from scenarios.calibration.live_runs import CarriedMessages
from scenarios.calibration.structures import PS_PER_S, least_squares

_PULL = 0.001
"""Weight of a factor's distance from 1 beside a run's relative error: it decides where these do
not."""

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
        What else messages cost; None where no live runs were watched.
    operators
        What operators cost on top, by system and name.
    machine
        What it was measured on, and when.
    """

    base: CostProfile
    transport: Transport | None = None
    operators: Operators = field(default_factory=dict)
    machine: Mapping[str, str | int] = field(default_factory=dict)


def fit(
    observed: Mapping[str, Mapping[str, Sequence[Served]]],
    carried: Sequence[CarriedMessages],
    base: CostProfile,
) -> Calibrated:
    """Return the costs nearest to what runs took.

    Parameters
    ----------
    observed
        System to operator to its part in each run.
    carried
        What processes of the runs passed on.
    base
        What it keeps: the prices of units and structures, and the machine's memory.

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
        base, name="calibrated", message_ps=local_ps + more_ps, row_ps=0, byte_ps=byte_ps
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
    message_ps, row_ps, factor = _relative_fit(
        counts,
        np.array([run.worked_ns / 1e9 for run in runs]),
        near_one=np.array([[0, 0, 1e9]]),  # nanoseconds as seconds
    )
    return OperatorCost(message_ps=message_ps, row_ps=row_ps, work_percent=round(factor / 10))


def fitted_ns(base: CostProfile, cost: OperatorCost, run: Served) -> float:
    """Return what *cost* makes of an operator's part in a run."""
    costs = [cost.message_ps, cost.row_ps, cost.work_percent * 10]
    return float(np.dot(_counts(base, run), costs)) / 1000


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
    """Return messages, tuples, and work in nanoseconds of the profile's."""
    work_ns = base.work_ns(run.work)
    for step, calls, work in run.steps():
        cost = base.structures.get(step.name)
        work_ns += base.work_ns(work) if cost is None else cost.work_ps(step, work, calls) // 1000
    return [run.messages, run.rows, work_ns]


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
    return [round(cost * PS_PER_S) for cost in least_squares(rows, wanted).tolist()]


def write_profile(profile: Calibrated, path: Path, comment: str) -> None:
    """Write *profile* as a TOML file, *comment* as its first line."""
    base = profile.base
    lines = [f"# {comment}", *(f"{name} = {getattr(base, name)}" for name in COSTS)]
    tables: dict[str, Mapping[str, Any]] = {}
    if profile.machine:
        tables[MACHINE] = profile.machine
    if profile.transport is not None:
        tables[TRANSPORT] = vars(profile.transport)
    for system, roles in profile.operators.items():
        tables |= {f'{OPERATORS}.{system}."{role}"': vars(cost) for role, cost in roles.items()}
    if base.memory is not None:
        tables[MEMORY] = vars(base.memory)
    for name, cost in sorted(base.structures.items()):
        tables[f'{STRUCTURES}."{name}"'] = cost.written(base.unit_ps)
    for table, values in tables.items():
        lines += ["", f"[{table}]", *(f"{key} = {_toml(value)}" for key, value in values.items())]
    write_text(path, "\n".join(lines) + "\n")


def _toml(value: Any) -> str:
    """Return a number, a text or nested tuples of numbers as TOML has them."""
    if isinstance(value, tuple):
        inner = ",\n    " if value and isinstance(value[0], tuple) else ", "
        return f"[{inner.join(map(_toml, value))}]"
    return json.dumps(value)
