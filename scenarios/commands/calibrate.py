"""``joinsim calibrate``."""

from __future__ import annotations

import platform
import statistics
from dataclasses import asdict
from pathlib import Path

import numpy as np

from actors.hosting.live.parcels import Served
from netsim.cost import CostProfile, load_profile
from scenarios.batch import Preparation
from scenarios.calibration import fit
from scenarios.calibration.jobs import measurable, plans
from scenarios.calibration.observe import observe
from scenarios.calibration.transport import Carried
from scenarios.calibration.validate import validate
from scenarios.calibration.window_joins import append_times, calibrate_window_joins
from scenarios.commands.output import print_json
from scenarios.configuration.configs import ConfigError
from scenarios.failures import EXIT_FAIL, EXIT_PASS
from scenarios.terminal import Terminal
from scenarios.terminal.calibration_view import show_operators, show_predictions, show_profile
from topologies import TOPOLOGIES, find_topology
from topologies.ibwj import Ibwj

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
    wanted = [find_topology(name).name for name in topologies] or list(TOPOLOGIES)
    names = measurable(wanted)
    if profile is None:
        measured = _measured(terminal, rows, out, names, processes)
        if Ibwj.name in wanted:
            terminal.note("window joins over every index, windows of 2^12 to 2^22: minutes")
            append_times(calibrate_window_joins(), out)
        used, path = measured.base, out
        show_operators(terminal.out, measured)
    else:
        used, path = _read(profile), profile
    show_profile(terminal.out, used, path)
    predictions = []
    if check:
        changes = {"profile": str(path.resolve()), "processes": processes}
        with terminal.preparing() as progress:
            jobs = list(
                plans(rows, Preparation(progress), loads=1, topologies=names, changes=changes)
            )
        predictions = validate(jobs, processes=processes, repeats=_REPEATS, on_plan=terminal.note)
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


def _measured(
    terminal: Terminal, rows: int, out: Path, names: list[str], processes: int
) -> fit.Calibrated:
    # Only here: importing Ray takes a second that other commands need not spend.
    from actors.hosting.ray_cluster import ray_cluster
    from actors.hosting.ray_processes import RayProcesses

    if not out.parent.is_dir():
        raise ConfigError(f"--out {out}: there is no folder {out.parent}")
    with terminal.preparing() as progress:
        jobs = list(plans(rows, Preparation(progress), topologies=names))
    observed: dict[str, dict[str, list[Served]]] = {}
    carried: list[Carried] = []
    with ray_cluster(processes=processes):
        for plan in jobs:
            terminal.note(f"{plan.topology.name}, {plan.config.name}, {plan.feeding.batch_rows}")
            with RayProcesses(processes) as places:
                operators, passed_on = observe(plan, places)
            roles = observed.setdefault(plan.topology.name, {})
            for role, served in operators.items():
                roles.setdefault(role, []).append(served)
            carried += passed_on
    profile = fit.fit(observed, carried)
    off = [
        abs(fit.fitted_ns(profile.base, profile.operators[system][role], run) / run.worked_ns - 1)
        for system, operators in observed.items()
        for role, runs in operators.items()
        for run in runs
        if run.worked_ns
    ]
    fit.write(
        profile,
        out,
        f"Measured on {platform.machine()} by `joinsim calibrate` from {len(jobs)} live runs of "
        f"{2 * rows:,} tuples; operators off by {np.median(off):.0%} in the median. Picoseconds.",
    )
    return profile


def _read(path: Path) -> CostProfile:
    try:
        return load_profile(path)
    except ValueError as error:
        raise ConfigError(f"--profile: {error}") from None
