"""``joinsim calibrate``."""

from __future__ import annotations

import platform
import statistics
from dataclasses import asdict
from pathlib import Path

from netsim.cost import CostProfile, load_profile
from scenarios.calibration import fit
from scenarios.calibration.fidelity import predict
from scenarios.calibration.live_runs import Watched, calibration_plans, watch
from scenarios.calibration.window_joins import append_times, calibrate_window_joins
from scenarios.commands.output import print_json
from scenarios.failures import EXIT_FAIL, EXIT_PASS
from scenarios.many_runs import Preparation
from scenarios.scenario_files import ConfigError
from scenarios.terminal.progress import Terminal
from scenarios.terminal.views import show_operators, show_predictions, show_profile
from topologies import TOPOLOGIES, find_topology
from topologies.ibwj import Ibwj


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
    if out.suffix != ".toml":
        raise ConfigError(f"--out {out}: a profile is a TOML file, whose name ends in .toml")
    used = None if profile is None else _read(profile)
    names = [find_topology(name).name for name in topologies] or list(TOPOLOGIES)
    watched = Watched()
    if used is None or check:
        with terminal.preparing() as progress:
            jobs = list(calibration_plans(rows, Preparation(progress), topologies=names))
        watched = watch(
            jobs,
            processes=processes,
            observing=used is None,
            measuring=check,
            note=terminal.note,
        )
    path = profile or out
    if used is None:
        measured = fit.fit(watched.operators, watched.carried)
        fit.write_profile(
            measured,
            out,
            f"Measured on {platform.machine()} by `joinsim calibrate` from {watched.runs} live "
            f"runs of {2 * rows:,} tuples; operators off by "
            f"{fit.misfit(measured, watched.operators):.0%} in the median. Picoseconds.",
        )
        if Ibwj.name in names:
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


def _read(path: Path) -> CostProfile:
    try:
        return load_profile(path)
    except ValueError as error:
        raise ConfigError(f"--profile: {error}") from None
