"""``joinsim calibrate``."""

from __future__ import annotations

import platform
import statistics
from dataclasses import asdict
from pathlib import Path

import numpy as np

from netsim.cost import CostProfile, load_profile
from scenarios.batch import Preparation
from scenarios.calibration import fit
from scenarios.calibration.jobs import measurable, plans
from scenarios.calibration.observe import observe
from scenarios.calibration.validate import validate
from scenarios.commands.output import print_json
from scenarios.config import ConfigError
from scenarios.failures import EXIT_FAIL, EXIT_PASS
from scenarios.terminal import Terminal
from scenarios.terminal.calibration_view import show_predictions, show_profile
from topologies import TOPOLOGIES, find_topology

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
    names = measurable([find_topology(name).name for name in topologies] or list(TOPOLOGIES))
    if profile is None:
        used, path = _measured(terminal, rows, out, names), out
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


def _measured(terminal: Terminal, rows: int, out: Path, names: list[str]) -> CostProfile:
    if not out.parent.is_dir():
        raise ConfigError(f"--out {out}: there is no folder {out.parent}")
    runs = []
    with terminal.preparing() as progress:
        jobs = list(plans(rows, Preparation(progress), topologies=names))
    for plan in jobs:
        terminal.note(f"{plan.topology.name}, {plan.config.name}, {plan.feeding.batch_rows}")
        runs.append(observe(plan))
    profile = fit.fit(runs)
    off = np.abs(fit.errors(profile, runs))
    fit.write(
        profile,
        out,
        f"Measured on {platform.machine()} by `joinsim calibrate` from {len(runs)} runs of "
        f"{2 * rows:,} tuples; off by {np.median(off):.0%} in the median. Picoseconds per unit.",
    )
    return profile


def _read(path: Path) -> CostProfile:
    try:
        return load_profile(path)
    except ValueError as error:
        raise ConfigError(f"--profile: {error}") from None
