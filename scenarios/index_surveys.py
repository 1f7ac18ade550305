"""Surveys of indexes and of the joins over them: what steps cost, and how fast they are.

How many tuples a second something takes is measured by this machine's clock: processor time where
one thread works, wall time where several share an index.

A subwindow of PanJoin (its Figures 10 to 13): insertion fills an empty one by sorted batches.
Probing asks a full one for the values in a range: a BI-Sort answers with records, the other
structures list their matches.

A segment of SPO-Join (Figures 7 to 9) is one slide's tuples in an immutable structure, what one
PO-Join PE has of a window. Tuples of Q3's kind probe it, a hundred at a time as a PE gets them,
with two inequalities that hold together for a chosen share of all pairs.

A window join (PIM-Tree, Figures 8 to 13): the kernels run over full windows, one batch after the
other, and nothing else is timed. A pass is as many arrivals as replace both windows, so that
whatever is merged, archived or rebuilt comes round in each. Steps of a join are timed one by one
(Figures 9b and 14).

While values drift (Figure 13b), tuples are timed window by window. It is a self join in three
phases: the mean of the values is fixed, moves steadily over ten windows, and is fixed again. The
phases last 4, 10 and 6 windows; the paper's (section 5) 4, 10 and 4. How the inserts of the second
are spread over subindexes is Figure 13a.

What the work of a shared join comes to in bytes is Figure 11d. Matches are compared with numpy's,
or one thread's.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import lru_cache, partial
from statistics import median
from typing import Any, TypeVar

import numpy as np

from actors.hosting.process_memory import keep_freed_memory
from joins.codes import encode
from joins.hashing import mix
from joins.indexes.b_plus.b_plus_tree import BPlusTree
from joins.indexes.index import Ranges, make_ranges
from joins.indexes.panjoin.bi_sort import BiSort
from joins.indexes.panjoin.subwindow import Subwindow, SubwindowShape, probe_subwindows
from joins.indexes.pim_tree.pim_tree import SHARED_MERGE_RATIO, PimTree
from joins.indexes.structures import SEGMENTS
from joins.matches import ProbeResult
from joins.window_join.rows import KernelRows
from joins.window_join.shared_join import THREAD_TASK_ROWS
from joins.window_join.window_join import WindowJoin
from joins.window_join.window_join_spec import WindowJoinSpec
from joins.work import ENTRY_BYTES, Work
from netsim.cost import CostProfile
from scenarios.calibration.window_workload import (
    MatchSums,
    WindowSteps,
    WindowWorkload,
    band_join,
    expected_matches,
    timed_batches,
)
from scenarios.survey import (
    DriftSpeedSurvey,
    IndexStepsSurvey,
    InsertSpreadSurvey,
    MemoryTrafficSurvey,
    SegmentSpeedSurvey,
    SubwindowSpeedSurvey,
    Surveyed,
    WindowJoinSpeedSurvey,
)
from scenarios.synthetic import DISTRIBUTIONS, drifting, opposed

_KEY_RANGE = 1 << 30
_SIGMA = 1.25
_LEAST_PROBES = 256
_KEYS_SEED, _PROBES_SEED = 13, 31
_BATCH = 100
_MEAN, _DEVIATION = 10.0, 3.0
_DISTANCE_SEED, _FARE_SEED = 1, 2

_MADE_ROWS = 65_536
"""Arrivals that are made at once, in whole batches."""
_LEAST_TUPLES = 1 << 18
"""Of a pass: fewer take too little time to measure."""
_NESTED_LOOP_PAIRS = 2e9
"""Most pairs that a nested loop compares in a pass, which is then shorter."""
_CHECKED = 8_192
"""The last tuples, whose matches are compared with numpy's."""
_BEFORE, _DRIFTING, _WINDOWS = 4, 10, 20
"""Windows of tuples before the drift, while it lasts, and in all."""
_MATCH_RATE = 2
_COMPILING_BITS = 6
"""Of a small window, over which kernels run once, untimed, to be compiled."""
_IDLE = 0.1
"""Share of the mean number of inserts below which a subindex is idle."""
_KEY_BYTES = 8
_Found = TypeVar("_Found")


def take_subwindow_speed(survey: SubwindowSpeedSurvey, seed: int, profile: CostProfile) -> Surveyed:
    """Fill the subwindow in each pass, or fill it once and probe it in each."""
    if survey.selectivity is not None:
        return _probe_subwindow(survey, survey.selectivity)
    fills = [_time_fill(survey) for _ in range(survey.passes + 1)]
    return Surveyed(
        # The first pass compiles.
        record=_timed_record(survey.tuples, [seconds for _, seconds in fills[1:]]),
        checked=f"{survey.tuples:,} tuples are stored",
        passed=all(stored == survey.tuples for stored, _ in fills),
    )


