"""A run whose process is killed goes on to the results that it would have had."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import joinsim as js
from actors.hosting import saved_run
from actors.protocol import Progress
from joinsim import _scenario
from joinsim._calls import of_query
from scenarios.observer import Line, Observer
from tests.end_to_end.conftest import SELF_JOIN, WINDOW, Command, write_prepared
from tests.end_to_end.stopping import command, started_at

JOIN = ["--query", SELF_JOIN.format(window=WINDOW), "--data", "s", "--topology", "spo_join"]
FEEDING = ["--set", "feeding.batch_rows=10", "--pairs"]
SAME = ("results.parquet", "probes-0.parquet")


def write_stream(folder: Path, rows: int) -> None:
    rng = np.random.default_rng(4)
    fields = {"a": rng.integers(0, 50, rows), "b": rng.random(rows)}
    write_prepared(folder / "s", fields, ts=np.arange(rows))


@pytest.mark.parametrize("backend", ["inline", "ray"])
def test_a_run_whose_driver_is_killed_goes_on_to_the_same_results(
    backend: str, tmp_path: Path, joinsim: Command
) -> None:
    write_stream(tmp_path, 7_500)
    snapshots = random.Random(os.getpid()).randint(1, 2)  # anywhere: the outcome is the same

    def saved(folder: Path, _: psutil.Process) -> bool:
        taken = (folder / "run" / "saved").glob("*.snapshot")
        return any(int(one.stem) >= snapshots for one in taken)

    more = ["--backend", backend, "--save-every", "1ms", "--out", "run", "--json"]
    with command(["run", *JOIN, *FEEDING, *more], tmp_path) as run:
        started_at(saved, run, tmp_path)
        run.kill()
        run.wait()
    mark = (tmp_path / "run" / "unfinished.txt").read_text()
    assert mark.splitlines()[-1] == f"joinsim run --resume {tmp_path / 'run'}"
    with command(["run", "--resume", "run", "--json"], tmp_path) as run:
        out, err = run.communicate(timeout=300)
    assert run.returncode == 0, err
    gone_on, whole = json.loads(out), joinsim("run", *JOIN, *FEEDING, "--out", "whole", "--json")
    for key in ("digest", "verdict"):
        assert gone_on[key] == whole.json[key]
    for name in SAME:
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    left = {path.name for path in (tmp_path / "run").iterdir()}
    assert left == {path.name for path in (tmp_path / "whole").iterdir()}


def test_a_command_that_is_interrupted_says_how_to_go_on(
    joinsim: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    write_stream(tmp_path, 300)
    monkeypatch.setattr(_scenario, "execute", interrupt)
    said = joinsim("run", *JOIN, "--save-every", "1s", "--out", "run")
    line = f"go on with: joinsim run --resume {tmp_path / 'run'}"
    assert (said.code, said.err.splitlines()[-2:]) == (3, ["joinsim: stopped", line])


class Stopping(Observer):
    """Interrupts a run when it has simulated something."""

    @contextmanager
    def running(self, plan: Any) -> Iterator[Line]:
        yield self._Line()

    class _Line(Line):
        def on_run(self, at: Progress, seconds: float) -> None:
            raise KeyboardInterrupt


SYSTEM: dict[str, Any] = {"topology": "split_join", "feeding": {"batch_rows": 8}}
FAULTS = {
    "crash": {"kind": "crash", "actor": "joiner.1", "start": "1 ms", "end": "2 ms"},
    "loss": {"kind": "loss", "rate": 0.1},
}
QUERY = "SELECT * FROM R, S WHERE R.x < S.x WINDOW AS (SLIDE INTERVAL '5' ON '20')"


def tables() -> dict[str, Mapping[str, np.ndarray]]:
    rng = np.random.default_rng(3)
    return {name: {"x": rng.integers(0, 50, 40)} for name in ("R", "S")}


@pytest.fixture
def interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of a run over tables that was interrupted, saved to its last message."""
    monkeypatch.setattr(saved_run, "_PAUSE_FACTOR", 0)
    out = tmp_path / "run"
    scenario = of_query(QUERY, tables(), pairs=True, **SYSTEM)
    with pytest.raises(KeyboardInterrupt) as stopped:
        replace(scenario, observer=Stopping()).run(out=out, save_every="1 ns")
    assert stopped.value.__notes__ == [f"go on with: joinsim.resume({str(out)!r}, streams)"]
    assert list((out / "saved").glob("*.snapshot"))
    return out


def test_a_file_for_a_figure_is_looked_at_before_a_run_goes_on(joinsim: Command) -> None:
    said = joinsim("run", "--resume", "nowhere", "--figure", "x.bmp")
    assert said.code == 3
    assert "x.bmp" in said.err


@pytest.mark.parametrize("change", [{"query": None}, {"rows": -3}, {"surprise": 1}])
def test_a_run_whose_configuration_is_damaged_is_refused(
    interrupted: Path, change: dict[str, Any], joinsim: Command
) -> None:
    about = json.loads((interrupted / "resume.json").read_text())
    about["configuration"] |= change
    about["configuration"] = {
        key: value for key, value in about["configuration"].items() if value is not None
    }
    (interrupted / "resume.json").write_text(json.dumps(about))
    said = joinsim("run", "--resume", str(interrupted))
    assert said.code == 3
    assert "resume.json is damaged" in said.err
    assert next(iter(change)) in said.err


