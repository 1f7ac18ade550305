"""The line that tells how far a run is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.actors.meshes import use_threads
from tests.end_to_end.conftest import SELF_JOIN, WINDOW, Command


@pytest.mark.parametrize("clock", ["virtual", "live"])
def test_the_speed_shown_leaves_out_what_is_before_the_first_tuple(
    joinsim: Command, prepared: Path, monkeypatch: pytest.MonkeyPatch, clock: str
) -> None:
    use_threads(monkeypatch)
    query = SELF_JOIN.format(window=WINDOW)
    said = joinsim("run", "--query", query, "--data", prepared, "--clock", clock, "--json")
    assert said.code == 0, said.err
    answer = re.search(r"300 of 300 tuples, .* run, ([\d,]+) tuples/s, 0 s left", said.err)
    assert answer, said.err
    speed = int(answer[1].replace(",", ""))
    # Both are rounded.
    assert speed + 1 >= 300 / (said.json["wall_parts"]["run"] + 0.0005)
