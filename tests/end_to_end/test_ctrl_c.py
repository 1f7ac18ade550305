"""Ctrl-C at any moment: one word, exit code 3, and nothing that was started is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pytest

from tests.end_to_end.conftest import SELF_JOIN, WINDOW, write_prepared

REPOSITORY = Path(__file__).resolve().parents[2]
JOINSIM = [sys.executable, "-c", "from scenarios.start import main; main()"]

Run = subprocess.Popen[str]
Moment = Callable[[Path, psutil.Process], bool]


def importing(_: Path, run: psutil.Process) -> bool:
    """Tell whether numba's compiler, which the first kernel's module asks for, is being read in."""
    return any("llvmlite" in mapped.path for mapped in run.memory_maps())


def ray_coming_up(_: Path, run: psutil.Process) -> bool:
    return any(process.name() == "raylet" for process in run.children())


def running(folder: Path, _: psutil.Process) -> bool:
    """Tell whether results are written, as they are from when the processes of Ray are up."""
    return (folder / "run" / "probes-0.parquet").exists()


@pytest.mark.parametrize("moment", [importing, ray_coming_up, running])
def test_ctrl_c_stops_a_run_and_leaves_no_process_behind(moment: Moment, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    fields = {"a": rng.integers(0, 50, 200_000), "b": rng.random(200_000)}
    write_prepared(tmp_path / "s", fields, ts=np.arange(200_000))
    arguments = ["run", "--query", SELF_JOIN.format(window=WINDOW), "--data", "s"]
    arguments += ["--set", "feeding.batch_rows=1", "--backend", "ray", "--out", "run", "--json"]
    run = subprocess.Popen(
        [*JOINSIM, *arguments],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that puts its jobs into the background has them ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        told = psutil.Process(run.pid)
        deadline = time.monotonic() + 120
        while not moment(tmp_path, told):
            assert run.poll() is None, "it ended before it was stopped"
            assert time.monotonic() < deadline
            time.sleep(0.02)
        started = told.children(recursive=True)
        run.send_signal(signal.SIGINT)
        # What is still starting others: those count too.
        while run.poll() is None and time.monotonic() < deadline:
            started += [new for new in told.children(recursive=True) if new not in started]
            time.sleep(0.02)
        out, err = run.communicate(timeout=30)
    finally:
        run.kill()
    assert (run.returncode, out) == (3, "")
    assert err.rstrip().endswith("joinsim: stopped")
    assert "Traceback" not in err
    _, left = psutil.wait_procs(started, timeout=10)
    assert not left
