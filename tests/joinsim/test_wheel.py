"""What `pip install .` brings: all that the commands need, wherever it is installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGES = ("joinsim", "joins", "actors", "netsim", "topologies", "spark_bridge", "scenarios")

BUILD = "from setuptools import build_meta; build_meta.build_wheel('dist')"

USE = """
import json
import joinsim as js
from netsim.cost import load_profile
from scenarios import scenario_files
from scenarios.streams import find_file

run = js.run("SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '1' ON '5')",
             {"T": {"x": [1, 3, 2]}}, topology="nested_loop")
run.report("run.html")
print(json.dumps({
    "at": js.__file__,
    "pairs": run.pairs.num_rows,
    "scenarios": [scenario_files.load(name).name for name in scenario_files.catalog()],
    "profiles": [load_profile(name).name for name in ("default", "multicore", "shared_memory")],
    "samples": [str(find_file((f"{name}_sample.parquet",)))
                for name in ("yellow_taxi", "household_power")],
}))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with what a wheel of this checkout contains."""
    source = tmp_path_factory.mktemp("source")
    for package in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(REPOSITORY / package, source / package, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, source)
    subprocess.run(
        [sys.executable, "-c", BUILD], cwd=source, check=True, timeout=120, capture_output=True
    )
    (wheel,) = (source / "dist").glob("joinsim-*.whl")
    folder = tmp_path_factory.mktemp("installed")
    with ZipFile(wheel) as file:
        file.extractall(folder)
    return folder


def files_of(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder))
        for package in PACKAGES
        for path in (folder / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_a_wheel_has_every_file_of_our_packages(installed: Path) -> None:
    assert files_of(installed) == files_of(REPOSITORY)
    typed = {f"{package}/py.typed" for package in PACKAGES}
    assert typed <= files_of(installed), "type checkers take names of the others for Any"
    (metadata,) = installed.glob("joinsim-*.dist-info")
    assert "joinsim = joinsim.__main__:main" in (metadata / "entry_points.txt").read_text()


def test_what_is_installed_works_without_the_checkout(installed: Path, tmp_path: Path) -> None:
    environment = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
    ran = subprocess.run(
        [sys.executable, "-c", USE],
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": str(installed)},
        timeout=120,
        capture_output=True,
        text=True,
        check=True,
    )
    used = json.loads(ran.stdout)
    assert Path(used["at"]).is_relative_to(installed)
    assert used["pairs"] == 2
    assert {"spo-q3", "oij-w1", "pim-band"} <= set(used["scenarios"])
    assert used["profiles"] == ["default", "multicore", "shared_memory"]
    assert all(Path(path).is_relative_to(installed) for path in used["samples"])
    assert "<svg" in (tmp_path / "run.html").read_text()


@pytest.mark.parametrize("hiding", ["actors.py", "scenarios/__init__.py"])
def test_a_module_of_the_callers_in_place_of_a_package_is_named(
    tmp_path: Path, hiding: str
) -> None:
    module = tmp_path / hiding
    module.parent.mkdir(exist_ok=True)
    module.touch()
    (tmp_path / "mine.py").write_text("import joinsim")
    said = subprocess.run(
        [sys.executable, tmp_path / "mine.py"],
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert said.stderr.splitlines()[-1].startswith(
        f"ImportError: {module} is found in place of the package "
    )
