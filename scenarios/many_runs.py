"""Several runs in turn on data that is prepared once; a failure does not affect the others."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from actors.hosting.inline import Clock
from actors.hosting.processes import EACH
from actors.whole_files import write_text
from joins.errors import OutputError
from joins.queries.query import JoinQuery
from scenarios.config import RunConfig
from scenarios.measures import Parts, record
from scenarios.plan import Plan
from scenarios.run import execute
from scenarios.run_directory import TRACE, remove
from scenarios.run_json import write_run_json
from scenarios.streams import dictionary_names, prepare_streams
from spark_bridge.prepared import PreparedStream

BULKY = (TRACE, "results.parquet", "probes-*.parquet", "replay/*")
"""What a run leaves beside its ``run.json``; a run of many can be repeated alone to see it."""


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """One run of several.

    Attributes
    ----------
    config
        What was run.
    record
        What came out (see `measures`); empty when it failed.
    passed
        The verdict; None when it is unknown, or when the run failed.
    claims_exact
        Whether the system claims to be exact.
    failure
        Why there is no verdict.
    """

    config: RunConfig
    record: dict[str, Any] = field(default_factory=dict)
    passed: bool | None = None
    claims_exact: bool = True
    failure: str | None = None

    @property
    def is_only_measured(self) -> bool:
        """Whether it promised nothing of its pairs, and they differ: nothing to pass or fail."""
        verdict = self.record.get("verdict")
        return bool(verdict and not verdict["exact"] and self.passed is None)


class Preparation:
    """Prepares the streams of several runs, each once; `make_plan` calls it."""

    def __init__(self, progress: Callable[[str, int, int], None] | None = None) -> None:
        self._progress = progress
        self._known: dict[str, tuple[PreparedStream, ...]] = {}

    def __call__(self, config: RunConfig, query: JoinQuery) -> tuple[PreparedStream, ...]:
        """Return the streams of *config*, prepared if they are not yet."""
        fields = [query.fields(stream) for stream in range(len(query.streams))]
        asked = repr((config.streams, query.streams, fields, dictionary_names(query)))
        if asked not in self._known:
            self._known[asked] = prepare_streams(config, query, progress=self._progress)
        return self._known[asked]


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
    kernel_clock: Clock = time.perf_counter,
) -> RunResult:
    """Run *plan* into *directory* and return what came out, also when it fails.

    *kernel_clock* is as for `scenarios.run.execute`. Without *keep* only ``run.json`` stays, and of
    a failure its traceback.
    """
    directory.mkdir(parents=True, exist_ok=True)
    try:
        # Studies compare the times of actors: nothing else is to run beside them.
        report = execute(plan, directory, kernel_clock=kernel_clock, undisturbed=True)
        write_run_json(report, replay)
        result = RunResult(
            config=plan.config,
            record=record(report, parts),
            passed=report.verdict.passed,
            claims_exact=report.verdict.claims_exact,
        )
    except OutputError:  # the others have no room either
        raise
    except Exception as error:  # one system's fault must not lose the others
        write_text(directory / "failure.txt", traceback.format_exc())
        print(f"failed: {error}; see {directory / 'failure.txt'}", file=sys.stderr)
        result = RunResult(config=plan.config, failure=f"{type(error).__name__}: {error}")
    if not keep:
        for pattern in BULKY:
            for path in directory.glob(pattern):
                remove(path)
    return result
