"""A path that begins with ``~`` is in the home folder, where a shell has not said so already.

It does not where the path is not the beginning of a word, as in ``--out=~/run``, and Python has no
shell.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import joinsim as js
from joinsim import _reproduction

QUERY = "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '1' ON '5')"
STREAMS = {"T": {"x": np.arange(9) % 4}}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return folder


def _reproduced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_reproduction, "find_studies", lambda paper: [])
    js.reproduce("spo", scale="smoke", out="~/made")


def _run() -> js.Run:
    return js.run(QUERY, STREAMS, topology="nested_loop")


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (lambda: js.calibrate("~/own.toml", live=False, passes=0), "own.toml"),
        (lambda: js.draw("split_join", "~/drawn.svg"), "drawn.svg"),
        (lambda: js.new_topology("my_join", "~/package"), "package/src/my_join.py"),
        (lambda: _run().report("~/run.html"), "run.html"),
        (lambda: _run().figure("~/run.svg"), "run.svg"),
        (lambda: js.report([_run(), _run()], "~/runs.html"), "runs.html"),
    ],
)
def test_what_is_written_is_in_the_home_folder(
    home: Path, write: Callable[[], object], name: str
) -> None:
    write()
    assert (home / name).is_file()
    assert not list(Path().iterdir())


def test_a_reproduction_and_its_claims_are_in_the_home_folder(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _reproduced(monkeypatch)
    js.claims(["~/made"], out="~/claims.md")
    assert (home / "made/reproduce.html").is_file()
    assert (home / "claims.md").is_file()
    assert not list(Path().iterdir())


def test_failing_worlds_are_in_the_home_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from scenarios.worlds import fuzzing

    looked_at: list[Path] = []
    monkeypatch.setattr(fuzzing, "check_can_be_made", looked_at.append)
    js.fuzz(1, topologies=["nested_loop"], out="~/worlds")
    assert looked_at == [home / "worlds"]


def test_a_stream_is_prepared_in_the_home_folder(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spark_bridge.pipeline import pipeline

    folders: list[Path] = []

    def prepare(source: object, out: Path, **_: object) -> tuple[object]:
        folders.append(out)
        return (source,)

    monkeypatch.setattr(pipeline, "prepare", prepare)
    js.prepare("~/meter.csv", out="~/prepared")
    assert folders == [home / "prepared"]


def test_a_profile_is_read_from_the_home_folder() -> None:
    js.calibrate("~/own.toml", live=False, passes=0)
    calibration = js.calibrate(profile="~/own.toml", live=False)
    assert calibration.path == Path("~/own.toml").expanduser()
