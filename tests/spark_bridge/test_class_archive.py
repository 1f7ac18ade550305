"""Spark's classes are stored once and mapped from then on; a damaged file does no harm."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from joins.machine.cache import CACHE_VARIABLE, cache_folder
from spark_bridge.class_archive import main, use_spark
from spark_bridge.session import _mapping_classes, classes_path, find_java

_SESSION = textwrap.dedent(
    """
    import psutil
    from spark_bridge.session import SessionOptions, spark_session
    with spark_session(SessionOptions(quick_start=True)) as spark:
        java = psutil.Process(spark.sparkContext._gateway.proc.pid)
        print({map.path for map in java.memory_maps()})
    """
)
# What an installation has it do loads twice as many classes, and is tested beside it.
_STORE = """
from spark_bridge import class_archive
class_archive.use_spark = lambda spark, folder: None
class_archive.main()
"""


def _mapped() -> str:
    """Return the files that a JVM of Spark maps, started from a process of its own."""
    done = subprocess.run([sys.executable, "-c", _SESSION], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


def _stored() -> str:
    """Store the classes of a Spark that does nothing, as an installation does; return the file."""
    done = subprocess.run([sys.executable, "-c", _STORE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a cache folder without Spark's classes, for this process and those it starts."""
    kernels = cache_folder()
    (tmp_path / "kernels").symlink_to(kernels)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "kernels"))
    return tmp_path


def test_stored_classes_are_mapped_and_damaged_ones_are_left_alone(cache: Path) -> None:
    path = classes_path(find_java())
    assert path.is_relative_to(cache)
    assert not path.exists()
    assert _stored() == str(path)
    assert [one.name for one in path.parent.iterdir()] == [path.name], "nothing else is left"
    assert str(path) in _mapped()
    path.chmod(0o600)
    path.write_bytes(b"no classes")
    assert str(path) not in _mapped()


def test_what_spark_does_while_its_classes_are_stored_works(spark: Any, tmp_path: Path) -> None:
    use_spark(spark, tmp_path)
    assert any((tmp_path / "hosted").iterdir())


def test_a_folder_whose_name_java_would_take_for_two_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, mapped in (("ab", True), ("a:b", False)):
        monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / name / "kernels"))
        path = classes_path(find_java())
        path.parent.mkdir(parents=True)
        path.write_bytes(b"")
        assert bool(_mapping_classes(find_java())) == mapped


def test_classes_are_not_stored_by_a_jvm_that_runs_already(
    spark: Any, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="runs in this process already"):
        main()
    assert capsys.readouterr().out == ""
