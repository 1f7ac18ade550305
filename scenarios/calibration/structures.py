"""From what structures took and counted to their prices: least squares of relative errors.

Two things are fitted in turns, for each operation of each structure: the prices (a call, a tuple, a
unit of each counter), and the percents by size and tuples of a call (`netsim.structures`). None is
below zero. Where measurements do not separate two units, their prices stay in proportion to those
of the default profile.
"""

from __future__ import annotations

import datetime
import platform
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from joins.work import ELAPSED_NS
from netsim.structures import StructureCost
from scenarios.calibration.structure_work import BATCHES, MATCHES, SIZES, Sample, measure_all
from scenarios.machine_record import describe_machine

PART_OF_CALL = {"interval_join.shared": "interval_join.join"}
"""Steps that are parts of a longer call, as of a thread that takes one tuple after the other; and
the operations that they are parts of."""

_PS_PER_S = 10**12
_ROUNDS = 30
_PULL = 0.03
"""Weight of a default price beside a measurement's relative error."""


def machine() -> dict[str, str | int]:
    """Return what kind of machine this is, and the date."""
    return describe_machine() | {
        "python": platform.python_version(),
        "date": datetime.date.today().isoformat(),
    }


def calibrate_structures(
    base_ps: Sequence[int],
    *,
    sizes: Sequence[int] = SIZES,
    passes: int = 2,
    note: Callable[[str], None] = lambda line: None,
) -> dict[str, StructureCost]:
    """Measure every operation of every structure on this machine; return prices by their names.

    Parameters
    ----------
    base_ps
        Prices of units, in the order of `joins.work.COUNTERS`, where measurements do not tell.
    sizes
        Tuples of structures.
    passes
        How often each is measured; the least time counts.
    note
        Called with what is measured next.
    """
    samples = measure_all(sizes, BATCHES, MATCHES, passes=passes, note=note)
    return fit_structures(samples, base_ps)


def fit_structures(samples: Sequence[Sample], base_ps: Sequence[int]) -> dict[str, StructureCost]:
    """Return the prices nearest to what *samples* took, by the names of their steps.

    `PART_OF_CALL` has prices of its own, without one for a call.
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


def off_by(samples: Sequence[Sample], costs: Mapping[str, StructureCost]) -> np.ndarray:
    """Return by what factor virtual time differs from processor time, sample by sample."""
    priced = [costs[s.step.name].work_ps(s.step, s.work, s.calls) / _PS_PER_S for s in samples]
    return np.asarray(priced) / [sample.seconds for sample in samples]


def fit_structure(
    samples: Sequence[Sample], base_ps: Sequence[int], *, calls: bool = True
) -> StructureCost:
    """Return the prices nearest to what calls of one operation took, each weighing the same.

    Without *calls* a call has no price beside its tuples' and its work's.
    """
    took = np.array([sample.call_seconds * _PS_PER_S for sample in samples])
    counts = np.array([_counts(sample) for sample in samples])
    counts[:, 0] *= calls
    sizes, at_size = np.unique([one.step.size for one in samples], return_inverse=True)
    # Where a call takes all tuples there are, the size says all.
    whole = all(sample.step.rows == sample.step.size for sample in samples)
    of_calls = [1 if whole else sample.step.rows for sample in samples]
    rows, at_rows = np.unique(of_calls, return_inverse=True)
    factors = np.ones((len(sizes), len(rows)))
    prices = np.zeros(counts.shape[1])
    for _ in range(_ROUNDS):
        prices = _fit_prices(counts * (factors[at_size, at_rows] / took)[:, None], base_ps)
        priced = counts @ prices / took
        for place in np.ndindex(factors.shape):
            mine = priced[(at_size == place[0]) & (at_rows == place[1])]
            factors[place] = mine.sum() / (mine @ mine) if mine.any() else np.nan
        # Where nothing was measured, calls of a smaller size stand for it.
        for size in range(1, len(sizes)):
            factors[size] = np.where(np.isnan(factors[size]), factors[size - 1], factors[size])
    usual = np.median(factors)
    call_ps, row_ps, *unit_ps = np.rint(prices * usual).astype(int).tolist()
    return StructureCost(
        sizes=tuple(sizes.tolist()),
        rows=tuple(rows.tolist()),
        percents=tuple(tuple(row) for row in np.rint(factors / usual * 100).astype(int).tolist()),
        call_ps=call_ps,
        row_ps=row_ps,
        unit_ps=tuple(unit_ps),
    )


def _counts(sample: Sample) -> np.ndarray:
    """Return the calls and tuples of a call, and the units of work that it counted on average."""
    counted = (count / sample.calls for count in sample.work[:ELAPSED_NS])
    return np.array([1.0, sample.step.rows, *counted])


def _fit_prices(per_ps: np.ndarray, base_ps: Sequence[int]) -> np.ndarray:
    """Return the price of a call, a tuple and each unit, given calls' counts by what they took."""
    # Only here: importing scipy takes a while, and most commands fit nothing.
    from scipy.optimize import nnls

    pull = np.diag(_PULL / np.array([1.0, 1.0, *base_ps[:ELAPSED_NS]]))[2:]
    rows = np.vstack([per_ps, pull])
    wanted = np.append(np.ones(len(per_ps)), np.full(len(pull), _PULL))
    scale = np.maximum(np.linalg.norm(rows, axis=0), 1e-30)
    prices, _ = nnls(rows / scale, wanted)
    return np.asarray(prices / scale)
