"""What simulated cores do in turns whatever they share: edge tuples and the output stream.

As with a test-and-set, a core that finds another one at it goes on without.
"""

from __future__ import annotations

import numpy as np

from joins.machine.atomics import load
from joins.machine.compiling import kernel
from joins.matches import MatchBuffer
from joins.window_join.cores.clocks import release, spend, total_ps
from joins.window_join.cores.state import CLOCK, Clocks
from joins.window_join.live.merge import advance_edge
from joins.window_join.live.output_stream import propagate
from joins.window_join.live.state import EDGE, HEAD, OUTPUT, SIDES, TOTAL, Live
from joins.window_join.rows import Rows
from joins.work import ATOMICS, BYTES_COPIED, COMPARISONS, MOVES

_ID_BYTES = 8


@kernel
def move_edge(live: Live, cores: Clocks, core: int, side: int, counters: np.ndarray) -> None:
    """Move a side's edge tuple to its next tuple not indexed, unless another core does."""
    if cores.free[SIDES + side] > cores.state[core, CLOCK]:
        return
    before, edge = total_ps(cores, counters), load(live.words, SIDES + side, EDGE)
    advance_edge(live, side)
    counters[COMPARISONS] += load(live.words, SIDES + side, EDGE) - edge + 1
    counters[ATOMICS] += 1
    spend(cores, core, before, counters)
    release(cores, core, cores.free, SIDES + side)


@kernel
def hand_on(
    rows: Rows, live: Live, cores: Clocks, core: int, output: MatchBuffer, counters: np.ndarray
) -> None:
    """Propagate results, unless another core does."""
    if cores.free[OUTPUT] > cores.state[core, CLOCK]:
        return
    before = total_ps(cores, counters)
    row, matches = live.words[OUTPUT, HEAD], live.words[OUTPUT, TOTAL]
    propagate(rows, live, output)
    counters[ATOMICS] += 1
    counters[MOVES] += live.words[OUTPUT, HEAD] - row
    counters[BYTES_COPIED] += _ID_BYTES * (live.words[OUTPUT, TOTAL] - matches)
    spend(cores, core, before, counters)
    release(cores, core, cores.free, OUTPUT)
