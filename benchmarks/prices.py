"""Compare virtual with real time, operation by operation of every structure.

Every structure that a system is made of works at sizes of 2^11 to 2^21 tuples, by 8 and 256 tuples
at a time (`benchmarks.structure_work`); what its operations counted is priced, and compared
with processor time. Two kinds of prices:

default
    Those of the default profile, one for each unit of work, whatever the structure.
fitted
    For each operation of each structure a price for a call and a factor for all else, both by the
    structure's size, and prices for a tuple and for each unit of work. They are fitted at other
    sizes, batches and numbers of matches than they are compared with.

A figure is the share of measurements that prices predict within 0.75 to 1.33: the fitted ones; the
note has the same for the default ones, and the least and the greatest ratio for both. The last
figures are about structures that could take each other's place: of all pairs that differ by a tenth
or more in real time, how many are in that order in virtual time.

Run: ``python -m benchmarks.prices [--passes 3] [--json]``
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.optimize import nnls

from benchmarks.measure import Result, report
from benchmarks.structure_work import Sample, measure_all
from joins.indexes.immutable.segments import SEGMENTS
from joins.indexes.panjoin.subwindow import STRUCTURES
from joins.indexes.windows.window_indexes import WINDOW_INDEXES
from joins.machine.memory import keep_freed_memory
from joins.window_join.registry import INDEXES
from netsim.cost import load_profile

_SIZES = tuple(1 << bits for bits in range(11, 22, 2))
_BATCHES = (8, 256)
_MATCHES = (16,)
_LEAST, _MOST = 0.75, 1.33
_DIFFERENT = 1.1
_ALTERNATIVES = {
    "window indexes": tuple(WINDOW_INDEXES),
    "segments": tuple(SEGMENTS),
    "subwindows": tuple(STRUCTURES),
    "window joins": tuple(f"ibwj_{index}" for index in INDEXES),
}
_ROUNDS = 50
_PULL = 0.03
"""Weight of the default profile's prices beside a measurement's relative error: where measurements
do not tell two units apart, their prices stay in proportion to those."""

Predict = Callable[[Sample], float]
"""The virtual time of a call, in seconds."""


@dataclass(frozen=True, kw_only=True)
class OperationPrices:
    """Fitted prices of one operation, in seconds.

    Attributes
    ----------
    sizes, call, factor
        At each of these sizes what a call costs, and how much of the other prices is charged.
    units
        The price of a tuple, and of a unit of each counter of work.
    """

    sizes: np.ndarray
    call: np.ndarray
    factor: np.ndarray
    units: np.ndarray

    def predict(self, sample: Sample) -> float:
        """Return the virtual time of a call, in seconds; between two sizes it is interpolated."""
        call = np.interp(sample.size, self.sizes, self.call)
        factor = np.interp(sample.size, self.sizes, self.factor)
        return float(call + factor * (_counts(sample) @ self.units))


def main() -> None:
    """Measure, fit, compare and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--passes", type=int, default=3, help="measure each N times (3)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    keep_freed_memory()
    profile = load_profile()
    operations: dict[str, list[Sample]] = defaultdict(list)
    for sample in measure_all(passes=options.passes):
        operations[sample.name].append(sample)
    fitted = {name: fit(samples, profile.unit_ps) for name, samples in operations.items()}
    prices: dict[str, Predict] = {
        "default": lambda sample: profile.work_ns(sample.work) / 1e9 / sample.calls,
        "fitted": lambda sample: fitted[sample.name].predict(sample),
    }
    samples = measure_all(_SIZES, _BATCHES, _MATCHES, passes=options.passes)
    results = [*within(prices, samples), *ordered(prices, samples)]
    report("virtual over real time, within 0.75 to 1.33", results)


def fit(samples: Sequence[Sample], default_ps: Sequence[int]) -> OperationPrices:
    """Fit the prices of units, and what belongs to a size, in turns; none is below zero."""
    took = np.array([sample.call_seconds for sample in samples])
    counts = np.array([_counts(sample) for sample in samples])
    at = np.array([sample.size for sample in samples])
    sizes = np.unique(at)
    call, factor = np.zeros(len(sizes)), np.ones(len(sizes))
    for _ in range(_ROUNDS):
        place = np.searchsorted(sizes, at)
        scaled, rest = counts * factor[place, None], took - call[place]
        units = _fit_units(scaled / took[:, None], rest / took, default_ps)
        other = counts @ units
        for size, _ in enumerate(sizes):
            mine = place == size
            rows = np.column_stack([np.ones(mine.sum()), other[mine]]) / took[mine, None]
            call[size], factor[size] = nnls(rows, np.ones(len(rows)))[0]
    return OperationPrices(sizes=sizes, call=call, factor=factor, units=units)


def within(prices: Mapping[str, Predict], samples: Sequence[Sample]) -> Iterator[Result]:
    """Yield for each operation, and for all, the share of samples that prices predict well."""
    for name in (*dict.fromkeys(sample.name for sample in samples), "all"):
        shares, notes = [], []
        for kind, predict in prices.items():
            ratios = [predict(s) / s.call_seconds for s in samples if name in (s.name, "all")]
            shares.append(sum(_LEAST <= ratio <= _MOST for ratio in ratios) / len(ratios))
            notes.append(f"{kind} {shares[-1]:.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
        yield Result.of(name, shares[-1:], unit="", note="; ".join(notes))


def ordered(prices: Mapping[str, Predict], samples: Sequence[Sample]) -> Iterator[Result]:
    """Yield for each kind of structure the share of pairs that are ordered as in real time."""
    for structures, names in _ALTERNATIVES.items():
        cases: dict[tuple[str, int, int], list[Sample]] = defaultdict(list)
        for sample in samples:
            if sample.structure in names:
                cases[sample.step, sample.size, sample.batch].append(sample)
        pairs = [
            sorted(pair, key=lambda sample: sample.call_seconds)
            for case in cases.values()
            for pair in combinations(case, 2)
        ]
        pairs = [p for p in pairs if p[1].call_seconds >= _DIFFERENT * p[0].call_seconds]
        shares = [
            sum(predict(less) < predict(more) for less, more in pairs) / len(pairs)
            for predict in prices.values()
        ]
        notes = (f"{kind} {share:.2f}" for kind, share in zip(prices, shares, strict=True))
        yield Result.of(f"{structures}: order", shares[-1:], unit="", note="; ".join(notes))


def _counts(sample: Sample) -> np.ndarray:
    """Return the tuples of a call, and the units of work that it counted on average."""
    return np.array([sample.batch, *(count / sample.calls for count in sample.work[:-1])])


def _fit_units(rows: np.ndarray, wanted: np.ndarray, default_ps: Sequence[int]) -> np.ndarray:
    """Return the prices of a tuple, and of each unit of work, in seconds."""
    default = np.array([1e-12, *(ps / 1e12 for ps in default_ps[:-1])])
    pull = np.diag(_PULL / default)[1:]  # a tuple has no price in the default profile
    rows, wanted = np.vstack([rows, pull]), np.append(wanted, np.full(len(pull), _PULL))
    scale = np.maximum(np.linalg.norm(rows, axis=0), 1e-30)
    prices, _ = nnls(rows / scale, np.maximum(wanted, 0))
    return np.asarray(prices / scale)


if __name__ == "__main__":
    main()
