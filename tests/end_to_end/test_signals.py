"""Ctrl-C, SIGTERM by which others end a command, and SIGHUP of a terminal that closes.

At any moment: one word, exit code 3, nothing that was started is left, and no half file.
"""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from scenarios.run_directory import UNFINISHED
from tests.end_to_end.stopping import (
    Moment,
    assert_stopped,
    assert_stops,
    command,
    importing,
    java_running,
    on_ray,
    ray_coming_up,
    running,
    running_live,
    to_prepare,
)


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("moment", [importing, ray_coming_up, running])
def test_a_signal_stops_a_run_and_leaves_no_process_behind(
    by: signal.Signals, moment: Moment, tmp_path: Path
) -> None:
    assert_stopped(by, on_ray(tmp_path), moment, tmp_path)
    if (tmp_path / "run").exists():
        assert [path.name for path in (tmp_path / "run").iterdir()] == [UNFINISHED]


def test_a_run_under_nohup_survives_its_terminal(tmp_path: Path) -> None:
    before = """
import os, signal
import joinsim.cli.command_line
signal.signal(signal.SIGHUP, signal.SIG_IGN)
run = joinsim.cli.command_line.main
def hung_up(*arguments):
    os.kill(os.getpid(), signal.SIGHUP)
    run(*arguments)
joinsim.cli.command_line.main = hung_up
"""
    with command(["list", "--json"], tmp_path, before=before) as run:
        out, err = run.communicate(timeout=60)
    assert (run.returncode, err) == (0, "")
    assert json.loads(out)["scenarios"]


def test_a_command_stopped_before_it_guards_itself_ends_as_any_other(tmp_path: Path) -> None:
    before = """
import os, signal, sys
class Stop:
    def find_spec(self, name, *_):
        if name == "actors.whole_files":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Stop())
"""
    with command(["list"], tmp_path, before=before) as run:
        assert_stops(run)


def test_a_run_stopped_while_an_extension_is_imported_ends_as_any_other(tmp_path: Path) -> None:
    """What its functions in C call may raise what it likes: it is lost."""
    before = """
import abc, os, signal
register = abc.ABCMeta.register
def stop(kind, made):
    if made.__module__ == "numpy.random._generator":
        abc.ABCMeta.register = register
        os.kill(os.getpid(), signal.SIGINT)
    return register(kind, made)
abc.ABCMeta.register = stop
"""
    with command(on_ray(tmp_path), tmp_path, before=before) as run:
        assert_stops(run)


def test_a_run_stopped_while_a_class_is_made_ends_as_any_other(tmp_path: Path) -> None:
    """Python 3.11 wraps what is raised there in a RuntimeError."""
    before = """
import os, signal
import scenarios.config
class Attribute:
    def __set_name__(self, owner, name):
        os.kill(os.getpid(), signal.SIGINT)
def load_profile(*_):
    type("Made", (), {"attribute": Attribute()})
import netsim.cost
netsim.cost.load_profile = load_profile
import scenarios.plan
scenarios.plan.load_profile = load_profile
"""
    with command(on_ray(tmp_path), tmp_path, before=before) as run:
        assert_stops(run)


def test_a_signal_lost_in_a_callback_from_c_stops_a_run_even_so(tmp_path: Path) -> None:
    """Whatever is raised there Python only prints: it happens while kernels are loaded."""
    before = """
import ctypes, os, signal
import netsim.cost
load = netsim.cost.load_profile
@ctypes.CFUNCTYPE(None)
def interrupted():
    os.kill(os.getpid(), signal.SIGINT)
def load_profile(*arguments):
    interrupted()
    return load(*arguments)
import scenarios.plan
scenarios.plan.load_profile = load_profile
"""
    with command(on_ray(tmp_path), tmp_path, before=before) as run:
        assert_stops(run)


def test_sigterm_stops_a_live_run(tmp_path: Path) -> None:
    arguments = on_ray(tmp_path, "--clock", "live")
    assert_stopped(signal.SIGTERM, arguments, running_live, tmp_path)
    assert [path.name for path in (tmp_path / "run").iterdir()] == [UNFINISHED]


def test_a_run_stopped_while_ray_connects_ends_as_any_other(tmp_path: Path) -> None:
    before = """
import os, signal
from actors.hosting.ray_cluster import ray
connected = ray._raylet.CoreWorker
def stopped(*arguments):
    connected(*arguments)
    os.kill(os.getpid(), signal.SIGTERM)
ray._raylet.CoreWorker = stopped
"""
    with command(on_ray(tmp_path), tmp_path, before=before) as run:
        assert_stops(run)


def test_sigterm_stops_spark(tmp_path: Path) -> None:
    assert_stopped(signal.SIGTERM, to_prepare(tmp_path), java_running, tmp_path)
