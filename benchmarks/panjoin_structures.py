"""PanJoin's three structures alone: insertion and probing as its Figures 10 to 13 vary them.

In the clock: the insertion, or the probing, of batches that are sorted already.

A rate is tuples per second of processor time on one core. Insertion fills an empty subwindow by
sorted batches; probing asks a full one for the values within a band, of which it holds as many as
the selectivity says: a BI-Sort answers with records, the others list their matches. Each trend of
the paper is a ratio of two rates, with the paper's own figure where it gives one, else 1. The paper
has 8M tuples, 64K partitions and 8 threads; here ratios between sizes are kept, not the sizes.

Run: ``python -m benchmarks.panjoin_structures [--subwindow-bits 20] [--repeats 3] [--json]``
"""

from __future__ import annotations

from functools import cache
from typing import Any

from benchmarks.measure import Result, command_line, report
from netsim.cost import load_profile
from scenarios.surveys.speed_surveys import take_subwindow_speed
from scenarios.surveys.survey import SubwindowSpeedSurvey

NAMES = {
    "bi_sort": "BI-Sort",
    "rap_table": "RaP-Table",
    "wib_tree": "WiB+-Tree",
    "b_plus_tree": "B+-tree",
}


def replace(setting: SubwindowSpeedSurvey, **keys: Any) -> SubwindowSpeedSurvey:
    """Return *setting* with some of its keys changed."""
    return setting.model_copy(update=keys)


@cache
def rates(setting: SubwindowSpeedSurvey, repeats: int) -> tuple[float, ...]:
    """Return tuples a second: the least, the median and the most of the repetitions."""
    surveyed = take_subwindow_speed(replace(setting, passes=repeats), 1, load_profile())
    if not surveyed.passed:
        raise SystemExit(f"{setting}: not so: {surveyed.checked}")
    return tuple(surveyed.record["tuples_s"][key] for key in ("least", "median", "most"))


Trend = tuple[str, SubwindowSpeedSurvey, SubwindowSpeedSurvey, float, bool]
"""The paper's statement, two settings whose rates it compares, and their ratio at least or most."""


def trends(tuples: int) -> list[Trend]:
    """Return what Figures 10 to 13 say."""
    base = SubwindowSpeedSurvey(tuples=tuples, partitions=tuples // 128, batch=65_536)
    few, small = tuples // 8_192, tuples // 16
    said: list[Trend] = []
    for kind, figure in (("rap_table", "10"), ("wib_tree", "11"), ("bi_sort", "12")):
        one, name = replace(base, structure=kind), NAMES[kind]
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
        probing = replace(one, selectivity=1)
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
    fewer = replace(base, structure="rap_table", partitions=few)
    rap = replace(base, structure="rap_table")
    said.append(("10a: RaP-Table inserts faster with fewer partitions", fewer, rap, 1.0, True))
    said += _comparisons(base)
    return said


def _comparisons(base: SubwindowSpeedSurvey) -> list[Trend]:
    """Return what the paper says of one structure against another."""
    bi, rap, wib = (replace(base, structure=kind) for kind in ("bi_sort", "rap_table", "wib_tree"))
    plain = replace(base, structure="b_plus_tree")
    large = base.tuples
    wide = {"selectivity": 64}
    huge = {"selectivity": 4_096}
    return [
        ("11f: WiB+-Tree inserts faster than a B-tree", wib, plain, 3.5, True),
        (
            "11f: WiB+-Tree probes faster than a B-tree (S = 1)",
            replace(wib, selectivity=1),
            replace(plain, selectivity=1),
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
        note = f"{a[1] / 1e6:.2f} M, {b[1] / 1e6:.2f} M tuples/s"
        ratios = [x / y for x, y in zip(a, b, strict=True)]
        results.append(
            Result.of(text, ratios, unit="x", target=target, at_least=at_least, note=note)
        )
    return results


def main() -> None:
    """Measure, verify and print."""
    parser = command_line(__doc__)
    parser.add_argument("--subwindow-bits", type=int, default=20, help="tuples 2^BITS (20)")
    parser.add_argument("--repeats", type=int, default=3, help="timed runs of each (3)")
    options = parser.parse_args()
    report("panjoin_structures", measure(1 << options.subwindow_bits, options.repeats))


if __name__ == "__main__":
    main()
