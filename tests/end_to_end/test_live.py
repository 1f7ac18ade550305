"""``--clock live`` from a person's side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.actors.meshes import use_threads
from tests.end_to_end.conftest import SELF_JOIN, WINDOW, Command

RUN = ("run", "--query", SELF_JOIN.format(window=WINDOW), "--topology", "spo_join", "--data")


def test_a_live_run_says_what_it_measured_and_promises_no_digest(
    joinsim: Command, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_threads(monkeypatch)
    out = tmp_path / "run"
    said = joinsim(*RUN, prepared, "--clock", "live", "--out", out, "--json")
    assert said.code == 0, said.err
    answer = said.json
    assert (answer["clock"], answer["backend"], answer["digest"]) == ("live", "ray", None)
    assert answer["virtual_seconds"] is None
    assert answer["tuples"] == 300
    assert answer["throughput_tps"] > 0
    assert 0 < answer["latency_ms"]["p50"] <= answer["latency_ms"]["max"]
    assert answer["verdict"]["exact"]
    whole = json.loads((out / "run.json").read_text())
    assert {check["name"]: check["passed"] for check in whole["checks"]}["fifo"]
    assert whole["actors"]["router"]["seconds"] > 0
    assert whole["actors"]["predicate.0.0"]["state_bytes"] > 0
    assert "virtual time" not in (out / "report.html").read_text()


def test_live_is_said_in_words_too(
    joinsim: Command, prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_threads(monkeypatch)
    said = joinsim(*RUN, prepared, "--clock", "live")
    assert said.code == 0, said.err
    assert "ray live" in said.out + said.err
    assert "tuples/s (live)" in said.out + said.err
    assert "digest" not in said.out + said.err


def test_live_inline_is_refused(joinsim: Command, prepared: Path) -> None:
    said = joinsim(*RUN, prepared, "--clock", "live", "--backend", "inline")
    assert said.code == 3
    assert "backend = 'ray'" in said.err
