"""From a study's file to its points: each a run that can be repeated alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from scenarios import scenario_files
from scenarios.config import RunConfig
from scenarios.scenario_files import STUDY, ConfigError
from scenarios.study.section import Axis, Panel, StudySection, Variant


@dataclass(frozen=True, kw_only=True)
class Point:
    """One run of a study; *number* counts from 1."""

    number: int
    label: str
    config: RunConfig


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One variant in one panel: per x the number of its point, and the measure looked up there."""

    variant: str
    points: tuple[int, ...]
    measures: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """One panel with its curves."""

    panel: Panel
    axis: Axis
    label: str
    curves: tuple[Curve, ...]


@dataclass(frozen=True, kw_only=True)
class Study:
    """A study at a scale: what its runs share, its points, and the charts they make."""

    base: RunConfig
    scale: str
    section: StudySection
    points: tuple[Point, ...]
    charts: tuple[Chart, ...]

    @property
    def topologies(self) -> list[str]:
        """The systems it runs."""
        return list(dict.fromkeys(point.config.topology for point in self.points))


def load_study(
    name_or_path: str, *, scale: str = "laptop", settings: Mapping[str, Any] | None = None
) -> Study | None:
    """Read a study at a scale, with *settings* changed in all runs; None for any other scenario.

    Raise :exc:`ConfigError` naming the key that is wrong.
    """
    values = scenario_files.read(name_or_path, scale=scale)
    written = values.pop(STUDY, None)
    if written is None:
        return None
    base = scenario_files.change(scenario_files.build(values, where=name_or_path), settings or {})
    try:
        section = StudySection.model_validate(written)
    except ValidationError as error:
        mistakes = scenario_files.explain(error, StudySection)
        raise ConfigError(f"{name_or_path}, [study]: {mistakes}") from None
    return build_study(base, section, scale)


def build_study(base: RunConfig, section: StudySection, scale: str) -> Study:
    """Return the study; runs of equal configuration are one point."""
    points: dict[str, Point] = {}
    charts = []
    for panel in section.panels:
        axis = panel.axis or section.axis
        curves = []
        for name in panel.variants or tuple(section.variants):
            variant = section.variants[name]
            measure = variant.measure or panel.measure or section.measure
            numbers, measures = [], []
            for place in axis.places:
                x = axis.name(place)
                config = _configure(base, panel, variant, axis, place)
                label = ", ".join(part for part in (panel.name, name, x) if part)
                new = Point(number=len(points) + 1, label=label, config=config)
                numbers.append(points.setdefault(config.model_dump_json(), new).number)
                measures.append(measure.replace("{x}", x))
            curves.append(Curve(variant=name, points=tuple(numbers), measures=tuple(measures)))
        label = panel.label or section.label
        charts.append(Chart(panel=panel, axis=axis, label=label, curves=tuple(curves)))
    return Study(
        base=base,
        scale=scale,
        section=section,
        points=tuple(points.values()),
        charts=tuple(charts),
    )


def _configure(
    base: RunConfig, panel: Panel, variant: Variant, axis: Axis, place: int
) -> RunConfig:
    keys = axis.keys if variant.keys is None else variant.keys
    settings = {**panel.set, **variant.set, **axis.settings(place, keys)}
    return scenario_files.change(base, settings)
