"""The measured subwindow, segment and window join: what they answer, and that errors are seen.

Never how fast they are.
"""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from joins.codes import decode
from joins.indexes.immutable.po_join import PoJoinSegment
from joins.indexes.panjoin.subwindow import STRUCTURES
from joins.indexes.structures import SEGMENTS
from joins.window_join.window_join import WindowJoin
from joins.window_join.window_join_spec import INDEXES, WindowJoinSpec
from netsim.cost import load_profile
from scenarios import index_surveys, scenario_files
from scenarios.calibration.window_workload import WindowWorkload, expected_matches
from scenarios.scenario_files import ConfigError
from scenarios.survey import (
    DriftSpeedSurvey,
    IndexStepsSurvey,
    InsertSpreadSurvey,
    MemoryTrafficSurvey,
    SegmentSpeedSurvey,
    SubwindowSpeedSurvey,
    Surveyed,
    WindowJoinSpeedSurvey,
    take_survey,
)

KINDS = (*STRUCTURES, "b_plus_tree")


def take(**keys: Any) -> Surveyed:
    small = {"tuples": 4096, "partitions": 32, "batch": 1024, "passes": 1, "probes": 512}
    survey = SubwindowSpeedSurvey.model_validate(small | keys)
    return take_survey(survey, seed=1, profile=load_profile())


@pytest.mark.parametrize("structure", KINDS)
def test_insertion_stores_every_tuple(structure: str) -> None:
    found = take(structure=structure)
    assert found.passed
    assert found.record["tuples"] == 4096
    assert found.record["tuples_s"]["least"] > 0


@pytest.mark.parametrize("structure", KINDS)
@pytest.mark.parametrize("join", ["band", "equi"])
@pytest.mark.parametrize("selectivity", [1, 16])
def test_a_probe_has_as_many_matches_as_asked_for(
    structure: str, join: str, selectivity: int
) -> None:
    found = take(structure=structure, join=join, selectivity=selectivity)
    assert found.passed
    assert found.record["match_rate"] == pytest.approx(selectivity, rel=0.2)


