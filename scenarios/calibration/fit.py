"""From measurements to a cost profile: least squares of relative errors, no cost below zero.

Structures, from what their operations took alone: two things are fitted in turns, for each
operation of each structure: the prices (a call, a tuple, a unit of each counter), and the percents
by size and tuples of a call (`netsim.cost`). Where measurements do not separate two units, their
prices stay in proportion to those of the default profile.

Operators, from live runs: work has the prices of structures and of units; each operator of each
system gets a factor for its own, which shares a process with other operators, beside what a message
and a tuple cost in the code around it. Where runs do not separate these, the factor stays as near
to 1 as possible. The transport of messages is fitted over all systems together.
"""

from __future__ import annotations

import platform
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from actors.hosting.live.post import Served
from actors.whole_files import write_text
from joins.work import COUNTERS, ELAPSED_NS
from netsim.cost import COSTS, CostProfile, OperatorCost, StructureCost, TransportCost
from scenarios.calibration.live_runs import CarriedMessages
from scenarios.calibration.structure_work import Sample
from scenarios.formatting import format_toml
from scenarios.machine import describe_machine

PART_OF_CALL = {"interval_join.shared": "interval_join.join"}
"""Steps that are parts of a longer call, as of a thread that takes one tuple after the other; and
the operations that they are parts of."""

_PS_PER_S = 10**12
_ROUNDS = 100
_LEAST, _MOST = 0.05, 1000
"""What part of a price is charged at the least, and at the most."""
_COPIED, _MATCHES = 2 + COUNTERS.index("bytes_copied"), 2 + COUNTERS.index("matches")
"""Columns of these units, behind a call and its tuples."""
_PRICE_PULL = 0.03
"""Weight of a default price beside a measurement's relative error."""
_FACTOR_PULL = 0.001
"""Weight of a factor's distance from 1 beside a run's relative error: it decides where these do
not."""

Operators = Mapping[str, Mapping[str, OperatorCost]]
"""System to operator to its cost."""


@dataclass(frozen=True, kw_only=True)
class Calibrated:
    """A profile that was measured."""

    base: CostProfile
    """The units' prices, and what receiving a message from another process costs."""
    transport: TransportCost | None = None
    """What else messages cost; None where no live runs were watched."""
    operators: Operators = field(default_factory=dict)
    """What operators cost on top, by system and name."""
    machine: Mapping[str, str | int] = field(default_factory=dict)
    """What it was measured on, and when."""


def machine() -> dict[str, str | int]:
    """Return what kind of machine this is, and the date."""
    return describe_machine() | {
        "python": platform.python_version(),
        "date": datetime.now(UTC).date().isoformat(),
    }


def fit_structures(samples: Sequence[Sample], base_ps: Sequence[int]) -> dict[str, StructureCost]:
    """Return the prices nearest to what *samples* took, by the names of their steps.

    *base_ps* are prices of units, in the order of `joins.work.COUNTERS`, where the samples do not
    separate them. `PART_OF_CALL` has prices of its own, without one for a call.
    """
    by_name: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        by_name[sample.step.name].append(sample)
    costs = {name: fit_structure(some, base_ps) for name, some in by_name.items()}
    for name, whole in PART_OF_CALL.items():
        longest = max(sample.step.rows for sample in by_name[whole])
        parts = [sample for sample in by_name[whole] if sample.step.rows == longest]
        costs[name] = fit_structure(parts, base_ps, calls=False)
    return costs


