"""Runs the candidates and gathers what came out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scenarios.comparison.candidates import Candidate
from scenarios.config import RunConfig
from scenarios.many_runs import Preparation, Result, run_one_of_many
from scenarios.plan import Plan, make_plan
from scenarios.run_directory import POINTS
from scenarios.run_json import versions
from scenarios.scenario_files import ConfigError
from topologies import TopologyError

KEYS = (
    "digest", "tuples", "virtual_seconds", "wall_seconds", "throughput_tps", "latency_ms",
    "network", "state_bytes", "kernel_seconds", "verdict",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What was compared, best first.

    Attributes
    ----------
    base
        What all runs share.
    results
        Label to what came out, by falling throughput; what failed stands last.
    refused
        Label to why a system cannot evaluate the query.
    streams
        Name, path and rows of the streams.
    """

    base: RunConfig
    results: dict[str, Result]
    refused: dict[str, str]
    streams: list[dict[str, Any]]

    @property
    def fastest(self) -> str | None:
        """The exact system of highest throughput."""
        exact = (
            label for label, result in self.results.items() if result.passed and _exact(result)
        )
        return next(exact, None)

    def as_json(self, replay: str) -> dict[str, Any]:
        """Return it as one JSON object with stable keys."""
        return {
            "comparison": self.base.name,
            "query": " ".join(self.base.query.split()),
            "streams": self.streams,
            "seed": self.base.seed,
            "backend": self.base.backend,
            "network": self.base.network.model_dump(mode="json"),
            "feeding": self.base.feeding.model_dump(mode="json"),
            "fastest_exact": self.fastest,
            "systems": [
                {
                    "label": label,
                    "topology": result.config.topology,
                    "parameters": result.config.parameters,
                    "claims_exact": result.claims_exact,
                    "passed": result.passed,
                    "failure": result.failure,
                    **{key: result.record.get(key) for key in KEYS},
                }
                for label, result in self.results.items()
            ],
            "refused": [{"label": label, "reason": why} for label, why in self.refused.items()],
            "versions": versions(),
            "replay": replay,
        }

    def write_json(self, directory: Path, replay: str) -> None:
        """Write ``compare.json``."""
        text = json.dumps(self.as_json(replay), indent=2, ensure_ascii=False)
        (directory / "compare.json").write_text(text + "\n", encoding="utf-8")


def plan_all(
    candidates: Sequence[Candidate], preparation: Preparation
) -> tuple[dict[str, Plan], dict[str, str]]:
    """Return a plan for each candidate that can evaluate the query, and why the others cannot.

    Raise :exc:`ConfigError` when none of them can.
    """
    plans, refused = {}, {}
    for candidate in candidates:
        try:
            plans[candidate.label] = make_plan(candidate.config, prepare=preparation)
        except TopologyError as error:
            refused[candidate.label] = str(error)
    if not plans:
        reasons = "; ".join(refused.values())
        raise ConfigError(f"no system compared here can evaluate the query: {reasons}")
    return plans, refused


def run_all(
    plans: dict[str, Plan],
    refused: dict[str, str],
    directory: Path,
    *,
    on_point: Callable[[int, str], None],
    replay: Callable[[RunConfig], str],
) -> Comparison:
    """Run every plan into a folder of its own below *directory*."""
    results = {}
    for place, (label, plan) in enumerate(plans.items()):
        on_point(place, label)
        folder = directory / POINTS / re.sub(r"\W+", "-", label)
        results[label] = run_one_of_many(plan, folder, replay=replay(plan.config), keep=True)
    first = next(iter(plans.values()))
    ranked = sorted(results.items(), key=lambda item: -item[1].record.get("throughput_tps", -1))
    return Comparison(
        base=first.config,
        results=dict(ranked),
        refused=refused,
        streams=[
            {
                "name": stream.name,
                "path": str(stream.path),
                "rows": min(stream.rows, first.config.rows or stream.rows),
            }
            for stream in first.streams
        ],
    )


def _exact(result: Result) -> bool:
    return bool(result.record.get("verdict", {}).get("exact"))
