"""The wall time of a command: its parts add up to what somebody with a watch measures."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from scenarios.wall_clock import WALL_PARTS, WallClock, process_began_s


def test_parts_add_up_to_all_that_passed_until_the_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    clock = WallClock(97.5)
    clock.lap("import")
    for step_s, part in ((0.25, "run"), (0.125, "write"), (1.0, "run"), (0.002, "report")):
        now_s += step_s
        clock.lap(part)
    assert clock.parts == dict.fromkeys(WALL_PARTS, 0) | {
        "import": 2.5, "run": 1.25, "write": 0.125, "report": 0.002
    }  # fmt: skip
    assert clock.seconds == 3.877
    assert str(clock) == "3.88 s: import 2.50, run 1.25, write 0.12"
    clock.stop()
    now_s += 60
    clock.lap("report")
    assert clock.seconds == 3.877


def test_a_part_that_there_is_not_is_refused() -> None:
    with pytest.raises(KeyError):
        WallClock().lap("lunch")


def test_a_process_knows_when_it_began() -> None:
    code = (
        "import time; time.sleep(0.3); from scenarios.wall_clock import process_began_s; "
        "print(time.monotonic() - process_began_s())"
    )
    began_s = time.monotonic()
    ran = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    assert 0.3 <= float(ran.stdout) <= time.monotonic() - began_s + 0.02  # ticks are hundredths
    assert process_began_s() < began_s
