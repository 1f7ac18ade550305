"""Prices of structures: found again from what calls took, and there for all that systems use."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from joins.indexes.panjoin.subwindow import STRUCTURES
from joins.indexes.structures import SEGMENTS, WINDOW_INDEXES
from joins.window_join.window_join_spec import INDEXES, SHARED
from joins.work import Step, Work
from netsim.cost import StructureCost, load_profile
from scenarios import machine
from scenarios.calibration import structure_work
from scenarios.calibration.fit import fit_structure, fit_structures
from scenarios.calibration.structure_work import (
    BATCHES,
    Filled,
    Sample,
    Workload,
    measure,
    steps_of_join,
    workloads,
)

BASE_PS = load_profile().unit_ps
TRUE = StructureCost(
    sizes=(64, 1024, 16384),
    rows=(1, 32, 1024),
    percents=((80, 70, 60), (100, 90, 70), (300, 200, 150)),
    copied_percents=(100, 100, 100),
    match_percents=(20, 100, 300),
    call_ps=9_000_000,
    row_ps=50_000,
    unit_ps=(700, 90_000, 1_000, 250, 60, 2_000, 20_000),
    tuple_bytes=32,
)


def sample(rng: np.random.Generator, size: int, rows: int, cost: StructureCost = TRUE) -> Sample:
    """Return a sample of three calls that took exactly what *cost* says."""
    comparisons, matches = rows * size.bit_length(), rows * int(rng.integers(1, 64))
    work = Work(comparisons=3 * comparisons, matches=3 * matches)
    step = Step("hash.probe", rows, size)
    seconds = cost.work_ps(step, work, 3) / 1e12
    return sample_of(step, work, seconds, calls=3)


def sample_of(step: Step, work: Work, seconds: float, *, calls: int) -> Sample:
    return Sample(
        step=step,
        matches=0,
        nbytes=32 * step.size,
        calls=calls,
        work=work,
        seconds=seconds,
    )


def off_by(samples: Sequence[Sample], costs: Mapping[str, StructureCost]) -> np.ndarray:
    """Return by what factor virtual time differs from processor time, sample by sample."""
    priced = [costs[s.step.name].work_ps(s.step, s.work, s.calls) / 1e12 for s in samples]
    return np.asarray(priced) / [sample.seconds for sample in samples]


def test_prices_are_found_again_from_what_calls_took() -> None:
    rng = np.random.default_rng(1)
    samples = [sample(rng, n, rows) for n in TRUE.sizes for rows in TRUE.rows for _ in range(2)]
    found = {"hash.probe": fit_structure(samples, BASE_PS)}
    assert off_by(samples, found) == pytest.approx(1, abs=0.05)
    assert found["hash.probe"].tuple_bytes == TRUE.tuple_bytes
    # Of sizes and batches between them, too, with other matches.
    between = [sample(rng, size, rows) for size in (256, 4096) for rows in (1, 8, 256)]
    assert off_by(between, found) == pytest.approx(1, abs=0.15)


def test_calls_with_a_merge_are_a_sample_of_their_own() -> None:
    """Half of a chain's slides archive a part; what they take is not what the others do."""
    (workload,) = (w for w in workloads() if (w.structure, w.variant) == ("ibwj_ib_chain", ""))
    found = measure(workload, workload.fill(1024), 1024, 1, 2)
    assert {one.rare for one in found} == {False, True}
    usual, merging = sorted(found, key=lambda one: one.rare)
    assert merging.calls < usual.calls
    assert sum(merging.work) / merging.calls > 8 * sum(usual.work) / usual.calls


def test_no_garbage_is_collected_while_calls_are_timed() -> None:
    """To look through all that is loaded takes a thousand times as long as a call."""
    objects: list[object] = []
    collections: list[str] = []
    amid_calls: list[int] = []

    def allocate() -> Work:
        before = len(collections)
        objects.extend([] for _ in range(2 * gc.get_threshold()[0]))
        amid_calls.append(len(collections) - before)
        return Work(inserts=1)

    filled = Filled(lambda batch, matches: [("insert", allocate)], nbytes=64)
    workload = Workload(structure="list", fill=lambda size: filled)
    gc.callbacks.append(lambda phase, _: collections.append(phase))
    try:
        measure(workload, filled, 64, 1, 2)
        assert not any(amid_calls)
        allocate()
        assert amid_calls[-1]
    finally:
        gc.callbacks.pop()


