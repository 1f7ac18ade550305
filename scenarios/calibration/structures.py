"""From what structures took and counted to their prices: least squares of relative errors.

Two things are fitted in turns, for each operation of each structure: the prices (a call, a tuple, a
unit of each counter), and the percents by size and tuples of a call (`netsim.structure_cost`). None
is below zero. Where measurements do not separate two units, their prices stay in proportion to
those of the default profile.
"""

from __future__ import annotations

import datetime
import platform
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from joins.work import COUNTERS, ELAPSED_NS
from netsim.structure_cost import StructureCost
from scenarios.calibration.structure_work import Sample
from scenarios.machine_record import describe_machine

PART_OF_CALL = {"interval_join.shared": "interval_join.join"}
"""Steps that are parts of a longer call, as of a thread that takes one tuple after the other; and
the operations that they are parts of."""

PS_PER_S = 10**12
_ROUNDS = 100
_LEAST, _MOST = 0.05, 1000
"""What part of a price is charged at the least, and at the most."""
_COPIED, _MATCHES = 2 + COUNTERS.index("bytes_copied"), 2 + COUNTERS.index("matches")
"""Columns of these units, behind a call and its tuples."""
_PULL = 0.03
"""Weight of a default price beside a measurement's relative error."""


def machine() -> dict[str, str | int]:
    """Return what kind of machine this is, and the date."""
    return describe_machine() | {
        "python": platform.python_version(),
        "date": datetime.date.today().isoformat(),
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

    Without *calls* a call has no price beside its tuples' and its work's.
    """
    counts = np.array([_counts(sample) / (sample.call_seconds * PS_PER_S) for sample in samples])
    counts[:, 0] *= calls
    sizes, at_size = np.unique([one.step.size for one in samples], return_inverse=True)
    # Where a call takes all tuples there are, the size says all.
    whole = all(sample.step.rows == sample.step.size for sample in samples)
    lengths = [1 if whole else sample.step.rows for sample in samples]
    rows, at_rows = np.unique(lengths, return_inverse=True)
    of_copied, of_matches = (np.arange(counts.shape[1]) == at for at in (_COPIED, _MATCHES))
    tables = (
        # Where the size says all, a price in proportion to it explains as much as percents do.
        _Factors(~(of_copied | of_matches), at_size, at_rows, pull=_PULL if whole else 0),
        _Factors(of_copied, at_size, 0 * at_rows, pull=_PULL),
        _Factors(of_matches, at_size, 0 * at_rows, pull=_PULL),
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


def _counts(sample: Sample) -> np.ndarray:
    """Return the calls and tuples of a call, and the units of work that it counted on average."""
    counted = (count / sample.calls for count in sample.work[:ELAPSED_NS])
    return np.array([1.0, sample.step.rows, *counted])


def _fit_prices(per_ps: np.ndarray, base_ps: Sequence[int]) -> np.ndarray:
    """Return the price of a call, a tuple and each unit, given calls' counts by what they took."""
    pull = np.diag(_PULL / np.array([1.0, 1.0, *base_ps[:ELAPSED_NS]]))[2:]
    rows = np.vstack([per_ps, pull])
    wanted = np.append(np.ones(len(per_ps)), np.full(len(pull), _PULL))
    return least_squares(rows, wanted)


def least_squares(rows: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the prices, none below zero, by which *rows* of counts come nearest to *wanted*."""
    # Only here: importing scipy takes a while, and most commands fit nothing.
    from scipy.optimize import nnls

    scale = np.linalg.norm(rows, axis=0)  # a message and a comparison are far apart
    scale[scale == 0] = 1.0
    prices, _ = nnls(rows / scale, wanted)
    return np.asarray(prices / scale)