def fit_structure(
    samples: Sequence[Sample], base_ps: Sequence[int], *, calls: bool = True
) -> StructureCost:
    """Return the prices nearest to what calls of one operation took, each weighing the same.

    Without *calls* a call has no price beside its tuples' and its work's. What was measured of a
    step by itself is for the prices of units alone.
    """
    counts = np.array(
        [_counts_of_call(sample) / (sample.call_seconds * _PS_PER_S) for sample in samples]
    )
    counts[:, 0] *= calls
    counts[[sample.is_part for sample in samples], :2] = 0
    sizes, at_size = np.unique([one.step.size for one in samples], return_inverse=True)
    # Where a call takes all tuples there are, the size says all.
    whole = all(sample.step.rows == sample.step.size for sample in samples)
    lengths = [1 if whole else sample.step.rows for sample in samples]
    rows, at_rows = np.unique(lengths, return_inverse=True)
    of_copied, of_matches = (np.arange(counts.shape[1]) == at for at in (_COPIED, _MATCHES))
    tables = (
        # Where the size says all, a price in proportion to it explains as much as percents do.
        _Factors(~(of_copied | of_matches), at_size, at_rows, pull=_PRICE_PULL if whole else 0),
        _Factors(of_copied, at_size, 0 * at_rows, pull=_PRICE_PULL),
        _Factors(of_matches, at_size, 0 * at_rows, pull=_PRICE_PULL),
    )
    prices = np.ones(counts.shape[1])
    for _ in range(_ROUNDS):
        prices = _fit_prices(counts * sum(table.of_columns() for table in tables), base_ps)
        for table in tables:
            others = sum(other.of_columns() for other in tables if other is not table)
            table.fit(counts * prices, (counts * others) @ prices)
    for table in tables:
        usual = np.median(table.factors)
        prices[table.columns] *= usual
        table.factors /= usual
    call_ps, row_ps, *unit_ps = np.rint(prices).astype(int).tolist()
    percents, copied, matched = (np.rint(table.factors * 100).astype(int) for table in tables)
    largest = max(samples, key=lambda sample: sample.step.size)
    return StructureCost(
        sizes=tuple(sizes.tolist()),
        rows=tuple(rows.tolist()),
        percents=tuple(map(tuple, percents.tolist())),
        call_ps=call_ps,
        row_ps=row_ps,
        unit_ps=tuple(unit_ps),
        copied_percents=tuple(copied[:, 0].tolist()) if (copied != 100).any() else (),
        match_percents=tuple(matched[:, 0].tolist()) if (matched != 100).any() else (),
        tuple_bytes=largest.nbytes // largest.step.size,
    )


class _Factors:
    """What part of their prices some *columns* are charged, by size and tuples of a call.

    A *pull* is the weight of a full price beside measurements: it decides where what these columns
    cost is a small part of what was measured.
    """

    def __init__(
        self, columns: np.ndarray, at_size: np.ndarray, at_rows: np.ndarray, *, pull: float
    ) -> None:
        self.columns, self.at_size, self.at_rows, self.pull = columns, at_size, at_rows, pull
        self.factors = np.ones((at_size.max() + 1, at_rows.max() + 1))

    def of_columns(self) -> np.ndarray:
        """Return for each sample the factor of each column: 0 of those that are not its own."""
        return np.outer(self.factors[self.at_size, self.at_rows], self.columns)

    def fit(self, priced: np.ndarray, others: np.ndarray) -> None:
        """Set the factors by which *priced* columns, and what *others* cost, come nearest to 1."""
        own, left = priced @ self.columns, 1 - others
        for size, rows in np.ndindex(self.factors.shape):
            mine = (self.at_size == size) & (self.at_rows == rows) & (own > 0)
            factor = np.nan
            if mine.any():
                factor = (own[mine] @ left[mine] + self.pull) / (own[mine] @ own[mine] + self.pull)
            self.factors[size, rows] = np.clip(factor, _LEAST, _MOST)
        # A size that was not measured gets the factor of the next smaller one, or else of a larger.
        for sizes in (range(1, len(self.factors)), range(len(self.factors) - 2, -1, -1)):
            for size in sizes:
                near = self.factors[size - 1 if sizes.step > 0 else size + 1]
                missing = np.isnan(self.factors[size])
                self.factors[size, missing] = near[missing]
        self.factors[np.isnan(self.factors)] = 1


def _counts_of_call(sample: Sample) -> np.ndarray:
    """Return the calls and tuples of a call, and the units of work that it counted on average."""
    counted = (count / sample.calls for count in sample.work[:ELAPSED_NS])
    return np.array([1.0, sample.step.rows, *counted])