def test_a_structure_that_loses_tuples_fails_the_survey(monkeypatch: pytest.MonkeyPatch) -> None:
    right = index_surveys._fill

    def fill_half(survey: SubwindowSpeedSurvey) -> Any:
        return right(survey.model_copy(update={"tuples": survey.tuples // 2}))

    monkeypatch.setattr(index_surveys, "_fill", fill_half)
    index_surveys._filled.cache_clear()
    assert not take().passed
    assert not take(selectivity=16).passed
    index_surveys._filled.cache_clear()


def test_one_subwindow_at_a_time_is_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    made: weakref.WeakSet[Any] = weakref.WeakSet()
    make = index_surveys._make_subwindow

    def make_next(survey: SubwindowSpeedSurvey) -> Any:
        gc.collect()
        assert not made
        made.add(full := make(survey))
        return full

    monkeypatch.setattr(index_surveys, "_make_subwindow", make_next)
    assert take(passes=3).passed


def test_more_partitions_than_tuples_are_refused() -> None:
    with pytest.raises(ValidationError, match="partitions = 8192: at most 4096, the tuples"):
        take(partitions=8192)


def take_segment(**keys: Any) -> Surveyed:
    survey = SegmentSpeedSurvey.model_validate({"tuples": 2000, "probes": 150, "passes": 1} | keys)
    return take_survey(survey, seed=1, profile=load_profile())


@pytest.mark.parametrize("structure", list(SEGMENTS))
@pytest.mark.parametrize("share", [0.05, 0.2])
def test_a_probe_has_the_share_of_matches_asked_for(structure: str, share: float) -> None:
    found = take_segment(structure=structure, match_share=share)
    assert found.passed
    assert found.record["match_rate"] == pytest.approx(2000 * share, rel=0.25)
    assert found.record["clock"] == "processor time"


def test_a_segment_that_loses_a_match_fails_the_survey(monkeypatch: pytest.MonkeyPatch) -> None:
    right = PoJoinSegment.probe

    def forgetful(self: PoJoinSegment, *args: Any, **options: Any) -> Any:
        found = right(self, *args, **options)
        return replace(found, count=found.count - 1)

    monkeypatch.setattr(PoJoinSegment, "probe", forgetful)
    assert not take_segment().passed


def survey_of(**keys: Any) -> WindowJoinSpeedSurvey:
    return WindowJoinSpeedSurvey.model_validate({"window_bits": 7, "passes": 1} | keys)


def take_join(**keys: Any) -> Surveyed:
    return take_survey(survey_of(**keys), seed=1, profile=load_profile())


def test_every_index_of_the_registry_can_be_measured() -> None:
    assert all(survey_of(index=name).memory_bytes > 0 for name in INDEXES)
    known = WindowJoinSpeedSurvey.model_json_schema()["properties"]["index"]["enum"]
    assert known == list(INDEXES)


@pytest.fixture(scope="module")
def matches() -> dict[str, int]:
    """Return how many matches each index finds in the same arrivals."""
    return {
        name: take_join(index=name).record["matches"] for name in INDEXES if name != "nested_loop"
    }


def test_all_indexes_find_the_same_matches(matches: dict[str, int]) -> None:
    assert len(set(matches.values())) == 1


def test_the_matches_counted_are_those_of_sorted_columns(matches: dict[str, int]) -> None:
    workload, tuples, step = survey_of().workload, 1 << 18, 1 << 12
    first = 2 * workload.arrivals
    # Step by step: among all at once a key has thousands of others near it.
    counts = [
        workload.expected(begin, begin + step)[0] for begin in range(first, first + tuples, step)
    ]
    assert matches["pim_tree"] == np.sum(counts)


@pytest.mark.parametrize("lookup_rows", [1, 5, 16])
@pytest.mark.parametrize(("index", "memory"), [("b_plus_tree", "_found"), ("pim_tree", "_places")])
def test_as_many_tuples_are_looked_up_together_as_is_set(
    index: str, memory: str, lookup_rows: int, matches: dict[str, int]
) -> None:
    keys = {"index": index, "lookup_rows": lookup_rows}
    assert len(getattr(index_surveys.make_join(survey_of(**keys)), memory)) == lookup_rows
    assert take_join(**keys).record["matches"] == matches[index]


@pytest.mark.parametrize(
    "keys",
    [
        {"self_join": True},
        {"other_bits": 9},
        {"share_percent": 90},
        {"values": "normal"},
        {"values": "gamma(3, 3)"},
        {"values": "gamma(1, 5)"},
        {"match_rate": 8.0},
        {"threads": 2, "merge_ratio": 1.0},
        {"index": "nested_loop"},
    ],
    ids=str,
)
def test_a_tuple_has_as_many_matches_as_asked_for(keys: dict[str, Any]) -> None:
    """A tuple of R that sees the smaller window of S has fewer, and there are nine in ten."""
    found = take_join(**keys)
    assert found.passed
    wanted = keys.get("match_rate", 2.0)
    if keys.get("other_bits"):  # tuples of S see a quarter of the larger window
        wanted *= (1 + 1 / 4) / 2
    assert found.record["match_rate"] == pytest.approx(wanted, rel=0.06)


@pytest.mark.parametrize(
    ("threads", "clock"), [(0, "processor time"), (1, "wall time"), (2, "wall time")]
)
def test_the_record_says_what_was_run(threads: int, clock: str) -> None:
    record = take_join(threads=threads, passes=2).record
    assert (record["clock"], record["threads"]) == (clock, max(1, threads))
    assert (record["window"], record["passes"]) == (128, 2)
    rates = record["tuples_s"]
    assert 0 < rates["least"] <= rates["median"] <= rates["most"]


class Forgetful:
    """A join that loses the first match of every batch."""

    def __init__(self, join: WindowJoin) -> None:
        self._join = join

    def join(self, rows: Any) -> Any:
        found = self._join.join(rows)
        count = found.count.copy()
        count[np.argmax(count > 0)] -= 1
        return replace(found, count=count)


def test_a_join_that_loses_a_match_fails_the_survey(monkeypatch: pytest.MonkeyPatch) -> None:
    right = index_surveys.make_join
    monkeypatch.setattr(index_surveys, "make_join", lambda survey: Forgetful(right(survey)))
    assert not take_join().passed


@pytest.mark.parametrize(
    "workload",
    [
        WindowWorkload(windows=(50, 50)),
        WindowWorkload(windows=(50, 20), share_percent=70),
        WindowWorkload(windows=(40, 40), self_join=True, values="normal"),
    ],
    ids=str,
)
def test_a_part_of_the_arrivals_is_the_same_alone(workload: WindowWorkload) -> None:
    whole, part = workload.rows(0, 1000), workload.rows(400, 700)
    assert all(map(np.array_equal, whole.part(400, 700), part))
    everything = expected_matches(whole, self_join=workload.self_join)
    for of_whole, alone in zip(everything, workload.expected(400, 700), strict=True):
        assert np.array_equal(of_whole[400:700], alone)


def test_matches_are_those_of_comparing_everything() -> None:
    workload = WindowWorkload(windows=(30, 30), match_rate=5)
    rows = workload.rows(0, 300)
    count, _ = expected_matches(rows)
    for row in range(300):
        seen = [
            other
            for other in range(300)
            if rows.side[other] != rows.side[row]
            and rows.start[row] <= rows.position[other] < rows.stop[row]
            and abs(int(rows.key[other]) - int(rows.key[row])) <= int(workload.band)
        ]
        assert count[row] == len(seen)


def test_shares_of_the_streams_are_as_asked_for() -> None:
    rows = WindowWorkload(windows=(50, 50), share_percent=90).rows(0, 1000)
    assert (rows.side == 0).sum() == 900


@pytest.mark.parametrize(
    "keys", [{"index": "b_tree"}, {"window_bits": 40}, {"passes": 0}, {"lookup_rows": 17}]
)
def test_what_cannot_be_measured_is_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        survey_of(**keys)


def test_an_index_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    survey = {"of": "window join speed", "index": "pimtree"}
    with pytest.raises(ConfigError, match=r"index = 'pimtree': did you mean 'pim_tree'"):
        scenario_files.build({"name": "x", "survey": survey}, where="test")


def take_drift(**keys: Any) -> Surveyed:
    survey = DriftSpeedSurvey.model_validate({"window_bits": 8, "passes": 2} | keys)
    return take_survey(survey, seed=1, profile=load_profile())


@pytest.mark.parametrize(("threads", "clock"), [(0, "processor time"), (2, "wall time")])
@pytest.mark.parametrize("shift", [0.0, 30.0])
def test_every_window_of_drifting_tuples_is_timed(threads: int, clock: str, shift: float) -> None:
    found = take_drift(threads=threads, shift=shift)
    assert found.passed
    assert list(found.record["pace_tps"]) == [str(number) for number in range(1, 21)]
    assert min(found.record["pace_tps"].values()) > 0
    assert (found.record["clock"], found.record["threads"]) == (clock, threads)


def test_a_wrong_join_of_drifting_values_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    right = WindowJoinSpec.make
    monkeypatch.setattr(
        WindowJoinSpec, "make", lambda *args, **keys: Forgetful(right(*args, **keys))
    )
    assert not take_drift().passed


def test_values_drift_in_the_second_phase_alone() -> None:
    survey = DriftSpeedSurvey(window_bits=10, shift=100.0)
    begins = [window << survey.window_bits for window in (0, 3, 4, 9, 13, 14, 19)]
    keys = [
        index_surveys._drifting_rows(survey, at, at + (1 << survey.window_bits)).key
        for at in begins
    ]
    means = [float(decode(key, "float64").mean()) for key in keys]
    assert means[:2] == pytest.approx([0, 0], abs=0.2)
    assert means[2:5] == pytest.approx([5, 55, 95], abs=0.2), "ten windows, evenly"
    assert means[5:] == pytest.approx([100, 100], abs=0.2)


STEPS = {"insert", "delete", "search", "scan", "merge"}


def record_of(survey: Any, *, seed: int = 1) -> dict[str, Any]:
    found = take_survey(survey, seed=seed, profile=load_profile())
    assert found.passed
    return found.record


@pytest.mark.parametrize("index", ["b_plus_tree", "im_tree", "pim_tree"])
def test_steps_add_up_and_only_those_there_are_cost_something(index: str) -> None:
    survey = IndexStepsSurvey.model_validate({"index": index, "window_bits": 10})
    found = record_of(survey)
    for kind in ("counted_ns", "processor_ns"):
        steps = dict(found[kind])
        assert steps.pop("total") == pytest.approx(sum(steps.values()))
        assert set(steps) == STEPS
    idle = {step for step, ns in found["counted_ns"].items() if ns == 0}
    assert idle == ({"merge"} if index == "b_plus_tree" else {"delete"})
    share = found["merges"]["counted_percent"]
    assert (share == 0) == (index == "b_plus_tree")


def test_a_merge_takes_as_long_as_its_entries_together() -> None:
    """Two merges replace a window at a ratio of one half; each has one and a half windows."""
    merges = record_of(IndexStepsSurvey(window_bits=12))["merges"]
    assert merges["counted_ms"] == pytest.approx(1.5 * 4096 * merges["counted_ns"] / 1e6)
    assert merges["processor_ms"] == pytest.approx(1.5 * 4096 * merges["processor_ns"] / 1e6)


def test_counted_steps_are_the_same_every_time() -> None:
    first, second = (
        record_of(IndexStepsSurvey(window_bits=8), seed=seed)["counted_ns"] for seed in (1, 2)
    )
    assert first == second


def spread(shift: float, window_bits: int = 12) -> dict[str, Any]:
    return record_of(InsertSpreadSurvey(shift=shift, window_bits=window_bits))


@pytest.mark.parametrize("shift", [0, 8, 40])
def test_shares_ascend_to_all_inserts(shift: float) -> None:
    shares = list(spread(shift)["share"].values())
    steps = [b - a for a, b in zip([0.0, *shares], shares, strict=False)]
    assert shares[-1] == pytest.approx(100)
    assert min(steps) >= 0


def test_values_that_hold_still_are_spread_evenly_and_drifting_ones_meet() -> None:
    still, slow, fast = spread(0), spread(8), spread(40)
    assert still["idle_percent"] == 0
    assert still["fullest_percent"] < 30  # 4 subindexes
    assert still["fullest_percent"] < slow["fullest_percent"] < fast["fullest_percent"]
    assert fast["fullest_percent"] > 90
    assert fast["idle_percent"] > 0


def test_a_window_of_one_subindex_puts_all_inserts_there() -> None:
    assert spread(8, window_bits=6)["fullest_percent"] == 100


def test_what_is_read_and_written_makes_the_total() -> None:
    found = record_of(MemoryTrafficSurvey(threads=3, window_bits=9))
    traffic = found["gb_s"]
    assert traffic["total"] == pytest.approx(traffic["read"] + traffic["written"])
    share = 100 * traffic["written"] / traffic["total"]
    assert found["written_percent"] == pytest.approx(share)


def test_every_tuple_is_written_at_least_once() -> None:
    """An insert writes 16 bytes; at the speed of one thread that is a floor for the traffic."""
    profile = load_profile("shared_memory")
    one, four = (
        take_survey(
            MemoryTrafficSurvey(threads=threads, window_bits=12), seed=1, profile=profile
        ).record
        for threads in (1, 4)
    )
    assert one["gb_s"]["written"] > 16 / 10_000  # a tuple takes less than 10 us
    assert 2 < four["gb_s"]["total"] / one["gb_s"]["total"] < 4.5
