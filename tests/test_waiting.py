"""A test that waits for a process does not wait for ever."""

from __future__ import annotations

import subprocess

import pytest

from tests.waiting import read_line


def test_a_process_that_says_nothing_is_killed_and_one_that_speaks_is_read() -> None:
    speaking = subprocess.Popen(["echo", "one\ntwo"], stdout=subprocess.PIPE, text=True)
    assert [read_line(speaking) for _ in range(3)] == ["one\n", "two\n", ""]
    assert speaking.wait(10) == 0
    silent = subprocess.Popen(["sleep", "600"], stdout=subprocess.PIPE, text=True)
    with pytest.raises(AssertionError, match=r"it printed nothing for 0.1 s"):
        read_line(silent, limit_s=0.1)
    assert silent.wait(10) < 0
