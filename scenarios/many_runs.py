"""Several runs in turn on data that is prepared once; a failure does not affect the others.

A comparison is one query on every system that can evaluate it: same data, same network.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from actors.hosting.inline import InlineHost
from actors.hosting.processes import EACH
from actors.whole_files import write_text
from joins.errors import OutputError
from netsim.network import NetworkError
from scenarios.config import RunConfig
from scenarios.formatting import group_refusals
from scenarios.machine import versions
from scenarios.measures import Parts, record
from scenarios.plan import Plan, Prepare, bound_line, check_parameters, make_plan, parameter_names
from scenarios.report.run_summary import write_run_json
from scenarios.run import FinishedRun, InlineHosting, Judging, execute
from scenarios.run_directory import POINTS, TRACE, WrittenResult, remove_matching
from scenarios.scenario_files import ConfigError, change
from topologies import TOPOLOGIES, Named, Topology, TopologyError, find_topologies
from topologies.topology import TopologyFaultError

BULKY = (TRACE, "results.parquet", "probes-*.parquet", "replay/*")
"""What a run leaves beside its ``run.json``; a run of many can be repeated alone to see it."""

VARIANTS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "spo_join": {
        "spo_join": {},
        "spo_join, parted merges": {"merge_threshold": "slide/pes"},
        "spo_join, prefix grid": {"immutable": "prefix_grid"},
        "spo_join, CSS bits": {"immutable": "css_bits"},
        "spo_join, all hash": {"mutable": "hash", "immutable": "css_hash"},
    }
}
"""Systems that are compared in several variants: label to parameters."""

_KEYS = (
    "digest", "tuples", "virtual_seconds", "wall_seconds", "wall_parts", "throughput_tps",
    "latency_ms", "network", "state_bytes", "kernel_seconds", "verdict",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """One run of several."""

    config: RunConfig
    """What was run."""
    record: dict[str, Any] = field(default_factory=dict)
    """What came out (see `measures`); empty when it failed."""
    passed: bool | None = None
    """The verdict; None when it is unknown, or when the run failed."""
    claims_exact: bool = True
    """Whether the system claims to be exact."""
    failure: str | None = None
    """Why there is no verdict."""

    @classmethod
    def of(cls, finished: FinishedRun, config: RunConfig, parts: Parts | None) -> RunResult:
        """Return what came out of a run, with the further *parts* of its record."""
        return cls(
            config=config,
            record=record(finished, parts),
            passed=finished.verdict.passed,
            claims_exact=finished.verdict.claims_exact,
        )

    @property
    def is_exact(self) -> bool | None:
        """Whether exactly the expected pairs came out; None where there was none to come out."""
        verdict = self.record.get("verdict")
        if not verdict or not (verdict["expected"] or verdict["produced"]):
            return None
        return bool(verdict["exact"])

    @property
    def is_only_measured(self) -> bool:
        """Whether it promised nothing of its pairs, and they differ: nothing to pass or fail."""
        return self.is_exact is False and self.passed is None


@contextmanager
def one_ray_for(plans: Iterable[Plan]) -> Iterator[None]:
    """Have Ray up while *plans* run, where any of them needs it: it starts once for all."""
    on_ray = [plan for plan in plans if plan.config.backend == "ray"]
    if not on_ray:
        yield
        return
    from actors.hosting.ray_cluster import ray_cluster  # a second that other runs need not spend

    processes = (plan.config.processes for plan in on_ray)
    most = max(1 if number == EACH else number for number in processes)
    with ray_cluster(on_ray[0].address, processes=most):
        yield


def run_one_of_many(
    plan: Plan,
    directory: Path,
    *,
    replay: str,
    parts: Parts | None = None,
    keep: bool,
    inline_host: InlineHosting = InlineHost,
    judging: Judging = "after",
) -> RunResult:
    """Run *plan* into *directory* and return what came out, also when it fails.

    *inline_host* and *judging* are as for `scenarios.run.execute`; by default nothing runs beside
    it, since the times of actors are compared. Without *keep* only ``run.json`` stays, and of a
    failure its traceback.
    """

    def run() -> RunResult:
        finished = execute(plan, directory, inline_host=inline_host, judging=judging)
        write_run_json(finished, replay)
        return RunResult.of(finished, plan.config, parts)

    result = result_or_failure(plan.config, directory, run)
    if not keep:
        remove_matching(directory, BULKY)
    return result


def result_or_failure(
    config: RunConfig, directory: Path, run: Callable[[], RunResult]
) -> RunResult:
    """Return what *run* returns, or that it failed: the fault of one must not lose the others.

    *directory* is made, and has the traceback of a failure.
    """
    directory.mkdir(parents=True, exist_ok=True)
    try:
        return run()
    except OutputError:  # the others have no room either
        raise
    except Exception as error:
        write_text(directory / "failure.txt", traceback.format_exc())
        print(f"failed: {error}; see {directory / 'failure.txt'}", file=sys.stderr)
        return RunResult(config=config, failure=f"{type(error).__name__}: {error}")


def systems_by_label(
    base: RunConfig, systems: Named | Sequence[Named], settings: Mapping[str, Any]
) -> dict[str, RunConfig]:
    """Return what to run, by label: *systems*, or all there are.

    Each is a plain run, which can be repeated alone. *settings* are as for `split_settings`.

    Raise :exc:`ConfigError` for a setting that means nothing to any of them, and
    :exc:`TopologyError` where there is no system of that name.
    """
    topologies = find_topologies(systems) or list(TOPOLOGIES.values())
    base, own = split_settings(base, topologies, settings)
    configs: dict[str, RunConfig] = {}
    for topology in topologies:
        for label, variant in VARIANTS.get(topology.name, {topology.name: {}}).items():
            parameters = {**variant, **own[topology.name]}
            config = change(base, {"topology": topology.name, "parameters": parameters})
            if config not in configs.values():  # a setting can make two variants one
                configs[label] = config
    return configs


def split_settings(
    base: RunConfig, topologies: Sequence[Topology[Any]], settings: Mapping[str, Any]
) -> tuple[RunConfig, dict[str, dict[str, Any]]]:
    """Return what several systems have in common, and by name the parameters of each.

    *settings* are changes by key, as on the command line. What is no key of a configuration is a
    parameter of the systems that have one of that name. The base's own parameters go to its own
    topology.

    Raise :exc:`ConfigError` for a setting that means nothing to any of the systems, or names one.
    """
    if "topology" in settings:
        raise ConfigError(
            f"topology = {settings['topology']!r}: several are compared here; name them in "
            "topologies"
        )
    known = base.model_dump()
    general = {key: value for key, value in settings.items() if "." in key or key in known}
    special = {key: value for key, value in settings.items() if key not in general}
    check_parameters(special, topologies, "system compared here")
    allowed = {topology.name: parameter_names(topology) for topology in topologies}
    base = change(base, general)
    own = {
        name: {key: value for key, value in special.items() if key in keys}
        for name, keys in allowed.items()
    }
    if base.topology in own:
        own[base.topology] = base.parameters | own[base.topology]
    return base, own


@dataclass(frozen=True, kw_only=True)
class SystemRanking(WrittenResult):
    """Systems ranked by throughput, the fastest first."""

    file = "compare.json"

    base: RunConfig
    """What all runs share."""
    results: dict[str, RunResult]
    """Label to what came out, by falling throughput; failures are last."""
    refused: dict[str, str]
    """Label to why a system cannot evaluate the query."""
    streams: list[dict[str, Any]]
    """Name, path and rows of the streams."""

    @property
    def fastest(self) -> str | None:
        """The exact system of highest throughput."""
        for label, result in self.results.items():
            if result.passed and result.is_exact:
                return label
        return None

    def as_json(self, replay: str) -> dict[str, Any]:
        """Return it as one JSON object with stable keys."""
        return {
            "comparison": self.base.name,
            "query": bound_line(self.base),
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
                    **{key: result.record.get(key) for key in _KEYS},
                }
                for label, result in self.results.items()
            ],
            "refused": [{"label": label, "reason": why} for label, why in self.refused.items()],
            "versions": versions(),
            "replay": replay,
        }


def plan_all(
    configs: Mapping[str, RunConfig], preparation: Prepare, own: Mapping[str, Topology[Any]]
) -> tuple[dict[str, Plan], dict[str, str], dict[str, RunResult]]:
    """Return a plan for each system that can evaluate the query, and why the others cannot.

    The third result are those that failed, as they would in a run: by a fault of their own, or as
    the network's faults name an actor that they do not have. *own* are the caller's own systems, by
    name.

    Raise :exc:`ConfigError` when none of them can.
    """
    plans, refused, failed = {}, {}, {}
    for label, config in configs.items():
        try:
            plans[label] = make_plan(config, topology=own.get(config.topology), prepare=preparation)
        except (TopologyFaultError, NetworkError) as error:  # which must not lose the others
            failed[label] = RunResult(config=config, failure=str(error))
        except TopologyError as error:
            refused[label] = str(error)
    if not plans:
        why = refused | {label: str(result.failure) for label, result in failed.items()}
        raise ConfigError(f"no system compared here can evaluate the query: {group_refusals(why)}")
    return plans, refused, failed


def run_all(
    plans: dict[str, Plan],
    refused: dict[str, str],
    failed: dict[str, RunResult],
    directory: Path,
    *,
    on_point: Callable[[int, str], None],
    replay: Callable[[RunConfig], str],
) -> SystemRanking:
    """Run every plan into a folder of its own below *directory*; *failed* are results, too."""
    results = dict(failed)
    with one_ray_for(plans.values()):
        for place, (label, plan) in enumerate(plans.items()):
            on_point(place, label)
            folder = directory / POINTS / re.sub(r"\W+", "-", label)
            results[label] = run_one_of_many(plan, folder, replay=replay(plan.config), keep=True)
    first = next(iter(plans.values()))
    # Without a throughput are those that failed, and those of which no arrival is measured.
    tps = {label: one.record.get("throughput_tps") or -1.0 for label, one in results.items()}
    ranked = sorted(results, key=lambda label: -tps[label])
    return SystemRanking(
        base=first.config,
        results={label: results[label] for label in ranked},
        refused=refused,
        streams=[
            {"name": stream.name, "path": str(stream.path), "rows": rows}
            for stream, rows in zip(first.streams, first.rows, strict=True)
        ],
    )
