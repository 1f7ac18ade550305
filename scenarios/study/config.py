"""From a study's file to its points: each a run that can be repeated alone."""

from __future__ import annotations

from dataclasses import dataclass, field
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
    """One variant in one panel: per x the number of the point, and what is measured of it."""

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
    """A study at a scale, whole: what its runs share, its points, and the charts they make."""

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
    name_or_path: str, *, scale: str = "laptop", settings: dict[str, Any] | None = None
) -> Study | None:
    """Read a study at a scale, with *settings* changed in all its runs; None if it is none.

    Raise :exc:`ConfigError` naming the key that is wrong.
    """
    values = scenario_files.read(name_or_path, scale=scale)
    said = values.pop(STUDY, None)
    if said is None:
        return None
    base = scenario_files.change(scenario_files.build(values, where=name_or_path), settings or {})
    try:
        section = StudySection.model_validate(said)
    except ValidationError as error:
        mistakes = scenario_files.explain(error, StudySection)
        raise ConfigError(f"{name_or_path}, [study]: {mistakes}") from None
    return build_study(base, section, scale)


def build_study(base: RunConfig, section: StudySection, scale: str) -> Study:
    """Return the study; runs of equal configuration are one point."""
    gathering = _Gathering()
    charts = []
    for panel in section.panels:
        axis = panel.axis or section.axis
        names = panel.variants or tuple(section.variants)
        curves = []
        for name in names:
            variant = section.variants[name]
            measure = variant.measure or panel.measure or section.measure
            numbers, measures = [], []
            for place in axis.places:
                config = _point(base, panel, variant, axis, place)
                label = ", ".join(part for part in (panel.name, name, axis.name(place)) if part)
                numbers.append(gathering.number(config, label))
                measures.append(measure.replace("{x}", axis.name(place)))
            curves.append(Curve(variant=name, points=tuple(numbers), measures=tuple(measures)))
        charts.append(
            Chart(
                panel=panel,
                axis=axis,
                label=panel.label or section.label,
                curves=tuple(curves),
            )
        )
    return Study(
        base=base,
        scale=scale,
        section=section,
        points=tuple(gathering.points),
        charts=tuple(charts),
    )


@dataclass
class _Gathering:
    points: list[Point] = field(default_factory=list)
    known: dict[str, int] = field(default_factory=dict)

    def number(self, config: RunConfig, label: str) -> int:
        """Return the number of the point that runs *config*, a new one if there is none yet."""
        key = repr(config)
        if key not in self.known:
            self.known[key] = len(self.points) + 1
            self.points.append(Point(number=self.known[key], label=label, config=config))
        return self.known[key]


def _point(base: RunConfig, panel: Panel, variant: Variant, axis: Axis, place: int) -> RunConfig:
    keys = axis.keys if variant.keys is None else variant.keys
    settings = {**panel.set, **variant.set, **axis.settings(place, keys)}
    if settings.get("topology", base.topology) != base.topology:
        base = scenario_files.change(base, {"parameters": {}})  # they are the other system's
    return scenario_files.change(base, settings)
