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
from typing import Any, NamedTuple

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


class Trend(NamedTuple):
    """The paper's statement, two settings whose rates it compares, and their ratio."""

    text: str
    first: SubwindowSpeedSurvey
    second: SubwindowSpeedSurvey
    target: float = 1.0
    at_least: bool = True


def trends(tuples: int) -> list[Trend]:
    """Return what Figures 10 to 13 say."""
    base = SubwindowSpeedSurvey(tuples=tuples, partitions=tuples // 128, batch=65_536)
    few, small = tuples // 8_192, tuples // 16
    said: list[Trend] = []
    for kind, figure in (("rap_table", "10"), ("wib_tree", "11"), ("bi_sort", "12")):
        one, name = replace(base, structure=kind), NAMES[kind]
        big, tiny = replace(one, batch=tuples), replace(one, batch=1_024)
        smaller = replace(tiny, tuples=small, partitions=small // 128)
        probing = replace(one, selectivity=1)
        fewer, many = replace(probing, partitions=few), replace(probing, selectivity=1_024)
        said += [
            Trend(f"{figure}a: {name} inserts faster in large batches", big, tiny),
            Trend(
                f"{figure}b: {name} inserts faster into a small subwindow (batch 1K)", smaller, tiny
            ),
            Trend(f"{figure}c: {name} probes faster with more partitions", probing, fewer),
        ]
        if kind == "bi_sort":
            said.append(Trend(f"12e: {name} probes as fast at S = 1K as at 1", many, probing, 0.8))
        else:
            text = f"{figure}e: {name} probes slower at S = 1K than at 1"
            said.append(Trend(text, many, probing, at_least=False))
    rap = replace(base, structure="rap_table")
    text = "10a: RaP-Table inserts faster with fewer partitions"
    return [*said, Trend(text, replace(rap, partitions=few), rap), *_comparisons(base)]


def _comparisons(base: SubwindowSpeedSurvey) -> list[Trend]:
    """Return what the paper says of one structure against another."""
    bi, rap, wib = (replace(base, structure=kind) for kind in ("bi_sort", "rap_table", "wib_tree"))
    plain = replace(base, structure="b_plus_tree")
    large, small = {"batch": base.tuples}, {"batch": 1_024}
    one, wide, huge = {"selectivity": 1}, {"selectivity": 64}, {"selectivity": 4_096}
    return [
        Trend("11f: WiB+-Tree inserts faster than a B-tree", wib, plain, 3.5),
        Trend(
            "11f: WiB+-Tree probes faster than a B-tree (S = 1)",
            replace(wib, **one),
            replace(plain, **one),
            1.3,
        ),
        Trend(
            "13a: BI-Sort inserts faster than RaP-Table in batches above 64K",
            replace(bi, **large),
            replace(rap, **large),
        ),
        Trend(
            "13a: and slower in small ones (1K)",
            replace(bi, **small),
            replace(rap, **small),
            at_least=False,
        ),
        Trend(
            "13b: RaP-Table probes faster than WiB+-Tree (S = 64)",
            replace(rap, **wide),
            replace(wib, **wide),
            1.7,
        ),
        Trend(
            "13b: BI-Sort probes faster than RaP-Table (S = 64)",
            replace(bi, **wide),
            replace(rap, **wide),
            1.6,
        ),
        Trend(
            "13b: BI-Sort probes faster than RaP-Table (S = 4K)",
            replace(bi, **huge),
            replace(rap, **huge),
            100.0,
        ),
    ]


def measure(tuples: int, repeats: int) -> list[Result]:
    """Return every trend as a ratio, with the two rates."""
    results = []
    for trend in trends(tuples):
        a, b = (rates(setting, repeats) for setting in (trend.first, trend.second))
        note = f"{a[1] / 1e6:.2f} M, {b[1] / 1e6:.2f} M tuples/s"
        ratios = [x / y for x, y in zip(a, b, strict=True)]
        results.append(
            Result.of(
                trend.text,
                ratios,
                unit="x",
                target=trend.target,
                at_least=trend.at_least,
                note=note,
            )
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
