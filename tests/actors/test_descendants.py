"""What a process starts ends with it, whatever ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.waiting import read_line

ROOT = Path(__file__).resolve().parents[2]
STARTS = """
import subprocess, sys, time
from actors.hosting.descendants import ending_with
started = []
def start():
    # A child that starts another and ends: nobody's parent knows of that one.
    code = "import subprocess, sys; print(subprocess.Popen(['sleep', '600']).pid, flush=True)"
    started.append(subprocess.Popen([sys.executable, "-c", code + "; input()"], stdin=-1))
def stop():
    {stop}
with ending_with(stop, start):
    other = subprocess.Popen(["sleep", "600"], start_new_session=True)
    print(other.pid, flush=True)
    {rest}
other.kill()
"""


def _started(rest: str, stop: str = "pass") -> tuple[subprocess.Popen[str], list[psutil.Process]]:
    run = subprocess.Popen(
        [sys.executable, "-c", STARTS.format(rest=rest, stop=stop)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    numbers = [int(read_line(run)) for _ in range(2)]
    return run, [psutil.Process(number) for number in numbers]


@pytest.mark.parametrize("group", [False, True])
def test_what_a_killed_process_has_started_is_gone_and_nothing_else(group: bool) -> None:
    run, sleeping = _started("time.sleep(600)")
    below = psutil.Process(run.pid).children(recursive=True)
    assert len(below) == 4  # a watcher as well
    if group:
        os.killpg(run.pid, signal.SIGKILL)
    else:
        run.kill()
    run.wait(10)
    left, deadline = below, time.monotonic() + 10
    while len(left) > 1 and time.monotonic() < deadline:
        _, left = psutil.wait_procs(left, timeout=0.1)
    # Of what it started later, by itself, nobody knows whether it is still wanted.
    assert len(left) == 1
    assert left[0] in sleeping
    left[0].kill()


def test_a_process_that_ends_leaves_no_watcher() -> None:
    run, sleeping = _started("pass")
    run.wait(20)
    assert run.returncode == 0
    _, left = psutil.wait_procs(sleeping, timeout=5)
    assert not left


def test_what_is_left_of_an_interrupted_end_is_gone_even_so() -> None:
    """As where somebody presses Ctrl-C a second time, because the end takes its time."""
    run, sleeping = _started("sys.stdin.read()", stop="raise KeyboardInterrupt")
    assert run.stdin
    run.stdin.close()
    run.wait(20)
    assert run.returncode != 0
    _, left = psutil.wait_procs(sleeping, timeout=5)
    # The other one is the script's own, which did not come to its end.
    assert [os.getsid(process.pid) for process in left] == [process.pid for process in left]
    assert len(left) == 1
    left[0].kill()
