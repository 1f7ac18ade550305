"""A Ray cluster whose head goes away alone, while a command runs on it."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import psutil

from tests.end_to_end.stopping import command, on_ray, running, running_live, started_at

_GONE_S = 60


def test_a_run_whose_head_is_gone_says_so_and_leaves_no_process(tmp_path: Path) -> None:
    """Both at once: each waits until its head has been missing for long."""
    with ExitStack() as commands:
        runs = []
        for clock, moment in (("virtual", running), ("live", running_live)):
            folder = tmp_path / clock
            folder.mkdir()
            run = commands.enter_context(command(on_ray(folder, "--clock", clock), folder))
            started = started_at(moment, run, folder)
            (head,) = (process for process in started if process.name() == "gcs_server")
            head.kill()
            runs.append((run, started))
        for run, started in runs:
            out, err = run.communicate(timeout=_GONE_S)
            assert (run.returncode, out) == (3, ""), err
            assert "joinsim: the head of the Ray cluster at 127.0.0.1:" in err
            assert "Traceback" not in err
            _, left = psutil.wait_procs(started, timeout=10)
            assert not left
