"""What virtual time predicts beside what a live run measures, system by system."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scenarios.calibration.live_runs import Speed, run_changed
from scenarios.plan import Plan


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """One system on one query, predicted and measured."""

    topology: str
    query: str
    predicted: Speed
    measured: Speed

    @property
    def exact(self) -> bool:
        """Whether all runs were exactly right, or do not claim to be."""
        return self.predicted.exact and self.measured.exact

    @property
    def throughput_error(self) -> float:
        """How far the predicted throughput is from the measured one, as a fraction of it."""
        return self.predicted.tps / self.measured.tps - 1

    @property
    def latency_error(self) -> float | None:
        """The same of latency."""
        if self.predicted.ms is None or not self.measured.ms:
            return None
        return self.predicted.ms / self.measured.ms - 1

    def as_json(self) -> dict[str, Any]:
        """Return it with stable keys."""
        return {
            "topology": self.topology,
            "query": self.query,
            "predicted_tps": self.predicted.tps,
            "measured_tps": self.measured.tps,
            "predicted_ms": self.predicted.ms,
            "measured_ms": self.measured.ms,
            "exact": self.exact,
            "throughput_error": self.throughput_error,
            "latency_error": self.latency_error,
        }


def predict(plan: Plan, live: Speed, *, profile: Path, processes: int) -> Prediction:
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
    return Prediction(
        topology=plan.topology.name,
        query=plan.config.name.removeprefix("calibrate-"),
        predicted=Speed.of([run_changed(plan, settings)]),
        measured=live,
    )
