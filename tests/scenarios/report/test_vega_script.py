"""The script that draws pictures, and making it in another process while something else runs."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, ClassVar

import pytest

from joins.machine.cache import CACHE_VARIABLE
from scenarios.report.picture import making_vega_script, script_path, vega_script


class _Recorded(subprocess.Popen[bytes]):
    begun: ClassVar[list[subprocess.Popen[bytes]]] = []

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.begun.append(self)


def test_it_cannot_end_the_script_element_it_stands_in() -> None:
    assert "</script" not in vega_script()


def test_another_process_makes_what_is_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    path = script_path()
    until = time.monotonic() + 120
    with making_vega_script():
        while not path.exists() and time.monotonic() < until:
            time.sleep(0.05)
    assert path.read_text(encoding="utf-8") == vega_script.__wrapped__()


def test_it_ends_with_what_it_was_begun_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(subprocess, "Popen", _Recorded)
    with pytest.raises(KeyError), making_vega_script():
        raise KeyError
    (process,) = _Recorded.begun
    assert process.returncode == -signal.SIGKILL


def test_nothing_is_begun_where_it_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    vega_script()
    monkeypatch.setattr(sys, "executable", "/no/such/program")
    with making_vega_script():
        pass


def test_where_no_process_may_begin_all_else_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "executable", "/no/such/program")
    went_on = False
    with making_vega_script():
        went_on = True
    assert went_on
