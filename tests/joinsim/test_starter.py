"""`joinsim new topology` writes a topology that passes the checks of all topologies."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from importlib import import_module
from pathlib import Path

import pytest

import joinsim as js
from joinsim.cli.command_line import main


@pytest.mark.parametrize("part", ["checks", "join"])
def test_a_new_topology_is_sound(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"toy_{part}"
    js.new_topology(name, tmp_path / name)
    monkeypatch.syspath_prepend(tmp_path / name)
    monkeypatch.syspath_prepend(tmp_path / name / "src")
    entry = tomllib.loads((tmp_path / name / "pyproject.toml").read_text())
    home, _, kind = entry["project"]["entry-points"]["joinsim.topologies"][name].partition(":")
    topology = getattr(import_module(home), kind)
    assert topology.name == name
    if part == "checks":
        for check in js.checks.check_topology(topology, examples=4):
            check()
    else:
        import_module(f"test_{name}").test_it_joins_what_nested_loops_join()


def test_a_new_topology_is_found_beside_its_folder(tmp_path: Path) -> None:
    js.new_topology("toy_here", tmp_path / "toy_here")
    build = "from setuptools.build_meta import build_editable; build_editable('dist')"
    subprocess.run([sys.executable, "-c", build], cwd=tmp_path / "toy_here", check=True)
    (wheel,) = tmp_path.glob("toy_here/dist/*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    load = "import site; site.addsitedir('installed'); from toy_here import ToyHere"
    subprocess.run([sys.executable, "-c", load], cwd=tmp_path, check=True)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("MyJoin", "a topology is named in lower case"),
        ("../join", "a topology is named in lower case"),
        ("j" * 101, "of at most 100 letters"),
        ("class", "by no word of Python's own"),
        ("spo_join", "there is a topology of this name"),
        ("json", "there is a module of this name"),
        ("numpy", "there is a module of this name"),
        ("taken", "taken exists"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused(
    name: str,
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "taken").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["joinsim", "new", "topology", name])
    with pytest.raises(SystemExit, match="3"):
        main()
    assert complaint in capsys.readouterr().err
    assert [path.name for path in tmp_path.rglob("*")] == ["taken"]
