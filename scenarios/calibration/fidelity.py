"""What virtual time predicts beside what a live run measures, system by system."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from scenarios.plan import Plan
from scenarios.run import Report, execute

_PREDICTED = {"backend": "inline", "clock": "virtual"}
_MEASURED = {"backend": "ray", "clock": "live"}


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """One system on one query, predicted and measured.

    Attributes
    ----------
    topology, query
        What was run.
    predicted_tps, measured_tps
        Tuples a second.
    predicted_ms, measured_ms
        Median latency of tuples; None without any.
    exact
        Whether both runs were exactly right, or do not claim to be.
    """

    topology: str
    query: str
    predicted_tps: float
    measured_tps: float
    predicted_ms: float | None
    measured_ms: float | None
    exact: bool

    @property
    def throughput_error(self) -> float:
        """How far the predicted throughput is from the measured one, as a fraction of it."""
        return self.predicted_tps / self.measured_tps - 1

    @property
    def latency_error(self) -> float | None:
        """The same of latency."""
        if self.predicted_ms is None or not self.measured_ms:
            return None
        return self.predicted_ms / self.measured_ms - 1

    def as_json(self) -> dict[str, Any]:
        """Return it with stable keys."""
        errors = {
            "throughput_error": self.throughput_error,
            "latency_error": self.latency_error,
        }
        return vars(self) | errors


@dataclass(frozen=True, kw_only=True)
class Live:
    """What live runs of one plan came to.

    Attributes
    ----------
    throughput_tps
        Tuples a second, the runs' median.
    latency_ms
        Median latency of tuples, ms, the runs' median; None without any.
    exact
        Whether all runs were exactly right, or do not claim to be.
    """

    throughput_tps: float
    latency_ms: float | None
    exact: bool

    @classmethod
    def of(cls, runs: Sequence[Report]) -> Live:
        """Return what *runs* of one plan came to; one at the least."""
        latencies = [ms for ms in map(_median_ms, runs) if ms is not None]
        return cls(
            throughput_tps=statistics.median(map(_tps, runs)),
            latency_ms=statistics.median(latencies) if latencies else None,
            exact=all(run.verdict.passed is not False for run in runs),
        )


def run_live(plan: Plan, *, processes: int) -> Report:
    """Run *plan* live, in so many Ray *processes*."""
    return _run(plan, _MEASURED | {"processes": processes})


def predict(plan: Plan, live: Live, *, profile: Path, processes: int) -> Prediction:
    """Run *plan* in virtual time, with the costs of *profile*, to be held against *live* runs.

    Its sites are the processes of those, each with a core.
    """
    network = plan.config.network.model_copy(update={"sites": "processes"})
    settings = {"profile": str(profile.resolve()), "network": network, "processes": processes}
    predicted = _run(plan, _PREDICTED | settings)
    return Prediction(
        topology=plan.topology.name,
        query=plan.config.name.removeprefix("calibrate-"),
        predicted_tps=_tps(predicted),
        measured_tps=live.throughput_tps,
        predicted_ms=_median_ms(predicted),
        measured_ms=live.latency_ms,
        exact=live.exact and predicted.verdict.passed is not False,
    )


def _run(plan: Plan, settings: dict[str, Any]) -> Report:
    with tempfile.TemporaryDirectory(prefix="joinsim-") as folder:
        return execute(replace(plan, config=plan.config.model_copy(update=settings)), Path(folder))


def _tps(run: Report) -> float:
    return run.outcome.tuples * 1e9 / run.outcome.virtual_ns


def _median_ms(run: Report) -> float | None:
    latency_ns = run.latencies.percentile(50)
    return None if latency_ns is None else latency_ns / 1e6
