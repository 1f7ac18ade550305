"""A command in a process of its own, stopped by a signal once it has come so far."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import psutil

from tests.end_to_end.conftest import SELF_JOIN, WINDOW, write_csv, write_prepared

REPOSITORY = Path(__file__).resolve().parents[2]
ROWS = 200_000
_TWO = "SELECT r.id, s.id FROM r, s WHERE"
QUERIES = {
    "spo_join": SELF_JOIN.format(window=WINDOW),
    "split_join": f"{_TWO} ABS(r.a - s.a) < 2 WINDOW AS {WINDOW}",
    "scale_oij": f"{_TWO} r.a = s.a AND s.ts BETWEEN r.ts - INTERVAL '99 ns' AND r.ts",
}
"""Topology to a query for it."""
LIVE = ("--clock", "live", "--set", "recovery={interval = '200 ms'}")
"""Arguments of a live run with recovery."""
_LONGEST_S, _LOOK_S = 300, 0.02
_LOOKING = 0.1
"""The most of a core that looking takes: the processes that are looked at need it themselves."""

# A shell has its background jobs ignore Ctrl-C, and ``nohup`` what it starts ignore SIGHUP.
_HEED_SIGNALS = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
"""
_MAIN = """
from joinsim.__main__ import main
main()
"""

Command = subprocess.Popen[str]

Moment = Callable[[Path, psutil.Process], bool]
"""Tells of the folder that a command runs in, and of its process, whether it has come so far."""


def importing(_: Path, run: psutil.Process) -> bool:
    """Tell whether numba's compiler, which the first kernel's module asks for, is being read in."""
    return any("llvmlite" in mapped.path for mapped in run.memory_maps())


def ray_coming_up(_: Path, run: psutil.Process) -> bool:
    return any(process.name() == "raylet" for process in run.children())


def running(folder: Path, _: psutil.Process) -> bool:
    """Tell whether results are written, as they are from when the processes of Ray are up."""
    return any((folder / "run").glob(".probes-0.parquet.*"))


def running_live(_: Path, run: psutil.Process) -> bool:
    """Tell whether a process of Ray serves a live run."""
    return any(serves(process) for process in run.children(recursive=True))


def serves(process: psutil.Process) -> bool:
    """Return whether a process is one of Ray's that serves a run."""
    with suppress(psutil.Error):  # it may just have ended
        title = " ".join(process.cmdline()).strip()
        return title.startswith("ray::") and title.endswith(".serve")
    return False


def java_running(_: Path, run: psutil.Process) -> bool:
    return any(process.name() == "java" for process in run.children())


def java_of(run: psutil.Process) -> psutil.Process | None:
    """Return the Java process that Spark runs in, if it has come up."""
    below = run.children()  # another may have been asked for its version, beside no watcher
    return next((one for one in below if one.name() == "java" and len(below) > 1), None)


def preparing(folder: Path, run: psutil.Process) -> bool:
    """Tell whether Spark writes a stream."""
    return any((folder / "prepared").glob(".*.building-*")) and java_of(run) is not None


def workers_of(run: psutil.Process) -> list[psutil.Process]:
    """Return the Python processes that work for Spark."""
    with suppress(psutil.NoSuchProcess):
        if java := java_of(run):
            # Those of Java's own are one that starts the others, and what runs for the driver.
            return [one for child in java.children() for one in child.children()]
    return []


def operators_running(folder: Path, run: psutil.Process) -> bool:
    """Tell whether operators inside Spark are at work on a first trigger, which takes seconds."""
    begun = folder.glob("compared/points/*/hosted/checkpoint/spark/offsets/0")
    return any(begun) and bool(workers_of(run))


def serving_below(run: Command) -> list[psutil.Process]:
    """Wait until processes of Ray serve a run that goes on, and return them."""
    started_at(running_live, run, Path())
    return [one for one in psutil.Process(run.pid).children(recursive=True) if serves(one)]


def on_ray(folder: Path, *more: str, topology: str = "spo_join") -> list[str]:
    """Write streams into *folder*; return the arguments of a long join of them on Ray."""
    rng = np.random.default_rng(4)
    arguments = ["run", "--query", QUERIES[topology], "--topology", topology]
    for name in ["s"] if topology == "spo_join" else ["r", "s"]:
        fields = {"a": rng.integers(0, 50, ROWS), "b": rng.random(ROWS)}
        write_prepared(folder / name, fields, ts=np.arange(ROWS))
        arguments += ["--data", name]
    arguments += ["--set", "feeding.batch_rows=1", "--backend", "ray", "--out", "run", "--json"]
    return [*arguments, *more]


def in_spark(folder: Path) -> list[str]:
    """Write streams into *folder*; return the arguments of a join of them inside Spark."""
    fields = np.random.default_rng(4).random((2, ROWS))
    write_prepared(folder / "s", dict(zip("ab", fields, strict=True)), ts=np.arange(ROWS))
    arguments = ["compare", SELF_JOIN.format(window=WINDOW), "--data", "s", "--out", "compared"]
    arguments += ["--topologies", "spo_join"]
    return [*arguments, "--engines", "spark", "--json"]


def to_prepare(folder: Path) -> list[str]:
    """Write a raw stream into *folder*; return the arguments that prepare it."""
    write_csv(folder / "s.csv", [f"{row},{row % 7},{row % 5}" for row in range(ROWS)])
    return ["data", "prepare", "s.csv", "--time", "timestamp_seconds(t)", "--json"]


def assert_stopped(by: signal.Signals, arguments: list[str], moment: Moment, folder: Path) -> None:
    """Stop a command at a *moment*: it says one word, exits with 3, and leaves no process."""
    with command(arguments, folder) as run:
        started = started_at(moment, run, folder)
        run.send_signal(by)
        assert_stops(run, started)


def started_at(moment: Moment, run: Command, folder: Path) -> list[psutil.Process]:
    """Wait for a *moment* of a command; return all processes that it has started by then."""
    process = psutil.Process(run.pid)
    deadline = time.monotonic() + _LONGEST_S
    while True:
        began = time.process_time()
        if moment(folder, process):
            break
        assert run.poll() is None, "it ended before its moment"
        assert time.monotonic() < deadline
        time.sleep(max(_LOOK_S, (time.process_time() - began) / _LOOKING))
    return process.children(recursive=True)


@contextmanager
def command(arguments: list[str], folder: Path, *, before: str = "") -> Iterator[Command]:
    """Start the command line in a *folder*, and *before* it more code."""
    run = subprocess.Popen(
        [sys.executable, "-c", f"{_HEED_SIGNALS}{before}{_MAIN}", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield run
    finally:
        run.kill()


def assert_stops(run: Command, started: Iterable[psutil.Process] = ()) -> None:
    """Wait for a command that has been stopped, and for all that it has *started*."""
    process, started = psutil.Process(run.pid), set(started)
    deadline = time.monotonic() + _LONGEST_S
    # What is still starting others: those count too.
    while run.poll() is None and time.monotonic() < deadline:
        with suppress(psutil.NoSuchProcess):
            started |= set(process.children(recursive=True))
        time.sleep(_LOOK_S)
    out, err = run.communicate(timeout=30)
    assert (run.returncode, out) == (3, ""), err
    assert err.rstrip().endswith("joinsim: stopped"), err
    assert "Traceback" not in err
    _, left = psutil.wait_procs(started, timeout=10)
    assert not left
