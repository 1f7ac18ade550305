from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import joinsim as js
from joins.errors import OutputError
from scenarios.run_directory import UNFINISHED, run_directory, write_json


def test_json_is_written_whole_over_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    write_json(path, {"first": list(range(1000))})
    write_json(path, {"name": "Grüße"})
    assert json.loads(path.read_text(encoding="utf-8")) == {"name": "Grüße"}
    assert [file.name for file in tmp_path.iterdir()] == ["run.json"]


def test_a_value_that_is_no_json_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    write_json(path, {"kept": 1})
    with pytest.raises(TypeError):
        write_json(path, {"odd": object()})
    assert json.loads(path.read_text()) == {"kept": 1}


def test_a_run_says_that_it_has_not_finished_until_it_has(tmp_path: Path) -> None:
    mark = tmp_path / "run" / UNFINISHED
    with run_directory("any", 0, tmp_path / "run") as directory:
        assert f"process {os.getpid()}" in mark.read_text()
    assert directory.is_dir()
    assert not mark.exists()


def test_an_interrupted_run_says_so_and_is_run_again_at_the_same_place(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with suppress(KeyboardInterrupt), run_directory("any", 0, out):
        (out / ".trace.parquet.122").touch()  # by a writer that was not in any block yet
        raise KeyboardInterrupt
    assert [path.name for path in out.iterdir()] == [UNFINISHED]
    assert "it was interrupted" in (out / UNFINISHED).read_text()
    (out / ".trace.parquet.123").touch()  # as a killed process leaves it
    with run_directory("any", 0, out):
        assert [path.name for path in out.iterdir()] == [UNFINISHED]
    assert not list(out.iterdir())


def test_a_second_run_into_the_same_directory_is_refused_while_the_first_lasts(
    tmp_path: Path,
) -> None:
    out = tmp_path / "run"
    message = f"another run is writing to {out} (process {os.getpid()} since "
    with run_directory("any", 0, out):
        (out / "study.json").write_text("the first run's")
        with pytest.raises(OutputError, match=re.escape(message)), run_directory("any", 1, out):
            pass
        assert (out / "study.json").exists()
        assert (out / UNFINISHED).exists()
    with run_directory("any", 1, out):
        pass


def test_a_folder_whose_name_is_not_utf_8_is_refused_before_anything_runs(tmp_path: Path) -> None:
    out = tmp_path / os.fsdecode(b"run\xff")
    with pytest.raises(OutputError, match="is not in UTF-8"), run_directory("any", 0, out):
        pass
    assert not list(tmp_path.iterdir())


QUERY = "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '5' ON '20')"
DATA = {"T": {"x": [(7 * i) % 20 for i in range(60)]}}
STUDY = """
query = "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '5' ON '20')"
topology = "split_join"
[[streams]]
synthetic = { rows = 60, fields = { x = "uniform(0, 9)" } }
[study]
measure = "throughput_tps"
label = "tuples/s"
axis = { label = "PEs", keys = ["pes"], values = [1] }
variants = { all = {} }
"""


def run(out: Path) -> None:
    """Run with pairs; ``replay`` is where a run without them, and a wrong answer, has them."""
    js.run(QUERY, DATA, topology="split_join", out=out)
    assert (out / "joined.parquet").exists()
    (out / "replay").mkdir()


def compare(out: Path) -> None:
    js.compare(QUERY, DATA, topologies=["split_join"], out=out)


def compare_engines(out: Path) -> None:
    scenario = js.Scenario(
        {"query": QUERY, "streams": [{"table": "60 tuples"}], "topology": "split_join"},
        streams=js.run(QUERY, DATA).finished.plan.streams,
    )
    scenario.compare_engines("duckdb", out=out)


def run_study(out: Path) -> None:
    file = out.with_suffix(".toml")
    file.write_text(STUDY)
    js.scenario(str(file)).run(out=out)


def advise(out: Path) -> None:
    js.advise(QUERY, DATA, topologies=["split_join"], engines="", seeds=1, machines=2, out=out)


@pytest.mark.parametrize("write", [run, compare, compare_engines, run_study, advise])
def test_all_that_is_written_is_gone_when_a_directory_is_used_again(
    write: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where a study prepares its streams
    out = tmp_path / "run"
    write(out)
    assert list(out.iterdir())
    with run_directory("any", 0, out):
        assert [path.name for path in out.iterdir()] == [UNFINISHED]