def test_the_first_merge_is_no_sample() -> None:
    """It may be given memory that was never touched."""
    works = iter([1] * 3 + [1000] + [1] * 1000)
    filled = Filled(
        lambda batch, matches: [("insert", lambda: Work(inserts=next(works, 1)))], nbytes=64
    )
    workload = Workload(structure="list", fill=lambda size: filled, merges=True)
    found = measure(workload, filled, 64, 1, 2)
    assert [one.rare for one in found] == [False]


@pytest.mark.parametrize(
    ("paces", "measured"),
    [
        ([1.0] * 5, ["a", "b", "a", "b"]),
        # Others disturb "b" in one pass, then in both, then each in both.
        ([1.0, 1.0, 1.5, 1.0, 1.0], ["a", "b", "a", "b"]),
        ([1.0, 1.0, 1.5, 1.5, 1.0, 1.0], ["a", "b", "a", "b", "b"]),
        ([1.0, 1.5, 1.0, 1.5, 1.0, 1.0, 1.0], ["a", "b", "a", "b", "a", "b"]),
        # It was faster for a while, or becomes slower for good.
        ([1.5, 1.5, 1.5, 1.0, 1.0], ["a", "b", "a", "b"]),
        ([1.0, 1.5, 1.5, 1.5, 1.5], ["a", "b", "a", "b"]),
        # It is disturbed again and again.
        ([1.0, 1.5] * 50, ["a", "b"] * 5),
    ],
)
def test_what_others_have_disturbed_is_measured_again(
    paces: list[float], measured: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []

    def fill(name: str, size: int) -> Filled:
        found.append(name)
        return Filled(lambda batch, matches: [("insert", lambda: Work(inserts=1))], 64)

    works = [Workload(structure=name, fill=partial(fill, name)) for name in "ab"]
    readings = iter(paces)
    monkeypatch.setattr(structure_work, "workloads", lambda: works)
    monkeypatch.setattr(machine, "interpret_s", lambda: next(readings))
    monkeypatch.setattr(structure_work, "_SECONDS", 0)
    structure_work.measure_all([64], [1], [2], passes=2)
    assert found == measured


def test_units_that_were_never_counted_stay_in_proportion_to_the_default() -> None:
    rng = np.random.default_rng(2)
    samples = [sample(rng, n, rows) for n in TRUE.sizes for rows in TRUE.rows]
    found = fit_structure(samples, BASE_PS)
    assert found.unit_ps[1] / BASE_PS[1] == pytest.approx(found.unit_ps[2] / BASE_PS[2], rel=0.01)


def test_parts_of_a_call_cost_what_tuples_of_the_longest_calls_do() -> None:
    rng = np.random.default_rng(3)
    found = [sample(rng, n, rows) for n in TRUE.sizes for rows in TRUE.rows for _ in range(2)]
    found = [replace(s, step=s.step._replace(name="interval_join.join")) for s in found]
    costs = fit_structures(found, BASE_PS)
    part = costs["interval_join.shared"]
    assert part.call_ps == 0
    long = [s for s in found if s.step.rows == TRUE.rows[-1]]
    parts = [replace(s, step=s.step._replace(name="interval_join.shared")) for s in long]
    assert off_by(parts, costs) == pytest.approx(1, abs=0.1)


def test_steps_by_themselves_tell_prices_apart_that_whole_calls_do_not() -> None:
    """Each tuple of a join is searched for and inserted: as many comparisons as moves, always."""
    cost = replace(TRUE, percents=((100,) * 3,) * 3, match_percents=(100,) * 3)

    def step_of(size: int, rows: int, *, comparisons: int, moves: int) -> Sample:
        work = Work(comparisons=rows * comparisons, moves=rows * moves)
        step = Step("ibwj_pim_tree.join", rows, size)
        return sample_of(step, work, cost.work_ps(step, work) / 1e12, calls=1)

    joins = [step_of(n, rows, comparisons=16, moves=16) for n in cost.sizes for rows in cost.rows]
    searches = [step_of(n, 1024, comparisons=16, moves=0) for n in cost.sizes]
    inserts = [step_of(n, 1024, comparisons=0, moves=16) for n in cost.sizes]
    receiving_s = (cost.call_ps + 1024 * cost.row_ps) / 1e12
    parts = [
        replace(part, is_part=True, seconds=part.seconds - receiving_s)
        for part in searches + inserts
    ]
    found = fit_structure(joins + parts, BASE_PS)
    assert off_by(joins, {"ibwj_pim_tree.join": found}) == pytest.approx(1, abs=0.1)
    assert found.unit_ps[0] / found.unit_ps[2] == pytest.approx(0.7, abs=0.1)
    profile = replace(load_profile(), structures={"ibwj_pim_tree.join": found})
    for part in parts:
        priced_ns = profile.part_ns("ibwj_pim_tree.join", part.step.size, part.work)
        assert priced_ns == pytest.approx(part.seconds * 1e9, rel=0.1)
    alone = fit_structure(joins, BASE_PS)
    assert alone.unit_ps[0] / alone.unit_ps[2] != pytest.approx(0.7, abs=0.3)


def test_steps_of_a_window_join_are_parts_of_its_calls() -> None:
    steps = {one.variant: one for one in steps_of_join("pim_tree", 1 << 10)}
    assert set(steps) == {
        f"{step} by itself" for step in ("insert", "search", "search and scan", "merge")
    }
    for one in steps.values():
        assert one.is_part
        assert one.step == ("ibwj_pim_tree.join", 1024, 1 << 10)
        assert one.seconds > 0
    assert steps["insert by itself"].work.inserts == 1 << 10
    assert steps["search by itself"].work.inserts == 0


def test_where_a_call_takes_all_tuples_the_size_says_all() -> None:
    cost = StructureCost(
        sizes=(64, 1024), rows=(1,), percents=((100,), (150,)),
        copied_percents=(100, 100), match_percents=(100, 100),
        call_ps=1_000_000, row_ps=4_000, unit_ps=(0,) * 7,
    )  # fmt: skip
    samples = []
    for size in cost.sizes:
        step = Step("po_join.seal", size, size)
        seconds = cost.work_ps(step, Work()) / 1e12
        samples.append(sample_of(step, Work(), seconds, calls=1))
    found = fit_structure(samples, BASE_PS)
    assert (found.sizes, found.rows) == ((64, 1024), (1,))
    assert off_by(samples, {"po_join.seal": found}) == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize(
    "workload", workloads(), ids=lambda one: " ".join((one.structure, one.variant)).strip()
)
def test_every_structure_works_at_any_size_and_batch(
    workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scenarios.calibration.structure_work._SECONDS", 0)
    monkeypatch.setattr("scenarios.calibration.structure_work._PATIENCE", 1)
    filled = workload.fill(64)
    assert filled.nbytes > 0
    for batch in (1, 32):
        found = measure(workload, filled, 64, batch, 2)
        assert found
        for one in found:
            assert one.step.name.startswith(f"{workload.structure}.")
            assert one.step.rows == (64 if workload.whole else batch)
            assert one.calls >= 1
            assert one.seconds > 0


@pytest.mark.parametrize("name", STRUCTURES)
def test_what_is_inserted_into_subwindows_has_been_sorted(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manager sorts, and is charged for it: workers' insertions do not include that."""
    workload = next(one for one in workloads() if one.structure == name)
    todo = workload.fill(1024).rounds(1024, 2)
    monkeypatch.setattr(structure_work, "np", None)  # neither drawn nor sorted in the clock
    assert [name for name, function in todo if function()][:2] == ["insert", "probe"]


def test_subwindows_are_measured_in_large_batches_that_are_no_larger_than_they_are() -> None:
    cases = {
        workload.structure: {
            size: [batch for batch, _ in workload.cases(size, BATCHES, (2,))]
            for size in (64, 1 << 15, 1 << 20)
        }
        for workload in workloads()
        if not workload.variant and not workload.whole
    }
    usual = [1, 16, 128, 1024]
    for name in STRUCTURES:
        assert cases[name] == {
            64: usual, 1 << 15: [*usual, 16_384], 1 << 20: [*usual, 16_384, 131_072],
        }  # fmt: skip
    assert cases["prefix_grid"] == dict.fromkeys((64, 1 << 15, 1 << 20), usual)
    assert cases["nested_loop"] == {64: usual, 1 << 15: usual, 1 << 20: [1, 16]}


def test_the_default_profile_prices_every_structure_that_systems_use() -> None:
    wanted = {f"{name}.{step}" for name in WINDOW_INDEXES for step in ("insert", "probe", "expire")}
    wanted |= {f"{name}.{step}" for name in SEGMENTS for step in ("seal", "probe")}
    wanted |= {f"{name}.{step}" for name in STRUCTURES for step in ("insert", "probe")}
    wanted |= {f"ibwj_{name}.join" for name in INDEXES}
    wanted |= {f"ibwj_shared_{name}.join" for name in SHARED}
    wanted |= {f"predicate_tree.{step}" for step in ("insert", "mark", "list", "scan")}
    wanted |= {"bit_rows.intersect", "id_rows.intersect"}
    wanted |= {"interval_join.join", "interval_join.shared"}
    wanted |= {"order_arrays.permutation", "order_arrays.offset"}
    for name in ("default", "multicore", "shared_memory"):
        assert wanted <= set(load_profile(name).structures)
