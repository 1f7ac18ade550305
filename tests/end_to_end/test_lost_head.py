"""A Ray cluster whose head goes away alone, while a command runs on it."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from tests.end_to_end.stopping import Moment, command, on_ray, running, running_live, started_at

_GONE_S = 30


@pytest.mark.parametrize(("clock", "moment"), [("virtual", running), ("live", running_live)])
def test_a_run_whose_head_is_gone_says_so_and_leaves_no_process(
    clock: str, moment: Moment, tmp_path: Path
) -> None:
    with command(on_ray(tmp_path, "--clock", clock), tmp_path) as run:
        started = started_at(moment, run, tmp_path)
        (head,) = (process for process in started if process.name() == "gcs_server")
        head.kill()
        out, err = run.communicate(timeout=_GONE_S)
    assert (run.returncode, out) == (3, ""), err
    assert "joinsim: the head of the Ray cluster at 127.0.0.1:" in err
    assert "Traceback" not in err
    _, left = psutil.wait_procs(started, timeout=10)
    assert not left
