from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from actors.hosting.live.post import Served
from actors.protocol import Reply
from joins.work import Step, Work
from netsim.cost import COSTS, Memory, OperatorCost, StructureCost, load_profile, operator_profiles
from scenarios.calibration.fit import (
    Calibrated,
    fit,
    fit_operator,
    fitted_ns,
    misfit,
    write_profile,
)
from scenarios.calibration.live_runs import CarriedMessages

LOCAL_PS, MESSAGE_PS, BYTE_PS = 30_000_000, 130_000_000, 400
SENT_PS, SENT_BYTE_PS = 90_000_000, 200
JOINER = OperatorCost(message_ps=90_000_000, row_ps=25_000, work_percent=170)
SOURCE = OperatorCost(message_ps=400_000_000, row_ps=9_000, work_percent=100)
PROBE = StructureCost(
    sizes=(64, 4096),
    rows=(1, 32),
    percents=((90, 80), (130, 100)),
    call_ps=4_000_000,
    row_ps=900,
    unit_ps=(500, 1, 2, 3, 4, 700, 6),
)
MEMORY = Memory(
    cores=2,
    sizes=(1 << 15, 1 << 30),
    wait_ps=(1_500, 90_000),
    read_ps=(500, 20_000),
    apart_percents=(100, 130),
    same_percents=(100, 120),
)


def observed(rng: np.random.Generator, cost: OperatorCost) -> Served:
    """Return an operator's part in a run that took exactly what *cost* says."""
    comparisons, bits, matches = (
        (0, 0, 0) if cost is SOURCE else rng.integers(10**4, 10**7, 3).tolist()
    )
    run = Served(
        messages=int(rng.integers(10, 99)),
        rows=int(rng.integers(1_000, 10**6)),
        work=Work(comparisons=comparisons, bits=bits, matches=matches),
    )
    if cost is not SOURCE:
        step = Step("hash.probe", int(rng.integers(1, 99)), int(rng.integers(64, 9_999)))
        probing = Reply(steps=[(step, Work(comparisons=comparisons))])
        run.add_reply(probing, worked_ns=0, rows=0)
    base = replace(load_profile(), structures={"hash.probe": PROBE})
    run.worked_ns = round(fitted_ns(base, cost, run))
    return run


def carried(rng: np.random.Generator) -> CarriedMessages:
    local, received, sent = rng.integers(50, 900, 3).tolist()
    received_bytes, sent_bytes = rng.integers(10**5, 10**8, 2).tolist()
    took = local * LOCAL_PS + received * MESSAGE_PS + received_bytes * BYTE_PS
    took += sent * SENT_PS + sent_bytes * SENT_BYTE_PS
    return CarriedMessages(
        seconds=took / 1e12,
        served=local + received,
        received=received,
        received_bytes=received_bytes,
        sent=sent,
        sent_bytes=sent_bytes,
    )


def calibrated(rng: np.random.Generator) -> Calibrated:
    runs = {"joiner": [observed(rng, JOINER) for _ in range(6)]}
    runs["source"] = [observed(rng, SOURCE) for _ in range(6)]
    base = replace(load_profile(), structures={"hash.probe": PROBE}, memory=MEMORY)
    return fit({"split_join": runs}, [carried(rng) for _ in range(12)], base)


def test_costs_are_found_again_from_what_runs_took() -> None:
    found = calibrated(np.random.default_rng(3))
    assert found.transport is not None
    assert found.transport.local_message_ps == pytest.approx(LOCAL_PS, rel=0.01)
    assert found.transport.sent_message_ps == pytest.approx(SENT_PS, rel=0.01)
    assert found.transport.sent_byte_ps == pytest.approx(SENT_BYTE_PS, abs=2)
    assert found.base.message_ps == pytest.approx(MESSAGE_PS, rel=0.01)
    assert found.base.byte_ps == pytest.approx(BYTE_PS, abs=2)
    for role, wanted in (("joiner", JOINER), ("source", SOURCE)):
        cost = found.operators["split_join"][role]
        assert cost.message_ps == pytest.approx(wanted.message_ps, rel=0.02)
        assert cost.row_ps == pytest.approx(wanted.row_ps, rel=0.02)
        assert cost.work_percent == pytest.approx(wanted.work_percent, abs=5)


def test_units_keep_the_prices_of_the_default_profile() -> None:
    found, default = calibrated(np.random.default_rng(4)).base, load_profile()
    assert (found.comparison_ps, found.insert_ps) == (default.comparison_ps, default.insert_ps)


def test_the_machines_memory_is_kept() -> None:
    assert calibrated(np.random.default_rng(4)).base.memory == MEMORY


def test_without_runs_there_is_no_profile() -> None:
    with pytest.raises(ValueError, match="there are none"):
        fit({}, [], load_profile())


def test_where_an_operator_works_the_same_in_every_message_its_factor_stays_near_one() -> None:
    """Every message has the same tuples and work, so that only their sum is known."""
    base, runs = load_profile(), []
    for messages in (10, 20, 40):
        work = Work(comparisons=messages * 10**6)
        run = Served(messages=messages, rows=messages * 500, work=work)
        run.worked_ns = 2 * base.work_ns(work)
        runs.append(run)
    assert fit_operator(base, runs).work_percent == pytest.approx(100, abs=3)


def test_the_misfit_is_how_far_the_median_run_is_from_what_was_fitted() -> None:
    rng, found = np.random.default_rng(6), calibrated(np.random.default_rng(3))
    runs = [observed(rng, JOINER) for _ in range(5)]
    for run, factor in zip(runs, (1.0, 0.8, 0.5, 2.0, 1.25), strict=True):
        run.worked_ns = round(run.worked_ns / factor)
    seen = {"split_join": {"joiner": runs, "source": [Served()]}}
    # Off by 0, -20, -50, +100 and +25 percent; who took no time says nothing.
    assert misfit(found, seen) == pytest.approx(0.25, abs=0.02)


def test_a_profile_is_read_back_as_written(tmp_path: Path) -> None:
    path, written = tmp_path / "mine.toml", calibrated(np.random.default_rng(5))
    write_profile(written, path, "for a test")
    assert written.transport is not None
    base = load_profile(path)
    assert [getattr(base, name) for name in COSTS] == [getattr(written.base, c) for c in COSTS]
    joiner = operator_profiles(path, "split_join")["joiner"]
    cost = written.operators["split_join"]["joiner"]
    assert joiner.work_ns(Work(moves=10**6)) == base.move_ps * 10 * cost.work_percent
    assert base.structures == {"hash.probe": PROBE}
    assert base.memory == MEMORY
    step = Step("hash.probe", 32, 4_096)
    assert joiner.steps_ns([(step, Work(matches=9))], Work()) == (
        (4_000_000 + 32 * 900 + 9 * 700) * cost.work_percent // 100 // 1000
    )
    assert joiner.local_ns(5, 999) == (
        (written.transport.local_message_ps + cost.message_ps + 5 * cost.row_ps) // 1000
    )
    assert joiner.floor_ns(0, 0) == (base.message_ps + cost.message_ps) // 1000
    assert joiner.transport == written.transport
    assert operator_profiles(path, "hash_join") == {}
