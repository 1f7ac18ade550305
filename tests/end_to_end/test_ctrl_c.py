"""Ctrl-C at any moment: one word, exit code 3, and nothing that was started is left."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.end_to_end.stopping import (
    Moment,
    assert_stopped,
    importing,
    on_ray,
    ray_coming_up,
    running,
)


@pytest.mark.parametrize("moment", [importing, ray_coming_up, running])
def test_ctrl_c_stops_a_run_and_leaves_no_process_behind(moment: Moment, tmp_path: Path) -> None:
    assert_stopped(signal.SIGINT, on_ray(tmp_path), moment, tmp_path)
