"""Measuring what work costs on this machine, for runs in virtual time."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Ge
from pydantic import NonNegativeInt, PositiveInt

from actors.whole_files import at_home, check_can_be_made
from netsim.cost import COSTS, CostProfile, load_profile
from scenarios.calibration import fit
from scenarios.calibration.live_runs import (
    LivePrediction,
    Watched,
    calibration_plans,
    predict_live,
    watch,
)
from scenarios.calibration.memory_speed import measure_memory
from scenarios.calibration.structure_work import measure_all
from scenarios.observer import SILENT, Observer
from scenarios.plan import read_profile
from scenarios.preparation import Preparation
from scenarios.scenario_files import ConfigError
from topologies import TOPOLOGIES, Named, registered_names


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """A machine's cost profile, and how well it predicts live runs.

    Attributes
    ----------
    profile, path
        The profile, and its TOML file.
    operators
        What was measured of each operator; None where a profile was passed.
    predictions
        Per system its live run beside the predicted one; empty unless they were compared.

    Examples
    --------
    >>> import tempfile, joinsim as js
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     calibration = js.calibrate(f"{folder}/calibrated.toml", live=False, passes=0)
    >>> calibration.path.name, calibration.profile.name, calibration.predictions
    ('calibrated.toml', 'default', ())
    """

    profile: CostProfile
    path: Path
    operators: fit.Calibrated | None
    predictions: tuple[LivePrediction, ...]

    @property
    def exact(self) -> bool:
        """Whether every run that was compared was exactly right."""
        return all(prediction.exact for prediction in self.predictions)

    @property
    def summary(self) -> dict[str, Any]:
        """Everything as plain data, as ``--json`` prints it."""
        errors = [abs(prediction.throughput_error) for prediction in self.predictions]
        return {
            "profile": {name: getattr(self.profile, name) for name in ("name", *COSTS)},
            "structures": {
                name: cost.written(self.profile.unit_ps)
                for name, cost in sorted(self.profile.structures.items())
            },
            "path": str(self.path),
            "predictions": [prediction.as_json() for prediction in self.predictions],
            "median_throughput_error": statistics.median(errors) if errors else None,
        }


def calibrate(
    out: str | Path = "calibrated.toml",
    *,
    live: bool = True,
    validate: bool = False,
    profile: str | Path | None = None,
    topologies: Named | Sequence[Named] = (),
    rows: Annotated[int, Ge(1_000)] = 20_000,
    processes: PositiveInt = 2,
    passes: NonNegativeInt = 1,
    observer: Observer = SILENT,
) -> Calibration:
    """Measure a cost profile on this machine, and write it to *out*.

    Every structure is measured by itself, operation by operation (a quarter of an hour), and every
    system in live runs on Ray.

    Parameters
    ----------
    out
        TOML file for the profile, for ``profile=`` of `joinsim.run`.
    live
        Whether to run the systems; else messages cost what they do in the default profile.
    validate
        Whether to compare what it predicts with live runs.
    profile
        Take this profile instead of measuring one.
    topologies
        The systems to run; by default all.
    rows, processes
        Tuples of each stream, 1,000 or more, and Ray processes of the live runs.
    passes
        How often each structure is measured; the least time counts. What others who use the machine
        have disturbed each time is measured up to three times more. With 0 no structure is
        measured: each costs what it does in the default profile.
    observer
        Shows what is being done; by default nothing is shown.

    Raises
    ------
    ConfigError
        *out* is no TOML file in an existing folder, or *profile* is not a profile.
    OutputError
        The folder cannot be written to.
    RayUnavailableError
        Ray cannot start.

    Examples
    --------
    >>> import tempfile, joinsim as js
    >>> with tempfile.TemporaryDirectory() as folder:  # quick: it takes the default prices
    ...     calibration = js.calibrate(f"{folder}/calibrated.toml", live=False, passes=0)
    ...     run = js.run(
    ...         "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '5' ON '20')",
    ...         {"T": {"x": [3, 1, 2]}}, topology="nested_loop", profile=str(calibration.path),
    ...     )
    >>> calibration.exact, run.verdict.exact
    (True, True)
    """
    out, path = at_home(out), None if profile is None else at_home(profile)
    if not out.parent.is_dir():
        raise ConfigError(f"out = {out}: there is no folder {out.parent}")
    if out.suffix != ".toml":
        raise ConfigError(f"out = {out}: a profile is a TOML file, whose name ends in .toml")
    names = registered_names(topologies) or list(TOPOLOGIES)
    measured = None
    if path is None:
        check_can_be_made(out.parent)  # what took a quarter of an hour is not to be lost
        measured = _measure_structures(passes, observer.note)
        used = measured.base
    else:
        used = read_profile(path)
    live = live and measured is not None
    watched = Watched()
    if live or validate:
        with observer.preparing() as progress:
            plans = list(calibration_plans(rows, Preparation(progress), topologies=names))
        watched = watch(
            plans, processes=processes, observing=live, measuring=validate, note=observer.note
        )
    if measured is not None:
        comment = "Measured by `joinsim calibrate`. Picoseconds."
        if live:
            fitted = fit.fit(watched.operators, watched.carried, measured.base)
            measured = replace(fitted, machine=measured.machine)
            comment = (
                f"Measured by `joinsim calibrate`, with {watched.runs} live runs of {2 * rows:,} "
                f"tuples; operators off by {fit.misfit(measured, watched.operators):.0%} in the "
                "median. Picoseconds."
            )
        fit.write_profile(measured, out, comment)
        used = measured.base
    written = path or out
    predictions = [
        predict_live(plan, speed, profile=written, processes=processes)
        for plan, speed in watched.live
    ]
    return Calibration(
        profile=used, path=written, operators=measured, predictions=tuple(predictions)
    )


def _measure_structures(passes: int, note: Callable[[str], None]) -> fit.Calibrated:
    """Return the default profile with this machine's own prices of structures, and its memory's.

    Without *passes* these are the default ones, too.
    """
    base = load_profile()
    if passes:
        note("structures, operation by operation: a quarter of an hour a pass")
        costs = fit.fit_structures(measure_all(passes=passes, note=note), base.unit_ps)
        note("memory")
        base = replace(base, name="calibrated", structures=costs, memory=measure_memory())
    return fit.Calibrated(base=base, machine=fit.machine())
