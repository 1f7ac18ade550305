"""Runs with faults: exact over the reliable transport, and honest without one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import joinsim as js
from tests.actors.meshes import use_threads

ROWS = 400
WINDOW = "SELECT * FROM A, B WHERE A.key = B.key WINDOW AS (SLIDE INTERVAL '1' ON '50')"
BAND = (
    "SELECT * FROM A, B WHERE A.v > B.v AND A.w < B.w "
    "WINDOW AS (SLIDE INTERVAL '10' ON '40')"
)  # fmt: skip
INTERVAL = (
    "SELECT * FROM A, B WHERE A.key = B.key "
    "AND B.ts BETWEEN A.ts - INTERVAL '20 us' AND A.ts + INTERVAL '20 us'"
)
QUERIES = {
    "split_join": WINDOW,
    "low_latency_handshake_join": WINDOW,
    "kp_oij": INTERVAL,
    "scale_oij": INTERVAL,
    "spo_join": BAND,
    "hash_join": WINDOW,
}


def streams() -> dict[str, Any]:
    rng = np.random.default_rng(5)
    return {
        name: {
            "ts": np.arange(ROWS) * 1_000 + place,
            "key": rng.integers(0, 20, ROWS),
            "v": rng.integers(0, 100, ROWS),
            "w": rng.integers(0, 100, ROWS),
        }
        for place, name in enumerate("AB")
    }


def joined(topology: str, faults: list[dict[str, Any]], **how: Any) -> js.Run:
    network = {"transport": how.pop("transport", "reliable")}
    return js.run(
        QUERIES[topology], streams(), topology=topology, faults=faults, network=network,
        feeding={"batch_rows": 20, "rate_tps": 100_000}, pairs=False, **how,
    )  # fmt: skip


def drawn(seed: int) -> list[dict[str, Any]]:
    """Return a fault of every kind, with amounts and times from the seed."""
    rng = np.random.default_rng(seed)

    def times() -> dict[str, Any]:
        start, length = rng.integers(0, 5_000_000), rng.integers(1, 2_000_000)
        every = length + rng.integers(1_000_000, 4_000_000)
        return {
            "start": int(start), "end": int(start + length), "every": int(every),
            "random": bool(rng.random() < 0.5),
        }  # fmt: skip

    rate = {"rate": float(rng.uniform(0, 0.4))}
    return [
        {"kind": "loss", **rate, **times()},
        {"kind": "duplicate", **rate, **times()},
        {"kind": "reorder", **rate, **times(), "delay": "300 us"},
        {"kind": "delay", "delay": "200 us", **times()},
        {"kind": "partition", **times()},
        {"kind": "bandwidth", "factor": 0.001, **times()},
        {"kind": "pause", **times()},
        {"kind": "slow", "factor": 3, **times()},
        {"kind": "skew", "offset": int(rng.integers(-1_000_000, 1_000_000)), **times()},
        {"kind": "stall", **times()},
    ]


@pytest.mark.parametrize("topology", QUERIES)
def test_a_run_under_every_kind_of_fault_is_exact_and_repeats(topology: str) -> None:
    run = joined(topology, drawn(1))
    assert run.verdict.passed
    assert run.verdict.produced > 0
    assert all(run.summary["faults"]["counts"].get(row["kind"]) for row in drawn(1))
    assert joined(topology, drawn(1)).digest == run.digest
    assert joined(topology, drawn(1), seed=2).digest != run.digest


@pytest.mark.parametrize("topology", ["kp_oij", "spo_join"])
def test_under_faults_other_processes_have_the_digest_of_inline(
    topology: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_threads(monkeypatch)
    inline = joined(topology, drawn(1))
    elsewhere = joined(topology, drawn(1), backend="ray", processes=2)
    assert elsewhere.digest == inline.digest
    assert elsewhere.summary["faults"] == inline.summary["faults"]


def test_a_live_run_with_recovery_says_nothing_of_bytes_but_that_they_were_not_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_threads(monkeypatch)
    run = js.run(
        QUERIES["kp_oij"], streams(), topology="kp_oij", clock="live", recovery={}, pairs=False
    )
    (trace,) = (check for check in run.verdict.checks if check.name == "trace")
    assert trace.detail.startswith("its times are in order; bytes were not compared")


def test_a_run_loses_a_fifth_of_all_frames_and_ends_within_ten_seconds() -> None:
    for topology in QUERIES:
        run = joined(topology, [{"kind": "loss", "rate": 0.2}])
        assert run.verdict.passed
        assert run.summary["virtual_seconds"] < 10


def test_without_a_transport_the_verdict_names_what_is_missing() -> None:
    run = joined("kp_oij", [{"kind": "loss", "rate": 0.1}], transport="none")
    verdict = run.summary["verdict"]
    assert not verdict["exact"]
    assert verdict["missing"] > 0
    checks = {check.name: check for check in run.verdict.checks}
    assert checks["conservation"].passed
    assert "lost" in checks["conservation"].detail


def test_an_actor_that_fails_without_a_transport_is_named_and_not_a_crash() -> None:
    row = {"kind": "reorder", "rate": 0.3, "delay": "1 ms"}
    run = joined("split_join", [row], transport="none")
    assert run.verdict.passed is False
    assert "must ascend" in str(run)


def test_what_went_wrong_is_in_the_files_of_the_run(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"kind": "partition", "end": "1 ms", "every": "3 ms", "between": ["*", "oij.*"]},
        {"kind": "pause", "actor": "oij.1", "start": "2 ms", "end": "4 ms"},
    ]
    run = joined("kp_oij", rows, out=tmp_path / "run")
    written = json.loads((tmp_path / "run" / "run.json").read_text())
    assert written["faults"]["counts"]["partition"] > 0
    assert written["faults"]["retransmissions"] >= written["faults"]["counts"]["partition"] // 2
    assert [row["kind"] for row in written["configuration"]["faults"]] == ["partition", "pause"]
    assert "frames sent again" in str(run)
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Shaded: partition, pause." in page
    assert "every 3 ms" in page


def test_the_summary_counts_crashes_among_faults() -> None:
    crash = {"kind": "crash", "actor": "joiner.1", "start": "1 ms", "end": "2 ms"}
    run = joined("split_join", [crash])
    assert run.summary["recovery"]["crashes"] == 1
    assert re.search(r"faults +1 crash\n", str(run))


def test_a_run_without_faults_says_nothing_of_them() -> None:
    run = joined("kp_oij", [])
    assert run.summary["faults"] is None
    assert "transport" not in str(run)


def test_an_actor_that_is_not_there_is_refused() -> None:
    with pytest.raises(js.NetworkError, match=r"no actor is called 'oij.9'; did you mean 'oij"):
        joined("kp_oij", [{"kind": "pause", "end": "1 ms", "actor": "oij.9"}])


def test_a_system_without_the_actor_of_a_fault_fails_alone_when_several_are_compared() -> None:
    query = "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '5' ON '20')"
    data, slow = {"T": {"x": np.arange(60) % 7}}, {"kind": "slow", "factor": 2, "actor": "joiner.3"}
    how: dict[str, Any] = {"topologies": ["split_join", "nested_loop"], "faults": [slow]}
    compared = js.compare(query, data, **how)
    good, failed, fastest = repr(compared).splitlines()
    assert good.startswith("split_join ")
    assert re.fullmatch(r"nested_loop +failed: faults.0.actor: no actor .* 'joiner.3'; .*", failed)
    assert fastest == "fastest exact: split_join"
    advice = js.advise(query, data, **how, engines="", seeds=1)
    assert (advice.best.topology, advice.best.parameters["pes"] > 3) == ("split_join", True)
    slow["actor"] = "jo.1"
    with pytest.raises(js.ConfigError, match=r"split_join: faults.0.actor: .*; nested_loop: faul"):
        js.compare(query, data, **how)
