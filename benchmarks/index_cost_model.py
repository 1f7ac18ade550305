"""PIM-Tree's analytical model against what the joins do: predicted over measured cost per tuple.

In the clock: probing, inserting, expiring and merging, from tuples in memory to matches counted.

The workload of `benchmarks.pim_tree` at every window of 2^12 to 2^BITS tuples, joined over every
index by one core, for as long as every merge, archived tree or rebuilding takes to come round. The
model is given what a unit of work costs each index in such a window, the window and the match rate.
Its figure is compared with

counted cost
    that of virtual time: the work that the kernels counted, at the same prices;
processor time
    of the core that did it; on a machine of another kind than that of the profile, take one that
    was measured there.

Run: ``python -m benchmarks.index_cost_model [--most-bits 22] [--profile FILE] [--json]``
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from actors.hosting.process_memory import keep_freed_memory
from benchmarks.measure import Result, command_line, report
from joins.window_join.cost_model import MODELLED, predict
from joins.window_join.window_join_spec import IndexName, WindowJoinSpec
from joins.work import Step
from netsim.cost import CostProfile, load_profile
from scenarios.calibration.window_workload import (
    BATCH_ROWS,
    WindowWorkload,
    time_join,
    tuples_to_time,
)

LEAST_BITS = 12
_WITHIN = 0.3
_PASSES = 2


@dataclass(frozen=True, kw_only=True)
class Point:
    """What a tuple costs an index in a window, ns: by the model, as counted, and as it took."""

    index: IndexName
    window: int
    predicted_ns: float
    counted_ns: float
    took_ns: float


def main() -> None:
    """Predict, count, measure and print."""
    parser = command_line(__doc__)
    parser.add_argument("--most-bits", type=int, default=22, help="largest window 2^BITS (22)")
    parser.add_argument("--profile", type=Path, default="default", help="prices to predict by")
    options = parser.parse_args()
    keep_freed_memory()
    profile = load_profile(options.profile)
    windows = [1 << bits for bits in range(LEAST_BITS, options.most_bits + 1)]
    results = [
        result for point in time_indexes(windows, profile, _PASSES) for result in judged(point)
    ]
    report("predicted over measured cost per tuple, 1 is right", results)


def time_indexes(windows: Sequence[int], profile: CostProfile, passes: int) -> list[Point]:
    """Time every index that has an equation, over full *windows*; of several passes the fastest."""
    timed = [
        [_time_index(index, window, profile) for index in MODELLED for window in windows]
        for _ in range(passes)
    ]
    return [min(same, key=lambda point: point.took_ns) for same in zip(*timed, strict=True)]


def _time_index(index: IndexName, window: int, profile: CostProfile) -> Point:
    tuples, spec = tuples_to_time(index, window), WindowJoinSpec(index=index)
    workload = WindowWorkload(windows=(window, window))
    rows = workload.rows(0, 2 * window + tuples)
    timed = time_join(spec.make(self_join=False, unit_ps=None), rows, 2 * window)
    name = f"ibwj_{index}.join"
    cost, calls = profile.structures[name], max(1, tuples // BATCH_ROWS)
    counted_ps = cost.work_ps(Step(name, tuples // calls, window), timed.work, calls)
    prices = profile.units_of(name, window)
    model = predict(spec, window=window, match_rate=workload.match_rate, unit_ps=prices)
    return Point(
        index=index,
        window=window,
        predicted_ns=model.tuple_ns,
        counted_ns=counted_ps / 1000 / tuples,
        took_ns=timed.tuple_ns,
    )


def judged(point: Point) -> Iterator[Result]:
    """Yield how far the model is off at a window of one index."""
    name = f"{point.index}, 2^{point.window.bit_length() - 1}"
    for kind, ns in (("counted", point.counted_ns), ("processor", point.took_ns)):
        ratio = point.predicted_ns / ns
        note = f"predicted {point.predicted_ns:,.0f} ns, {kind} {ns:,.0f} ns"
        yield Result.of(
            f"{name}: {kind}",
            [max(ratio, 1 / ratio)],
            unit="times off",
            target=1 + _WITHIN,
            at_least=False,
            note=note,
        )


if __name__ == "__main__":
    main()
