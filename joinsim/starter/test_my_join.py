"""my_join gives the right answer, on every host, from every snapshot."""

import numpy as np
import pytest

import joinsim as js
from my_join import MyJoin

CHECKS = list(js.checks.check_topology(MyJoin, examples=10))


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_it_is_a_sound_topology(check: js.checks.Check) -> None:
    check()


def test_it_joins_what_nested_loops_join() -> None:
    rng = np.random.default_rng(1)
    streams = {name: {"x": rng.integers(0, 50, 200)} for name in ("R", "S")}
    query = "SELECT * FROM R, S WHERE R.x < S.x WINDOW AS (SLIDE INTERVAL '1' ON '20')"
    run = js.run(query, streams, topology=MyJoin, pes=3)
    assert run.verdict.exact
    assert run.pairs.num_rows > 0
