"""Surveys of the PIM-Tree paper: what the steps of a join cost, and how inserts are spread.

`IndexStepsSurvey` is about Figures 9b and 14, `InsertSpreadSurvey` about Figure 13a, and
`MemoryTrafficSurvey` about Figure 11d.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from joins.codes import encode
from joins.indexes.pim_tree.pim_tree import SHARED_MERGE_RATIO, PimTree
from joins.matches import ProbeResult
from joins.window_join.rows import KernelRows
from joins.window_join.window_joins import WindowJoinSpec
from joins.work import ENTRY_BYTES, Work
from netsim.cost import CostProfile
from scenarios.calibration.window_workload import WindowSteps, WindowWorkload
from scenarios.surveys.speed_surveys import BEFORE, DRIFTING, drifting_keys
from scenarios.surveys.survey import (
    IndexStepsSurvey,
    InsertSpreadSurvey,
    MemoryTrafficSurvey,
    Surveyed,
)

_LEAST_BITS = 6
_IDLE = 0.1
"""Share of the mean number of inserts below which a subindex is idle."""
_KEY_BYTES = 8


def take_index_steps(survey: IndexStepsSurvey, seed: int, profile: CostProfile) -> Surveyed:
    """Take the steps, and compare the last tuples' matches with those of a sorted window."""
    WindowSteps(survey.index, 1 << _LEAST_BITS).run()  # the first ones compile
    join, window = f"ibwj_{survey.index}.join", 1 << survey.window_bits
    steps = WindowSteps(survey.index, window)
    exact, merged = steps.run(), steps.merged
    counted_ns = {step: profile.part_ns(join, window, work) for step, work in steps.work.items()}
    processor_ns = {step: seconds * 1e9 for step, seconds in steps.seconds.items()}
    record: dict[str, Any] = {"merges": {}}
    for kind, spent_ns in (("counted", counted_ns), ("processor", processor_ns)):
        each_ns = _per_tuple(spent_ns, window)
        merge_ns = spent_ns.get("merge", 0.0)
        record[f"{kind}_ns"] = each_ns
        record["merges"] |= {
            f"{kind}_ms": merge_ns / 1e6 / max(1, len(merged)),
            f"{kind}_ns": merge_ns / max(1, sum(merged)),
            f"{kind}_percent": 100 * each_ns["merge"] / each_ns["total"],
        }
    return Surveyed(
        record=record, checked="the last tuples' matches are those in the window", passed=exact
    )


def _per_tuple(spent_ns: dict[str, float], tuples: int) -> dict[str, float]:
    """Return all steps' times a tuple; what a scan adds to a search is all that can be measured."""
    scan_ns = max(0.0, spent_ns["search and scan"] - spent_ns["search"])
    steps = {step: spent_ns.get(step, 0.0) for step in ("insert", "delete", "search", "merge")}
    whole = steps | {"scan": scan_ns, "total": sum(steps.values()) + scan_ns}
    return {step: ns / tuples for step, ns in whole.items()}


def take_insert_spread(survey: InsertSpreadSurvey, seed: int, profile: CostProfile) -> Surveyed:
    """Insert the first two phases, a window at a time; none may be lost."""
    window, whole = 1 << survey.window_bits, True
    index = PimTree(merge_ratio=SHARED_MERGE_RATIO)
    shares = []
    for begin in range(0, (BEFORE + DRIFTING) * window, window):
        positions = np.arange(begin, begin + window)
        keys = encode(drifting_keys(positions, window, survey.shift, seed))
        if begin >= BEFORE * window:
            shares.append(np.sort(index.spread(keys)) / window)
        index.insert([keys], positions)
        index.expire(begin)
        index.maintain(0)
        whole &= index.entries(0) == window
    return Surveyed(
        record=_spread(shares), checked="a window of entries after every merge", passed=whole
    )


def _spread(shares: list[np.ndarray]) -> dict[str, object]:
    """Return the record of ascending *shares* of the subindexes, an array a window."""
    reached = [np.append(0, np.cumsum(share)) for share in shares]
    tenths = {
        str(percent): np.mean([100 * r[len(r[1:]) * percent // 100] for r in reached]).item()
        for percent in range(10, 101, 10)
    }
    idle = [100 * np.mean(share <= _IDLE * share.mean()) for share in shares]
    return {
        "fullest_percent": np.mean([100 * share[-1] for share in shares]).item(),
        "idle_percent": np.mean(idle).item(),
        "share": tenths,
    }


def take_memory_traffic(survey: MemoryTrafficSurvey, seed: int, profile: CostProfile) -> Surveyed:
    """Join both windows' length of tuples, and compare the matches with one thread's."""
    window = 1 << survey.window_bits
    rows = WindowWorkload(windows=(window, window)).rows(0, 4 * window)
    filling, measured = rows.part(0, 2 * window), rows.part(2 * window, None)
    shared, alone = (
        _join(survey, threads, profile, filling, measured) for threads in (survey.threads, 0)
    )
    return Surveyed(
        record=_traffic(shared.work),
        checked="every tuple has the matches that one thread finds",
        passed=np.array_equal(shared.count, alone.count),
    )


def _join(
    survey: MemoryTrafficSurvey,
    threads: int,
    profile: CostProfile,
    filling: KernelRows,
    measured: KernelRows,
) -> ProbeResult:
    spec = WindowJoinSpec(threads=threads, cores=survey.cores, merge_ratio=SHARED_MERGE_RATIO)
    prices = profile.units_of("ibwj_shared_pim_tree.join", 1 << survey.window_bits)
    join = spec.make(self_join=False, unit_ps=prices)
    join.join(filling)
    return join.join(measured)


def _traffic(work: Work) -> dict[str, object]:
    moved = ENTRY_BYTES * work.moves + work.bytes_copied
    read = _KEY_BYTES * work.comparisons + moved
    written = ENTRY_BYTES * work.inserts + moved
    return {
        "gb_s": {
            "read": read / work.elapsed_ns,
            "written": written / work.elapsed_ns,
            "total": (read + written) / work.elapsed_ns,
        },
        "written_percent": 100 * written / (read + written),
    }
