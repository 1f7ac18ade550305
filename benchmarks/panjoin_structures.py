"""PanJoin's three structures alone: insertion and probing as its Figures 10 to 13 vary them.

A rate is tuples per second of processor time on one core. Insertion fills an empty subwindow by
sorted batches; probing asks a full one for the values within a band, of which it holds as many as
the selectivity says: a BI-Sort answers with records, the others list their matches. Each trend of
the paper is a ratio of two rates, with the paper's own figure where it gives one, else 1. The paper
has 8M tuples, 64K partitions and 8 threads; here ratios between sizes are kept, not the sizes.

Run: ``python -m benchmarks.panjoin_structures [--subwindow-bits 20] [--repeats 3] [--json]``
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from benchmarks.measure import Result, report
from joins.indexes.b_plus.b_plus_tree import BPlusTree
from joins.indexes.index import Ranges, encode_ranges
from joins.indexes.panjoin.bi_sort import BiSort
from joins.indexes.panjoin.subwindow import Subwindow, SubwindowShape, probe_subwindows

INT = ("int64",)
KEY_RANGE = 1 << 30
PROBES = 32_768
NAMES = {
    "bi_sort": "BI-Sort",
    "rap_table": "RaP-Table",
    "wib_tree": "WiB+-Tree",
    "b_plus_tree": "B+-tree",
}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is inserted into or probed.

    Attributes
    ----------
    kind
        A structure, or ``b_plus_tree``.
    tuples, partitions, batch
        N_Sub, P, N_Bat.
    selectivity
        S; None inserts.
    """

    kind: str
    tuples: int
    partitions: int
    batch: int
    selectivity: int | None = None


@cache
def _keys(tuples: int) -> np.ndarray:
    return np.random.default_rng(13).integers(0, KEY_RANGE, tuples)


def _fill(setting: Setting) -> tuple[Subwindow | BPlusTree, float]:
    """Return a full subwindow, or tree, and the seconds that insertion took."""
    keys, seconds = _keys(setting.tuples), 0.0
    shape = SubwindowShape(
        dtypes=INT, capacity=setting.tuples, partitions=setting.partitions, sigma=1.25
    )
    tree = BPlusTree()
    subwindow = None if setting.kind == "b_plus_tree" else Subwindow(shape, setting.kind, first=0)  # type: ignore[arg-type]
    for first in range(0, setting.tuples, setting.batch):
        batch = keys[first : first + setting.batch]
        order = np.argsort(batch)
        values, positions = batch[order], order + first
        started = time.process_time()
        if subwindow is None:
            tree.insert(values, positions)
        else:
            subwindow.insert([values], positions)
        seconds += time.process_time() - started
    return (tree if subwindow is None else subwindow), seconds


@cache
def _filled(setting: Setting) -> Subwindow | BPlusTree:
    full = _fill(setting)[0]
    if isinstance(full, Subwindow):
        full.seal()
    return full


