from __future__ import annotations

import json
from pathlib import Path

import pytest

from scenarios.run_directory import write_json


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
