"""How soon a RaP-Table's splitters fit the values (PanJoin, Figure 10f).

In the clock: nothing; adjustments are counted.

A stream fills one subwindow after the other; each takes the splitters that the one before has
sampled, the first those of values spread evenly over 32-bit integers. The error is the mean
absolute difference of partitions from an even share, in shares. Adjustments count until the error
is within a tenth of the least that any of the subwindows reached: equal values cannot be parted, so
that the least is not always near 0.

At most ⌈log_P 2^32⌉ adjustments is what the paper proves for values of 32 bits: three with 2,048
partitions and its own 64K, four with 256. It never sees more than three.

Run: ``python -m benchmarks.panjoin_splitters [--subwindow-bits 18] [--json]``
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from math import ceil, log2

import numpy as np
import pyarrow.parquet as pq

from benchmarks.measure import Result, command_line, report
from joins.indexes.panjoin.rap_table import RapTable, even_splitters
from joins.indexes.panjoin.subwindow import Subwindow, SubwindowShape
from scenarios.streams import find_file, look_for

SUBWINDOWS = 8
BATCH = 32_768
PARTITIONS = (256, 2_048)
INT32 = np.iinfo(np.int32)
RANGE = 2.0**32
WITHIN = 1.1

Draw = Callable[[np.random.Generator, int], np.ndarray]


def uniform(share: float, modes: int) -> Draw:
    """Return a drawer of values from *modes* stretches, together *share* of the range."""
    width = share * RANGE / modes

    def draw(rng: np.random.Generator, count: int) -> np.ndarray:
        return _centres(rng, count, modes) + rng.uniform(-width / 2, width / 2, count)

    return draw


def normal(deviation: float, modes: int) -> Draw:
    """Return a drawer from a mixture of *modes* normals, *deviation* in parts of the range."""

    def draw(rng: np.random.Generator, count: int) -> np.ndarray:
        return _centres(rng, count, modes) + rng.normal(0, deviation * RANGE, count)

    return draw


def column(file: str, name: str) -> Draw:
    """Return a drawer from the values of a data set's column, with replacement."""
    values = pq.read_table(find_file((file,)), columns=[name])[name].drop_null().to_numpy()
    return lambda rng, count: rng.choice(values, count)


def _centres(rng: np.random.Generator, count: int, modes: int) -> np.ndarray:
    places = (np.arange(modes) + 0.5) / modes
    return INT32.min + RANGE * rng.choice(places, count)


def errors(draw: Draw, tuples: int, partitions: int) -> list[float]:
    """Return the error in each of some subwindows that follow on each other."""
    rng = np.random.default_rng(10)
    shape = SubwindowShape(predicates=1, capacity=tuples, partitions=partitions, sigma=1.25)
    splitters: np.ndarray | None = even_splitters(INT32.min, INT32.max, partitions)
    found = []
    for number in range(SUBWINDOWS):
        subwindow = Subwindow(shape, "rap_table", first=number * tuples, splitters=splitters)
        for first in range(subwindow.first, subwindow.first + tuples, BATCH):
            values = np.clip(draw(rng, min(BATCH, tuples)), INT32.min, INT32.max).astype(np.int64)
            order = np.argsort(values)
            subwindow.insert([values[order]], first + order)
        table = subwindow.structure
        assert isinstance(table, RapTable)
        assert table.llat.used[0] <= 2 * partitions
        found.append(float(np.abs(table.histogram.tuples * partitions / tuples - 1).mean()))
        splitters = subwindow.sampled
    return found


def measure(tuples: int) -> list[Result]:
    """Return for every distribution the adjustments it takes, and the errors on the way."""
    drawers = {
        "U(1, 1)": uniform(1.0, 1),
        "U(0.01, 4)": uniform(0.01, 4),
        "N(0.1, 1)": normal(0.1, 1),
        "N(0.01, 4)": normal(0.01, 4),
        "N(0.0001, 4)": normal(0.0001, 4),
    }
    for name, file, field in (
        ("YouTube views", "youtube_video_stats.parquet", "views"),
        ("stock volume", "stock_us_trade_ticks.parquet", "volume"),
    ):
        if look_for(file):
            drawers[name] = column(file, field)
        else:
            print(f"{name}: left out, as there is no {file}", file=sys.stderr)
    results = []
    for name, draw in drawers.items():
        for partitions in PARTITIONS:
            found = errors(draw, tuples, partitions)
            needed = next(i for i, error in enumerate(found) if error <= WITHIN * min(found))
            results.append(
                Result.of(
                    f"{name}, P = {partitions:,}: adjustments",
                    [needed],
                    unit="",
                    target=ceil(32 / log2(partitions)),
                    at_least=False,
                    note="errors " + ", ".join(f"{error:.2f}" for error in found[:5]),
                )
            )
    return results


def main() -> None:
    """Measure and print."""
    parser = command_line(__doc__)
    parser.add_argument("--subwindow-bits", type=int, default=18, help="tuples 2^BITS (18)")
    options = parser.parse_args()
    report("panjoin_splitters", measure(1 << options.subwindow_bits))


if __name__ == "__main__":
    main()