def _probe_subwindow(survey: SubwindowSpeedSurvey, selectivity: int) -> Surveyed:
    full = _filled(survey.model_copy(update={"batch": survey.tuples, "passes": 1}))
    ordered = np.sort(_subwindow_keys(survey))
    lists = survey.structure != "bi_sort"
    count = max(_LEAST_PROBES, survey.probes // (selectivity if lists else 1))
    rng = np.random.default_rng(_PROBES_SEED)
    values = np.sort(rng.integers(0, ordered[-1] + 1, count))
    # A band of so many values of 2^30; a single one of as few as make each so frequent.
    half_width = selectivity * _KEY_RANGE // (2 * survey.tuples) if survey.join == "band" else 0
    low, high = values - half_width, values + half_width
    begin = np.searchsorted(ordered, low, "left")
    right = int((np.searchsorted(ordered, high, "right") - begin).sum())
    probes = make_ranges([low], [high])

    def probe() -> int:
        if isinstance(full, BPlusTree):
            return int(full.probe(probes, enumerate=True).count.sum())
        if isinstance(full.structure, BiSort):
            return full.bi_sort.find_records(probes)[0].lengths
        return int(probe_subwindows([full], probes, enumerate=True).count.sum())

    found, seconds = _time_passes(survey.passes, probe)
    return Surveyed(
        record=_timed_record(count, seconds) | {"match_rate": right / count},
        checked="as many matches as numpy finds in the sorted values",
        passed=all(one == right for one in found),
    )


def _time_passes(passes: int, run: Callable[[], _Found]) -> tuple[list[_Found], list[float]]:
    """Call *run* in each pass, and once before, which compiles; return all results, and seconds."""
    found, seconds = [], []
    for _ in range(passes + 1):
        started = time.thread_time()
        found.append(run())
        seconds.append(time.thread_time() - started)
    return found, seconds[1:]


def _timed_record(tuples: int, seconds: Sequence[float], *, threads: int = 0) -> dict[str, Any]:
    """Return the record of passes over *tuples* that took *seconds* each: tuples a second.

    *threads* are real ones, whose wall time it is; none are one thread's processor time.
    """
    rates = [tuples / max(one, 1e-9) for one in seconds]
    return {
        "tuples_s": {"median": median(rates), "least": min(rates), "most": max(rates)},
        "tuple_ns": {"median": 1e9 / median(rates)},
        "tuples": tuples,
        "passes": len(rates),
        "threads": max(1, threads),
        "clock": "wall time" if threads else "processor time",
    }


def _subwindow_keys(survey: SubwindowSpeedSurvey) -> np.ndarray:
    distinct = _KEY_RANGE
    if survey.join == "equi" and survey.selectivity is not None:
        distinct = max(1, survey.tuples // survey.selectivity)
    return np.random.default_rng(_KEYS_SEED).integers(0, distinct, survey.tuples)


def _time_fill(survey: SubwindowSpeedSurvey) -> tuple[int, float]:
    """Return how many tuples are stored, and the seconds that took; keep nothing of it."""
    full, seconds = _fill(survey)
    return len(full), seconds


def _fill(survey: SubwindowSpeedSurvey) -> tuple[Subwindow | BPlusTree, float]:
    """Return a full subwindow, or tree, and the seconds that insertion took."""
    keys, seconds = _subwindow_keys(survey), 0.0
    full = _make_subwindow(survey)
    for first in range(0, survey.tuples, survey.batch):
        batch = keys[first : first + survey.batch]
        order = np.argsort(batch)
        values, positions = batch[order], order + first
        started = time.thread_time()
        if isinstance(full, BPlusTree):
            full.insert(values, positions)
        else:
            full.insert([values], positions)
        seconds += time.thread_time() - started
    return full, seconds


def _make_subwindow(survey: SubwindowSpeedSurvey) -> Subwindow | BPlusTree:
    if survey.structure == "b_plus_tree":
        return BPlusTree()
    shape = SubwindowShape(
        predicates=1,
        capacity=survey.tuples,
        partitions=survey.partitions,
        sigma=_SIGMA,
        buffer=survey.buffer,
    )
    return Subwindow(shape, survey.structure, first=0)


@lru_cache(maxsize=1)
def _filled(survey: SubwindowSpeedSurvey) -> Subwindow | BPlusTree:
    full = _fill(survey)[0]
    if isinstance(full, Subwindow):
        full.seal()
    return full


def take_segment_speed(survey: SegmentSpeedSurvey, seed: int, profile: CostProfile) -> Surveyed:
    """Seal the segment, and probe it in each pass."""
    distance, fare = _segment_columns(survey.tuples + survey.probes, survey.match_share)
    stored = [distance[: survey.tuples], fare[: survey.tuples]]
    probing = distance[survey.tuples :], fare[survey.tuples :]
    segment = SEGMENTS[survey.structure].from_columns([encode(values) for values in stored])
    batches = [
        _segment_ranges(probing[0][begin : begin + _BATCH], probing[1][begin : begin + _BATCH])
        for begin in range(0, survey.probes, _BATCH)
    ]
    found, seconds = _time_passes(
        survey.passes, lambda: [segment.probe(ranges).count for ranges in batches]
    )
    right = np.array(
        [
            np.count_nonzero((stored[0] < one) & (stored[1] > other))
            for one, other in zip(*probing, strict=True)
        ]
    )
    return Surveyed(
        record=_timed_record(survey.probes, seconds) | {"match_rate": float(right.mean())},
        checked="every tuple has the matches that a scan finds",
        passed=all(np.array_equal(np.concatenate(counts), right) for counts in found),
    )


def _segment_columns(tuples: int, match_share: float) -> tuple[np.ndarray, np.ndarray]:
    """Return distance and fare, such that a share of all pairs matches."""
    i = np.arange(tuples)
    distance, bits = (mix((seed << 48) ^ i) for seed in (_DISTANCE_SEED, _FARE_SEED))
    distance = DISTRIBUTIONS["normal"](distance, _MEAN, _DEVIATION)
    return distance, opposed((distance - _MEAN) / _DEVIATION, bits, match_share)


def _segment_ranges(distance: np.ndarray, fare: np.ndarray) -> Ranges:
    """Return the ranges of stored tuples with a smaller distance and a higher fare."""
    least, most = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    return make_ranges(
        [np.full(len(distance), least), encode(fare) + 1],
        [encode(distance) - 1, np.full(len(fare), most)],
    )


def take_window_join_speed(
    survey: WindowJoinSpeedSurvey, seed: int, profile: CostProfile
) -> Surveyed:
    """Fill the windows, replace them once, and time each pass; check the last tuples' matches."""
    keep_freed_memory()
    workload, tuples = survey.workload, _pass_tuples(survey)
    compiling = 1 << _COMPILING_BITS
    small = WindowWorkload(
        windows=(compiling, compiling), self_join=workload.self_join, values=workload.values
    )
    _timed_join(survey, make_join(survey), small.rows, 0, 4 * compiling)
    join, end = make_join(survey), workload.arrivals
    for begin in range(0, end, _MADE_ROWS):
        rows = workload.rows(begin, min(begin + _MADE_ROWS, end))
        join.join(rows._replace(stop=rows.start))  # they see nothing: a nested loop would never end
    begin, end = end, end + min(tuples, end)
    _timed_join(survey, join, workload.rows, begin, end)  # memory is not new after that
    passes = []
    for _ in range(survey.passes):
        begin, end = end, end + tuples
        passes.append(_timed_join(survey, join, workload.rows, begin, end))
    matches = sum(found for _, found, _ in passes)
    record = _timed_record(tuples, [one[0] for one in passes], threads=survey.threads) | {
        "match_rate": matches / (survey.passes * tuples),
        "matches": matches,
        "window": max(workload.windows),
    }
    if survey.threads:
        at_once = survey.threads * (survey.task_rows or THREAD_TASK_ROWS)
        record["task_us"] = {"median": at_once * record["tuple_ns"]["median"] / 1e3}
    *_, last_matches = passes[-1]
    return Surveyed(
        record=record,
        checked=f"the last {_CHECKED:,} tuples' matches are those that numpy finds",
        passed=all(map(np.array_equal, last_matches, workload.expected(end - _CHECKED, end))),
    )


def _pass_tuples(survey: WindowJoinSpeedSurvey) -> int:
    workload = survey.workload
    tuples = max(_LEAST_TUPLES, workload.arrivals)
    if survey.index == "nested_loop":
        tuples = min(tuples, max(_CHECKED, int(_NESTED_LOOP_PAIRS / max(workload.windows))))
    return tuples


def _timed_join(
    survey: WindowJoinSpeedSurvey | DriftSpeedSurvey,
    join: WindowJoin,
    make_rows: Callable[[int, int], KernelRows],
    begin: int,
    end: int,
    last: int = _CHECKED,
) -> tuple[float, int, MatchSums]:
    """Join arrivals *begin* to *end* - 1, made some batches at a time.

    Return the seconds that it took, how many matches they have, and the matches of the *last*.
    """
    batch = survey.batch_rows
    made = max(1, _MADE_ROWS // batch) * batch
    clock = time.perf_counter if survey.threads else time.thread_time
    seconds, matches = 0.0, 0
    # Every batch is full but the last one.
    stored: deque[MatchSums] = deque(maxlen=last // batch + 2)
    for first in range(begin, end, made):
        rows = make_rows(first, min(first + made, end))
        for found, took_s in timed_batches(join, rows, batch, clock):
            seconds += took_s
            matches += int(found.count.sum())
            stored.append((found.count, found.fingerprint))
    count, fingerprint = map(np.concatenate, zip(*stored, strict=True))
    return seconds, matches, (count[-last:], fingerprint[-last:])


def make_join(survey: WindowJoinSpeedSurvey) -> WindowJoin:
    """Return the join, nothing in its windows; several threads are real ones."""
    spec = WindowJoinSpec(**survey.model_dump(include={one.name for one in fields(WindowJoinSpec)}))
    return spec.make(self_join=survey.self_join, unit_ps=None)


def take_drift_speed(survey: DriftSpeedSurvey, seed: int, profile: CostProfile) -> Surveyed:
    """Join all phases in each pass; check the matches of the last window."""
    keep_freed_memory()
    _drift_pass(survey.model_copy(update={"window_bits": _COMPILING_BITS}))
    passes = [_drift_pass(survey) for _ in range(survey.passes)]
    window = 1 << survey.window_bits
    taken = [median(seconds) for seconds in zip(*(seconds for seconds, _ in passes), strict=True)]
    rows = _drifting_rows(survey, (_WINDOWS - 2) * window, _WINDOWS * window)
    right = expected_matches(rows, window, self_join=True)
    return Surveyed(
        record={
            "pace_tps": {str(number): window / seconds for number, seconds in enumerate(taken, 1)},
            "threads": survey.threads,
            "clock": "wall time" if survey.threads else "processor time",
        },
        checked="the last window's tuples have as many matches as numpy finds",
        passed=all(all(map(np.array_equal, found, right)) for _, found in passes),
    )


def _drift_pass(survey: DriftSpeedSurvey) -> tuple[list[float], MatchSums]:
    """Return the seconds that each window of tuples took, and the matches of the last ones."""
    window = 1 << survey.window_bits
    spec = WindowJoinSpec(merge_ratio=survey.merge_ratio, threads=survey.threads)
    join, make_rows = spec.make(self_join=True, unit_ps=None), partial(_drifting_rows, survey)
    passes = [
        _timed_join(survey, join, make_rows, begin, begin + window, last=window)
        for begin in range(0, _WINDOWS * window, window)
    ]
    return [seconds for seconds, _, _ in passes], passes[-1][2]


def _drifting_rows(survey: DriftSpeedSurvey, begin: int, end: int) -> KernelRows:
    """Return arrivals *begin* to *end* - 1."""
    window = 1 << survey.window_bits
    keys = _drifting_keys(np.arange(begin, end), window, survey.shift)
    band = _MATCH_RATE * np.sqrt(np.pi) / window  # of normal values that stand still
    return band_join(keys, band, window, begin, self_join=True)


def _drifting_keys(row: np.ndarray, window: int, shift: float, seed: int = 0) -> np.ndarray:
    """Return normal keys of tuples *row*, whose mean moves by *shift* over `_DRIFTING` windows."""
    return drifting(
        row,
        mix((seed << 48) ^ row),
        mean=0,
        deviation=1,
        shift=shift,
        first=_BEFORE * window,
        tuples=_DRIFTING * window,
    )


def take_index_steps(survey: IndexStepsSurvey, seed: int, profile: CostProfile) -> Surveyed:
    """Take the steps, and compare the last tuples' matches with those of a sorted window."""
    WindowSteps(survey.index, 1 << _COMPILING_BITS).run()  # the first ones compile
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
    for begin in range(0, (_BEFORE + _DRIFTING) * window, window):
        positions = np.arange(begin, begin + window)
        keys = encode(_drifting_keys(positions, window, survey.shift, seed))
        if begin >= _BEFORE * window:
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
    spec = WindowJoinSpec(cores=survey.cores, merge_ratio=SHARED_MERGE_RATIO)
    prices = profile.units_of("ibwj_shared_pim_tree.join", window)

    def join(threads: int) -> ProbeResult:
        threaded = replace(spec, threads=threads).make(self_join=False, unit_ps=prices)
        threaded.join(filling)
        return threaded.join(measured)

    shared, alone = join(survey.threads), join(0)
    return Surveyed(
        record=_traffic(shared.work),
        checked="every tuple has the matches that one thread finds",
        passed=np.array_equal(shared.count, alone.count),
    )


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
