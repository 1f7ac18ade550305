"""Where a study's values come from: a simulation, this machine's clock, or an estimate.

The kind follows from what is run and what is looked up of it, so that no file can call a simulated
value a measured one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Literal

from actors.hosting.inline import Clock
from scenarios.config import RunConfig

Kind = Literal["simulated", "measured", "derived"]

KIND_WORDS: dict[Kind, str] = {
    "simulated": "simulated: virtual time and counted work",
    "measured": "measured: this machine's clock",
    "derived": "derived: computed, not run",
}
"""What a legend says of each."""

_KERNEL_TIMES = ("kernel_seconds", "kernel_tps")
"""Measures of the time that actors took."""
_REAL_TIMES = (*_KERNEL_TIMES, "wall_parts", "wall_seconds")
"""Measures of a run that are real seconds whatever its clock."""
_TIMES = (
    *_REAL_TIMES,
    "throughput_tps",
    "latency_ms",
    "result_ms",
    "pace_tps",
    "pace_max_tps",
    "busy_seconds",
    "transmission",
    "balance",
    "merge_ms",
    "collectors.delay_ms",
    "collectors.longest_ms",
    "execution.seconds",
)
"""Measures that are times, per time or times over times, all of a table or one of its keys: of a
live run they are this machine's."""
_ESTIMATES = ("capacity_tps",)
"""Measures that are computed from what a run spent, as if something else had been run."""


def kernel_clock(measures: Iterable[str]) -> Clock:
    """Return what a run of a study reads the time from that is spent in its actors.

    Processor time where one of the *measures* that the study looks up in it is made of that: other
    programs do not slow it down. Nothing else needs it, and reading it slows the run itself down.
    """
    firsts = {measure.split(".")[0] for measure in measures}
    return time.process_time if firsts.intersection(_KERNEL_TIMES) else time.perf_counter


def kind_of(config: RunConfig, measure: str) -> Kind:
    """Return where the value called *measure* of a point comes from."""
    first = measure.split(".")[0]
    if config.survey is not None:
        return config.survey.kind_of(measure)
    if first in _ESTIMATES:
        return "derived"
    times = _TIMES if config.clock == "live" else _REAL_TIMES
    return "measured" if first in times or measure in times else "simulated"
