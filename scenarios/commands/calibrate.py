"""``joinsim calibrate``."""

from __future__ import annotations

import platform
import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from actors.hosting.live.parcels import Served
from netsim.cost import CostProfile, load_profile
from scenarios.batch import Preparation
from scenarios.calibration import fit
from scenarios.calibration.jobs import measurable, plans
from scenarios.calibration.observe import observe
from scenarios.calibration.transport import Carried
from scenarios.calibration.validate import Live, measure, predict
from scenarios.calibration.window_joins import append_times, calibrate_window_joins
from scenarios.commands.output import print_json
from scenarios.configuration.configs import ConfigError
from scenarios.failures import EXIT_FAIL, EXIT_PASS
from scenarios.running.plan import Plan
from scenarios.terminal import Terminal
from scenarios.terminal.calibration_view import show_operators, show_predictions, show_profile
from topologies import TOPOLOGIES, find_topology
from topologies.ibwj import Ibwj

if TYPE_CHECKING:
    from actors.hosting.ray_processes import RayProcesses

_REPEATS = 3


def calibrate(
    *,
    rows: int,
    out: Path,
    check: bool,
    profile: Path | None,
    topologies: list[str],
    processes: int,
    json_output: bool,
) -> int:
    """Measure a cost profile into *out*, or take *profile*; with *check* compare it to live runs.

    Return the exit code: fail where a run that was compared was not exact.
    """
    terminal = Terminal(quiet=json_output)
    if not out.parent.is_dir():
        raise ConfigError(f"--out {out}: there is no folder {out.parent}")
    used = None if profile is None else _read(profile)
    wanted = [find_topology(name).name for name in topologies] or list(TOPOLOGIES)
    names = measurable(wanted)
    watched = _watch(terminal, rows, names, processes, observing=used is None, measuring=check)
    path = profile or out
    if used is None:
        measured = _fitted(watched, out, rows)
        if Ibwj.name in wanted:
            terminal.note("window joins over every index, windows of 2^12 to 2^22: minutes")
            append_times(calibrate_window_joins(), out)
        used = measured.base
        show_operators(terminal.out, measured)
    show_profile(terminal.out, used, path)
    predictions = [
        predict(plan, live, profile=path, processes=processes) for plan, live in watched.live
    ]
    if check:
        show_predictions(terminal.out, predictions)
    if json_output:
        told = [prediction.as_json() for prediction in predictions]
        errors = [abs(prediction.throughput_error) for prediction in predictions]
        print_json(
            {
                "profile": asdict(used),
                "path": str(path),
                "predictions": told,
                "median_throughput_error": statistics.median(errors) if errors else None,
            }
        )
    return EXIT_PASS if all(prediction.exact for prediction in predictions) else EXIT_FAIL


@dataclass
class _Watched:
    """What was seen of live runs: operators of each system, processes, and plans measured whole."""

    runs: int = 0
    operators: dict[str, dict[str, list[Served]]] = field(default_factory=dict)
    carried: list[Carried] = field(default_factory=list)
    live: list[tuple[Plan, Live]] = field(default_factory=list)

    def observe(self, plan: Plan, places: RayProcesses) -> None:
        operators, carried = observe(plan, places)
        roles = self.operators.setdefault(plan.topology.name, {})
        for role, served in operators.items():
            roles.setdefault(role, []).append(served)
        self.carried += carried
        self.runs += 1


def _watch(
    terminal: Terminal,
    rows: int,
    names: list[str],
    processes: int,
    *,
    observing: bool,
    measuring: bool,
) -> _Watched:
    """Run every system live: for its costs at every load, and measured whole at the first one."""
    # Only here: importing Ray takes a second that other commands need not spend.
    from actors.hosting.ray_cluster import ray_cluster
    from actors.hosting.ray_processes import RayProcesses

    watched = _Watched()
    if not observing and not measuring:
        return watched
    with terminal.preparing() as progress:
        jobs = list(plans(rows, Preparation(progress), topologies=names))
    first = {(plan.topology.name, plan.config.name): plan for plan in reversed(jobs)}
    with ray_cluster(processes=processes):
        for plan in jobs:
            is_first = plan is first[plan.topology.name, plan.config.name]
            if observing or is_first:
                load = f"{plan.feeding.batch_rows:,} tuples a message"
                terminal.note(f"{plan.topology.name}, {plan.config.name}, {load}")
            if observing:
                with RayProcesses(processes) as places:
                    watched.observe(plan, places)
            if measuring and is_first:
                live = measure(plan, processes=processes, repeats=_REPEATS)
                watched.live.append((plan, live))
    return watched


def _fitted(watched: _Watched, out: Path, rows: int) -> fit.Calibrated:
    """Return the profile that fits what was watched, and write it into *out*."""
    profile = fit.fit(watched.operators, watched.carried)
    off = [
        abs(fit.fitted_ns(profile.base, profile.operators[system][role], run) / run.worked_ns - 1)
        for system, operators in watched.operators.items()
        for role, runs in operators.items()
        for run in runs
        if run.worked_ns
    ]
    fit.write(
        profile,
        out,
        f"Measured on {platform.machine()} by `joinsim calibrate` from {watched.runs} live runs of "
        f"{2 * rows:,} tuples; operators off by {np.median(off):.0%} in the median. Picoseconds.",
    )
    return profile


def _read(path: Path) -> CostProfile:
    try:
        return load_profile(path)
    except ValueError as error:
        raise ConfigError(f"--profile: {error}") from None
