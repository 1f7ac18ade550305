"""Runs the points of a study."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from netsim.cost import load_profile
from scenarios.config import RunConfig
from scenarios.many_runs import Preparation, Result, run_one_of_many
from scenarios.measures import look_up
from scenarios.plan import Plan, make_plan
from scenarios.run_directory import POINTS
from scenarios.scenario_files import ConfigError
from scenarios.study.config import Point, Study
from scenarios.study.findings import Findings
from topologies import TopologyError


def plan_points(study: Study, preparation: Preparation) -> dict[int, Plan]:
    """Return a plan for each point, so that what is wrong with any is known before the first runs.

    A survey needs none. Raise :exc:`ConfigError` naming the point.
    """
    plans = {}
    for point in study.points:
        if point.config.survey:
            continue
        try:
            plans[point.number] = make_plan(point.config, prepare=preparation)
        except (ConfigError, TopologyError) as error:
            raise ConfigError(
                f"{study.base.name}, point {point.number} ({point.label}): {error}"
            ) from None
    return plans


def run_points(
    study: Study,
    plans: dict[int, Plan],
    directory: Path,
    *,
    on_point: Callable[[int, str], None],
    replay: Callable[[Point], str],
) -> Findings:
    """Run every point into a folder of its own below *directory*.

    Raise :exc:`ConfigError` when a point has no number of the name that is to be measured.
    """
    results = {}
    for point in study.points:
        on_point(point.number - 1, point.label)
        if point.number in plans:
            result = run_one_of_many(
                plans[point.number],
                directory / POINTS / f"{point.number:03}",
                replay=replay(point),
                parts=study.section.parts,
                keep=False,
            )
        else:
            result = _survey(point.config)
        results[point.number] = result
        if result.record:
            _check_measures(study, point, result.record)
    return Findings(study=study, results=results)


def _survey(config: RunConfig) -> Result:
    assert config.survey is not None  # what has no plan
    found = config.survey.take(seed=config.seed, profile=load_profile(config.profile))
    record = found.record | {"checked": found.checked}
    return Result(config=config, record=record, passed=found.passed, claims_exact=False)


def _check_measures(study: Study, point: Point, record: dict[str, object]) -> None:
    for chart in study.charts:
        for curve in chart.curves:
            for number, measure in zip(curve.points, curve.measures, strict=True):
                if number == point.number:
                    try:
                        look_up(record, measure)
                    except KeyError as error:
                        raise ConfigError(f"{study.base.name}: {error.args[0]}") from None
