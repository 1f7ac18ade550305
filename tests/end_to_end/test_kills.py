"""A command killed, or a process of it stopped: nothing stays, and nobody waits for ever."""

from __future__ import annotations

import json
import random
import signal
import time
from pathlib import Path

import psutil
import pytest

import joinsim as js
from tests.end_to_end.stopping import (
    LIVE,
    QUERIES,
    Moment,
    command,
    in_spark,
    java_of,
    on_ray,
    operators_running,
    preparing,
    ray_coming_up,
    running,
    running_live,
    serves,
    serving_below,
    started_at,
    to_prepare,
    workers_of,
)

_GONE_S = 10


@pytest.mark.parametrize(
    ("clock", "moment", "seed"),
    [("virtual", ray_coming_up, 1), ("virtual", running, 2), ("live", running_live, 3)],
)
def test_nothing_stays_of_a_run_that_is_killed(
    clock: str, moment: Moment, seed: int, tmp_path: Path
) -> None:
    with command(on_ray(tmp_path, "--clock", clock), tmp_path) as run:
        started_at(moment, run, tmp_path)
        time.sleep(random.Random(seed).random())
        _assert_gone_with(run.pid)


def test_nothing_stays_of_spark_when_its_command_is_killed(tmp_path: Path) -> None:
    with command(to_prepare(tmp_path), tmp_path) as run:
        started_at(spark_running, run, tmp_path)
        _assert_gone_with(run.pid)


def spark_running(_: Path, run: psutil.Process) -> bool:
    return java_of(run) is not None


def test_a_java_that_is_killed_while_it_prepares_is_named_and_leaves_no_stream(
    tmp_path: Path,
) -> None:
    with command(to_prepare(tmp_path), tmp_path) as run:
        started = started_at(preparing, run, tmp_path)
        java = java_of(psutil.Process(run.pid))
        assert java
        java.kill()
        out, err = run.communicate(timeout=120)
    assert (run.returncode, out) == (3, ""), err
    assert err.count("joinsim: ") == 1, err
    assert "Java process ended in the middle of its work: it was killed by signal 9" in err
    assert "Traceback" not in err
    _, left = psutil.wait_procs(started, timeout=_GONE_S)
    assert not left
    assert not any((tmp_path / "prepared").glob("[!.]*"))
    assert not any((tmp_path / "prepared").glob(".*.building-*"))


def test_a_worker_of_spark_that_is_killed_is_replaced(tmp_path: Path) -> None:
    with command(in_spark(tmp_path), tmp_path) as run:
        started = started_at(operators_running, run, tmp_path)
        workers = workers_of(psutil.Process(run.pid))
        assert workers
        for worker in workers:
            worker.kill()
        out, err = run.communicate(timeout=300)
    assert run.returncode == 0, out + err
    (spark,) = json.loads(out)["engines"]
    assert spark["equal"]
    assert spark["pairs"] > 1_000
    _, left = psutil.wait_procs(started, timeout=_GONE_S)
    assert not left


def _assert_gone_with(number: int) -> None:
    """Kill a process; all that is below it is gone soon."""
    process = psutil.Process(number)
    below = process.children(recursive=True)
    process.kill()
    assert len(below) > 1
    _, left = psutil.wait_procs(below, timeout=_GONE_S)
    assert not left


def test_a_process_of_ray_that_is_killed_is_replaced_without_a_word(tmp_path: Path) -> None:
    arguments = on_ray(tmp_path, "--rows", "10000", "--set", "feeding.batch_rows=20")
    with command(arguments, tmp_path) as run:
        started = started_at(serving, run, tmp_path)
        next(filter(serves, started)).kill()
        out, err = run.communicate(timeout=300)
    assert run.returncode == 0, err
    summary = json.loads(out)  # and nothing else
    assert summary["verdict"]["exact"]
    inline = js.run(
        QUERIES["spo_join"],
        {"s": tmp_path / "s"},
        topology="spo_join",
        rows=10_000,
        feeding={"batch_rows": 20},
    )
    assert inline.digest == summary["digest"]


@pytest.mark.parametrize(("topology", "seed"), [(name, seed) for seed, name in enumerate(QUERIES)])
def test_a_live_run_with_recovery_has_every_pair_once_though_a_process_is_killed(
    topology: str, seed: int, tmp_path: Path
) -> None:
    rng = random.Random(seed)
    size = ("--rows", "5000", "--set", "feeding.batch_rows=5")
    with command(on_ray(tmp_path, *size, *LIVE, topology=topology), tmp_path) as run:
        serving = serving_below(run)
        time.sleep(rng.random() / 2)  # before the first snapshot, or some later
        rng.choice(serving).kill()
        out, err = run.communicate(timeout=300)
    assert run.returncode == 0, err
    summary = json.loads(out)
    assert summary["verdict"]["exact"]
    assert summary["verdict"]["expected"] > 1_000
    assert summary["recovery"]["crashes"] == 1


def test_a_live_run_without_recovery_ends_with_one_message_when_a_process_is_killed(
    tmp_path: Path,
) -> None:
    with command(on_ray(tmp_path, "--clock", "live"), tmp_path) as run:
        started = started_at(running_live, run, tmp_path)
        serving_below(run)[0].kill()
        out, err = run.communicate(timeout=120)
    assert (run.returncode, out) == (3, ""), err
    assert err.count("joinsim: ") == 1, err
    assert "of the Ray backend is gone" in err
    assert "Traceback" not in err
    _, left = psutil.wait_procs(started, timeout=_GONE_S)
    assert not left


def serving(folder: Path, run: psutil.Process) -> bool:
    """Return whether results are written, and a process of Ray has begun to serve."""
    return running(folder, run) and running_live(folder, run)


_IMPATIENT = ("--set", "silence=3 s")


@pytest.mark.parametrize("clock", [(), LIVE])
def test_a_process_that_is_stopped_is_replaced(clock: tuple[str, ...], tmp_path: Path) -> None:
    size = ("--rows", "5000", "--set", "feeding.batch_rows=5")
    with command(on_ray(tmp_path, *size, *_IMPATIENT, *clock), tmp_path) as run:
        (stopped, *_), started = (
            serving_below(run),
            psutil.Process(run.pid).children(recursive=True),
        )
        stopped.send_signal(signal.SIGSTOP)
        out, err = run.communicate(timeout=120)
    assert run.returncode == 0, err
    summary = json.loads(out)
    assert summary["verdict"]["exact"]
    assert summary["verdict"]["expected"] > 1_000
    _, left = psutil.wait_procs(started, timeout=_GONE_S)
    assert not left


def test_a_live_run_without_recovery_says_which_process_is_stopped_and_ends(
    tmp_path: Path,
) -> None:
    with command(on_ray(tmp_path, *_IMPATIENT, "--clock", "live"), tmp_path) as run:
        started = started_at(running_live, run, tmp_path)
        next(filter(serves, started)).send_signal(signal.SIGSTOP)
        out, err = run.communicate(timeout=120)
    assert (run.returncode, out) == (3, ""), err
    assert err.count("joinsim: ") == 1, err
    assert "has given no sign of life for" in err
    assert "spo_join/" in err
    assert "Traceback" not in err
    _, left = psutil.wait_procs(started, timeout=_GONE_S)
    assert not left