def _fit_prices(per_ps: np.ndarray, base_ps: Sequence[int]) -> np.ndarray:
    """Return the price of a call, a tuple and each unit, given calls' counts by what they took."""
    pull = np.diag(_PRICE_PULL / np.array([1.0, 1.0, *base_ps[:ELAPSED_NS]]))[2:]
    rows = np.vstack([per_ps, pull])
    wanted = np.append(np.ones(len(per_ps)), np.full(len(pull), _PRICE_PULL))
    return least_squares(rows, wanted)


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
    seconds, *counts = np.array(carried, np.float64).T
    local_ps, more_ps, byte_ps, sent_ps, sent_byte_ps = _relative_fit(np.stack(counts, 1), seconds)
    base = replace(
        base, name="calibrated", message_ps=local_ps + more_ps, row_ps=0, byte_ps=byte_ps
    )
    operators = {
        system: {role: fit_operator(base, runs) for role, runs in roles.items()}
        for system, roles in observed.items()
    }
    transport = TransportCost(
        local_message_ps=local_ps, sent_message_ps=sent_ps, sent_byte_ps=sent_byte_ps
    )
    return Calibrated(base=base, transport=transport, operators=operators)


def fit_operator(base: CostProfile, runs: Sequence[Served]) -> OperatorCost:
    """Return the cost nearest to what an operator took in some *runs*, each weighing the same."""
    counts = np.array([_counts_in_run(base, run) for run in runs], np.float64)
    message_ps, row_ps, factor = _relative_fit(
        counts,
        np.array([run.worked_ns / 1e9 for run in runs]),
        near_one=np.array([[0, 0, 1e9]]),  # nanoseconds as seconds
    )
    return OperatorCost(message_ps=message_ps, row_ps=row_ps, work_percent=round(factor / 10))


def fitted_ns(base: CostProfile, cost: OperatorCost, run: Served) -> float:
    """Return what *cost* makes of an operator's part in a run."""
    costs = [cost.message_ps, cost.row_ps, cost.work_percent * 10]
    return float(np.dot(_counts_in_run(base, run), costs)) / 1000


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


def _counts_in_run(base: CostProfile, run: Served) -> list[float]:
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
        rows = np.vstack([rows, near_one * _FACTOR_PULL])
        wanted = np.append(wanted, np.full(len(near_one), _FACTOR_PULL))
    return [round(cost * _PS_PER_S) for cost in least_squares(rows, wanted).tolist()]


def least_squares(rows: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the prices, none below zero, by which *rows* of counts come nearest to *wanted*."""
    # Only here: importing scipy takes a while, and most commands fit nothing.
    from scipy.optimize import nnls

    scale = np.linalg.norm(rows, axis=0)  # a message and a comparison are far apart
    scale[scale == 0] = 1.0
    prices, _ = nnls(rows / scale, wanted)
    return np.asarray(prices / scale)


def write_profile(profile: Calibrated, path: Path, comment: str) -> None:
    """Write *profile* as a TOML file, *comment* as its first line."""
    base = profile.base
    lines = [f"# {comment}", *(f"{name} = {getattr(base, name)}" for name in COSTS)]
    tables: dict[str, Mapping[str, Any]] = {}
    if profile.machine:
        tables["machine"] = profile.machine
    if profile.transport is not None:
        tables["transport"] = vars(profile.transport)
    for system, roles in profile.operators.items():
        tables |= {f'operators.{system}."{role}"': vars(cost) for role, cost in roles.items()}
    if base.memory is not None:
        tables["memory"] = vars(base.memory)
    for name, cost in sorted(base.structures.items()):
        tables[f'structures."{name}"'] = cost.written(base.unit_ps)
    for table, values in tables.items():
        lines += ["", f"[{table}]", *(f"{key} = {_toml(value)}" for key, value in values.items())]
    write_text(path, "\n".join(lines) + "\n")


def _toml(value: Any) -> str:
    """Return a number, a text or nested tuples of numbers as TOML has them, a line per tuple."""
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        lines = ",\n    ".join(map(format_toml, value))
        return f"[{lines}]"
    return format_toml(value)
