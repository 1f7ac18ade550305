from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from pathlib import Path

import pytest

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
        (out / ".trace.parquet.123").touch()  # as a killed process leaves it
        raise KeyboardInterrupt
    assert "it was interrupted" in (out / UNFINISHED).read_text()
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