def test_an_interrupted_run_over_tables_goes_on_with_the_same_tables(interrupted: Path) -> None:
    gone_on = js.resume(interrupted, tables())
    whole = js.run(QUERY, tables(), **SYSTEM)
    assert gone_on.digest == whole.digest
    assert gone_on.pairs.equals(whole.pairs)
    assert gone_on.verdict.exact
    assert not (interrupted / "saved").exists()


@pytest.mark.parametrize("name", ["oij-w1", "spo-q3"])
def test_an_interrupted_run_of_a_scenario_makes_or_reads_its_streams_again(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, joinsim: Command
) -> None:
    monkeypatch.setattr(saved_run, "_PAUSE_FACTOR", 0)
    out = tmp_path / "run"
    scenario = js.scenario(name, scale="smoke").with_settings({"feeding.batch_rows": 500})
    with pytest.raises(KeyboardInterrupt) as stopped:
        replace(scenario, observer=Stopping()).run(out=out, save_every="1 ns")
    assert stopped.value.__notes__ == [f"go on with: joinsim run --resume {out}"]
    gone_on = joinsim("run", "--resume", "run", "--json")
    whole = scenario.run()
    assert isinstance(whole, js.Run)
    assert gone_on.json["digest"] == whole.digest


def changed(directory: Path) -> None:
    data = tables()
    data["S"]["x"][7] += 1
    js.resume(directory, data)


def of_another_version(directory: Path) -> None:
    about = json.loads((directory / "resume.json").read_text()) | {"joinsim": "0.0.1"}
    (directory / "resume.json").write_text(json.dumps(about))
    js.resume(directory, tables())


def edited(directory: Path) -> None:
    about = json.loads((directory / "resume.json").read_text())
    about["configuration"]["parameters"] = {"pes": 3}
    (directory / "resume.json").write_text(json.dumps(about))
    js.resume(directory, tables())


def damaged(directory: Path) -> None:
    (directory / "resume.json").write_text("{}")
    js.resume(directory, tables())


@pytest.mark.parametrize(
    ("resume", "message"),
    [
        (js.resume, "its streams were tables in memory: pass them again"),
        (changed, "the data of stream 'S' ((memory)) has changed since"),
        (of_another_version, "is a run of joinsim 0.0.1, and this is"),
        (damaged, "resume.json is damaged"),
        (edited, "resume.json is not as the run wrote it: it cannot go on with another"),
    ],
)
def test_a_run_that_cannot_go_on_is_refused_and_stays(
    resume: Callable[[Path], None], message: str, interrupted: Path
) -> None:
    with pytest.raises(js.JoinsimError, match=re.escape(message)):
        resume(interrupted)
    assert list((interrupted / "saved").glob("*.snapshot"))


def test_what_is_no_interrupted_run_is_refused_in_a_sentence(
    joinsim: Command, tmp_path: Path
) -> None:
    write_stream(tmp_path, 300)
    assert joinsim("run", *JOIN, "--out", "finished").code == 0
    (tmp_path / "empty").mkdir()
    (tmp_path / "unsaved").mkdir()
    (tmp_path / "unsaved" / "unfinished.txt").touch()
    for arguments, message in [
        (("--resume", "finished"), "finished: this run has finished, there is nothing to resume"),
        (("--resume", "empty"), "empty: there is no run to resume"),
        (("--resume", "nowhere"), "nowhere: there is no such directory"),
        (("--resume", "unsaved"), "unsaved: this run was interrupted and had saved nothing"),
        (("oij-w1", "--resume", "finished", "--seed", "3"), "leave out oij-w1, --seed"),
        (("--resume", "finished", "--set", "pes=3"), "leave out --set\n"),
        ((*JOIN, "--save-every", "soon"), "save_every = 'soon': "),
        ((*JOIN, "--save-every", "1s", "--clock", "live"), "save_every is for virtual time"),
    ]:
        said = joinsim("run", *arguments)
        assert (said.code, said.out) == (3, "")
        assert message in said.err
        assert "Traceback" not in said.err


@pytest.mark.parametrize(("fault", "transport"), [("crash", "reliable"), ("loss", "none")])
def test_a_run_with_crashes_or_lost_messages_is_saved_and_goes_on(
    fault: str, transport: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved_run, "_PAUSE_FACTOR", 0)
    network, faults = {"transport": transport}, [FAULTS[fault]]
    system = {"network": network, "faults": faults, "recovery": {"interval": "200 us"}, **SYSTEM}
    scenario = of_query(QUERY, tables(), pairs=True, **system)
    with pytest.raises(KeyboardInterrupt):
        replace(scenario, observer=Stopping()).run(out=tmp_path / "run", save_every="1 ns")
    gone_on = js.resume(tmp_path / "run", tables())
    whole = js.run(QUERY, tables(), out=tmp_path / "whole", **system)
    assert gone_on.digest == whole.digest
    assert gone_on.verdict == whole.verdict
    assert gone_on.pairs.equals(whole.pairs)


def test_a_run_is_not_saved_where_nothing_stays() -> None:
    with pytest.raises(js.ConfigError, match="name a folder that stays"):
        js.run(QUERY, tables(), save_every="1 s", **SYSTEM)
