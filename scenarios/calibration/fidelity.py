"""What virtual time predicts beside what a live run measures, system by system."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scenarios.calibration.live_runs import (
    Live,
    median_latency_ms,
    run_changed,
    throughput_tps,
)
from scenarios.plan import Plan


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
        errors = {"throughput_error": self.throughput_error, "latency_error": self.latency_error}
        return vars(self) | errors


def predict(plan: Plan, live: Live, *, profile: Path, processes: int) -> Prediction:
    """Run *plan* in virtual time, with the costs of *profile*, to compare with *live* runs.

    Its sites are the processes of those, each with a core.
    """
    settings = {
        "backend": "inline",
        "clock": "virtual",
        "profile": str(profile.resolve()),
        "network": plan.config.network.model_copy(update={"sites": "processes"}),
        "processes": processes,
    }
    predicted = run_changed(plan, settings)
    return Prediction(
        topology=plan.topology.name,
        query=plan.config.name.removeprefix("calibrate-"),
        predicted_tps=throughput_tps(predicted),
        measured_tps=live.throughput_tps,
        predicted_ms=median_latency_ms(predicted),
        measured_ms=live.latency_ms,
        exact=live.exact and predicted.verdict.passed is not False,
    )