def _probe(setting: Setting, selectivity: int) -> tuple[int, float]:
    """Return how many tuples probed, and how long it took."""
    full = _filled(replace(setting, selectivity=None, batch=setting.tuples))
    rng = np.random.default_rng(31)
    lists = setting.kind != "bi_sort"
    count = max(256, setting.batch // (selectivity if lists else 1))
    values = np.sort(rng.integers(0, KEY_RANGE, count))
    reach = selectivity * KEY_RANGE // (2 * setting.tuples)
    low, high = values - reach, values + reach
    probes = encode_ranges(Ranges([low], [high], [False]), INT)
    answer: Callable[[], int]
    if isinstance(full, BPlusTree):
        answer = lambda: int(full.probe(low, high, enumerate=True).count.sum())  # noqa: E731
    elif isinstance(full.structure, BiSort):
        answer = lambda: full.bi_sort.find_records([probes])[0].lengths  # noqa: E731
    else:
        answer = lambda: int(  # noqa: E731
            probe_subwindows([full], probes, enumerate=True).count.sum()
        )
    started = time.process_time()
    found = answer()
    seconds = time.process_time() - started
    ordered = np.sort(_keys(setting.tuples))
    right = np.searchsorted(ordered, high, "right") - np.searchsorted(ordered, low, "left")
    if found != right.sum():
        raise SystemExit(f"{setting}: not what numpy finds")
    return count, seconds


@cache
def rates(setting: Setting, repeats: int) -> tuple[float, ...]:
    """Return tuples a second, a figure for each repetition."""
    found = []
    for _ in range(repeats + 1):
        if setting.selectivity is None:
            count, seconds = setting.tuples, _fill(setting)[1]
        else:
            count, seconds = _probe(setting, setting.selectivity)
        found.append(count / max(seconds, 1e-9))
    return tuple(found[1:])  # the first compiles


Trend = tuple[str, Setting, Setting, float, bool]
"""The paper's statement, two settings whose rates it compares, and their ratio at least or most."""


def trends(tuples: int) -> list[Trend]:
    """Return what Figures 10 to 13 say."""
    base = Setting(kind="bi_sort", tuples=tuples, partitions=tuples // 128, batch=65_536)
    few, small = tuples // 8_192, tuples // 16
    said: list[Trend] = []
    for kind, figure in (("rap_table", "10"), ("wib_tree", "11"), ("bi_sort", "12")):
        one, name = replace(base, kind=kind), NAMES[kind]
        big, tiny = replace(one, batch=tuples), replace(one, batch=1_024)
        said += [
            (f"{figure}a: {name} inserts faster in large batches", big, tiny, 1.0, True),
            (
                f"{figure}b: {name} inserts faster into a small subwindow (batch 1K)",
                replace(tiny, tuples=small, partitions=small // 128),
                tiny,
                1.0,
                True,
            ),
        ]
        probing = replace(one, batch=PROBES, selectivity=1)
        many = replace(probing, selectivity=1_024)
        said.append(
            (
                f"{figure}c: {name} probes faster with more partitions",
                probing,
                replace(probing, partitions=few),
                1.0,
                True,
            )
        )
        if kind == "bi_sort":
            said.append((f"12e: {name} probes as fast at S = 1K as at 1", many, probing, 0.8, True))
        else:
            text = f"{figure}e: {name} probes slower at S = 1K than at 1"
            said.append((text, many, probing, 1.0, False))
    fewer = replace(base, kind="rap_table", partitions=few)
    rap = replace(base, kind="rap_table")
    said.append(("10a: RaP-Table inserts faster with fewer partitions", fewer, rap, 1.0, True))
    said += _comparisons(base)
    return said


def _comparisons(base: Setting) -> list[Trend]:
    """Return what the paper says of one structure against another."""
    bi, rap, wib = (replace(base, kind=kind) for kind in ("bi_sort", "rap_table", "wib_tree"))
    plain = replace(base, kind="b_plus_tree")
    large = base.tuples
    wide = {"batch": PROBES, "selectivity": 64}
    huge = {"batch": PROBES, "selectivity": 4_096}
    return [
        ("11f: WiB+-Tree inserts faster than a B-tree", wib, plain, 3.5, True),
        (
            "11f: WiB+-Tree probes faster than a B-tree (S = 1)",
            replace(wib, batch=PROBES, selectivity=1),
            replace(plain, batch=PROBES, selectivity=1),
            1.3,
            True,
        ),
        (
            "13a: BI-Sort inserts faster than RaP-Table in batches above 64K",
            replace(bi, batch=large),
            replace(rap, batch=large),
            1.0,
            True,
        ),
        (
            "13a: and slower in small ones (1K)",
            replace(bi, batch=1_024),
            replace(rap, batch=1_024),
            1.0,
            False,
        ),
        (
            "13b: RaP-Table probes faster than WiB+-Tree (S = 64)",
            replace(rap, **wide),
            replace(wib, **wide),
            1.7,
            True,
        ),
        (
            "13b: BI-Sort probes faster than RaP-Table (S = 64)",
            replace(bi, **wide),
            replace(rap, **wide),
            1.6,
            True,
        ),
        (
            "13b: BI-Sort probes faster than RaP-Table (S = 4K)",
            replace(bi, **huge),
            replace(rap, **huge),
            100.0,
            True,
        ),
    ]


def measure(tuples: int, repeats: int) -> list[Result]:
    """Return every trend as a ratio, with the two rates."""
    results = []
    for text, first, second, target, at_least in trends(tuples):
        a, b = (rates(setting, repeats) for setting in (first, second))
        note = f"{np.median(a) / 1e6:.2f} M, {np.median(b) / 1e6:.2f} M tuples/s"
        ratios = [x / y for x, y in zip(a, b, strict=True)]
        results.append(
            Result.of(text, ratios, unit="x", target=target, at_least=at_least, note=note)
        )
    return results


def main() -> None:
    """Measure, verify and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--subwindow-bits", type=int, default=20, help="tuples 2^BITS (20)")
    parser.add_argument("--repeats", type=int, default=3, help="timed runs of each (3)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    report("panjoin_structures", measure(1 << options.subwindow_bits, options.repeats))


if __name__ == "__main__":
    main()
