"""From a study's file to its points, each a run that can be repeated alone, and to its charts.

Values of a chart come from a simulation, this machine's clock, or an estimate. Which follows from
what is run and what is looked up of it, so that no file can call a simulated value a measured one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from actors.hosting.inline import Clock
from scenarios import scenario_files
from scenarios.config import RunConfig
from scenarios.formatting import format_bytes
from scenarios.machine import describe_machine
from scenarios.plan import bound_line, make_parameters, read_profile, topology_of
from scenarios.scenario_files import STUDY, ConfigError
from scenarios.study.section import Axis, Claim, Panel, StudySection
from scenarios.survey import Kind
from topologies.assumptions import ASSUMPTIONS, Assumption, assumptions_of

KIND_WORDS: dict[Kind, str] = {
    "simulated": "simulated: virtual time and counted work",
    "measured": "measured: this machine's clock",
    "derived": "derived: computed, not run",
}
"""What a legend says of each."""

_KERNEL_TIMES = ("kernel_seconds", "kernel_tps")
"""Measures of the time that actors took."""
_REAL_TIMES = (*_KERNEL_TIMES, "wall_parts", "wall_seconds")
"""Measures of a run that are real seconds whatever its clock."""
_TIMES = (
    *_REAL_TIMES,
    "throughput_tps",
    "latency_ms",
    "result_ms",
    "pace_tps",
    "pace_max_tps",
    "busy_seconds",
    "transmission",
    "balance",
    "merge_ms",
    "collectors.delay_ms",
    "collectors.longest_ms",
    "execution.seconds",
)
"""Measures that are times, per time or times over times, all of a table or one of its keys: of a
live run they are this machine's."""
_ESTIMATES = ("capacity_tps",)
"""Measures that are computed from what a run spent, as if something else had been run."""

_MEMORY_WORTH_A_WORD = 1 << 30

WORDS = ("scenario", "topology", "query", "streams", "backend", "clock", "digest")
"""Keys of a run's record that have no number, and none within them."""
FIGURES = (
    "seed", "tuples", "virtual_seconds", "wall_seconds", "wall_parts", "throughput_tps",
    "latency_ms", "network", "faults", "recovery", "memory_bytes", "collectors", "verdict",
    "approximation", "kernel_seconds", "kernel_tps", "state_bytes", "busy_seconds", "capacity_tps",
    "transmission", "balance", "row_balance", "copies", "execution", "pace_tps", "pace_max_tps",
    "result_ms", "merge_ms", "window_lag", "correctness",
)  # fmt: skip
"""All other keys of a run's record, see `scenarios.measures`."""
SEARCHED = ("sustainable_tps", "saturated_tps", "rates")
"""Keys that the record of a search for the sustainable rate has besides."""

_STREAM_SEEDS = 256
"""Seeds of synthetic fields from one repetition to the next; a run's streams have fewer fields."""

REPEAT = ("repeat", "study.repeat")
"""The setting of how many seeds a study is run with, as it may be called."""

TURNS = 5
"""How often a study measures what it reads from this machine's clock, each time all of it. The 95 %
interval of five is half as wide as that of three, which left many claims open."""

_SAME_EXPERIMENT = {"seed", "backend", "processes"}
"""Settings that leave a study the experiment that its file describes."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """One run of a study; *number* counts from 1."""

    number: int
    label: str
    config: RunConfig


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One variant in one panel."""

    variant: str
    kind: Kind
    label: str
    """Its name, where its values come from, and what they are."""
    points: tuple[tuple[int, ...], ...]
    measures: tuple[str, ...]
    """Per x the numbers of its points, one for each seed or turn and none where it is not run, and
    the measure looked up there."""
    per: float = 1.0
    """What its values are divided by."""

    @property
    def is_repeated(self) -> bool:
        """Whether there are several values at an x."""
        return any(len(numbers) > 1 for numbers in self.points)


@dataclass(frozen=True, kw_only=True)
class Chart:
    """One panel with its curves."""

    panel: Panel
    axis: Axis
    curves: tuple[Curve, ...]

    @property
    def label(self) -> str:
        """What its curves are of, each unit once."""
        return "; ".join(dict.fromkeys(curve.label for curve in self.curves))

    def curve(self, variant: str) -> Curve:
        """Return the curve of a variant that the panel shows."""
        return next(curve for curve in self.curves if curve.variant == variant)

    def positions_run(self, variants: Sequence[str]) -> list[int]:
        """Return at which of the axis's positions, counted along x, all *variants* are run."""
        points = [self.curve(variant).points for variant in variants]
        return [i for i, at in enumerate(zip(*points, strict=True)) if all(at)]


@dataclass(frozen=True, kw_only=True)
class Study:
    """A study at a scale: what its runs share, its points, and the charts they make.

    *turns* is how often values of this machine are measured; *settings* are the keys that
    the caller changes, and *changed* says whether they make it another experiment than its file
    describes.
    """

    base: RunConfig
    scale: str
    section: StudySection
    points: tuple[Point, ...]
    charts: tuple[Chart, ...]
    turns: int = 1
    settings: tuple[str, ...] = ()
    changed: bool = False

    @property
    def curves(self) -> list[Curve]:
        """The curves of all charts."""
        return [curve for chart in self.charts for curve in chart.curves]

    @property
    def in_turns(self) -> list[Point]:
        """The points in the order in which they are run: all once, then all that are repeated.

        What slows a machine down for a while then slows one turn of several points, which shows as
        a wide interval, and not all turns of one point.
        """
        return sorted(self.points, key=lambda point: point.config.seed)

    @property
    def seeds(self) -> str:
        """The seeds of its runs, in words."""
        first, last = self.base.seed, self.base.seed + self.section.repeat - 1
        return f"seed {first}" if first == last else f"seeds {first} to {last}"

    @property
    def query_line(self) -> str:
        """The query on one line; placeholders have the values that are the same at all points."""
        points = [point.config for point in self.points]
        shared = {
            name: value
            for name, value in points[0].bind.items()
            if all(one.query == self.base.query and one.bind.get(name) == value for one in points)
        }
        if not shared:
            return self.base.query_line
        return bound_line(self.base.model_copy(update={"bind": shared}))

    @property
    def topologies(self) -> list[str]:
        """The systems it runs."""
        return list(dict.fromkeys(point.config.topology for point in self.points))

    @property
    def remarks(self) -> list[str]:
        """What a reader should know of its sizes and its values, a sentence each."""
        remarks = []
        for key in self.settings:
            if curves := self._curves_that_set(key):
                remarks.append(
                    f"The study sets {key} itself in {', '.join(curves)}: your value has no effect "
                    "there."
                )
        if self.section.reduced:
            remarks.append(f"Reduced, beside the paper: {self.section.reduced}.")
        if self.is_measured:
            machine = describe_machine()
            remarks.append(
                f"Measured values are of this machine: {machine['processor']}, {machine['cores']} "
                f"cores, {machine['system']}."
            )
        memory = max(
            (one.config.survey.memory_bytes for one in self.points if one.config.survey), default=0
        )
        if memory > _MEMORY_WORTH_A_WORD:
            remarks.append(f"The largest of its surveys takes about {format_bytes(memory)}.")
        return remarks

    def _curves_that_set(self, key: str) -> list[str]:
        """Return which curves have a value of their own for *key* or for a part of it."""
        curves = []
        for chart in self.charts:
            for curve in chart.curves:
                variant = self.section.variants[curve.variant]
                keys = chart.axis.keys if variant.keys is None else variant.keys
                if any(_overlap(key, own) for own in (*chart.panel.set, *variant.set, *keys)):
                    curves.append(", ".join(filter(None, (chart.panel.name, curve.variant))))
        return curves

    @property
    def assumptions(self) -> list[Assumption]:
        """What is assumed of any of its runs and surveys, each once."""
        assumed: dict[Assumption, None] = {}
        for config in (one.config for one in self.points):
            with suppress(ConfigError):  # a run that cannot be; its point says so
                assumed |= dict.fromkeys(_assumptions_of(config))
        return list(assumed)

    def judges(self, claim: Claim, chart: Chart) -> bool:
        """Return whether a claim is judged in a panel, at this scale."""
        if not self.section.is_about(claim, chart.panel):
            return False
        if claim.scales:
            return self.scale in claim.scales
        return self.scale != "smoke" or chart.curve(claim.of[0]).kind != "measured"

    def measures_of(self, point: Point) -> list[str]:
        """Return what its curves look up of a point."""
        return [
            measure
            for curve in self.curves
            for numbers, measure in zip(curve.points, curve.measures, strict=True)
            if point.number in numbers
        ]

    def is_timed(self, point: Point) -> bool:
        """Whether a curve looks up what this machine took at a point."""
        return "measured" in (kind_of(point.config, name) for name in self.measures_of(point))

    @property
    def is_measured(self) -> bool:
        """Whether any of its values is of this machine."""
        return any(curve.kind == "measured" for curve in self.curves)


def _overlap(key: str, other: str) -> bool:
    """Return whether one of two dotted keys is the other, or a section that has it."""
    return f"{key}.".startswith(f"{other}.") or f"{other}.".startswith(f"{key}.")


def load_study(
    name_or_path: str, *, scale: str = "laptop", settings: Mapping[str, Any] | None = None
) -> Study | None:
    """Read a study at a scale, with *settings* changed in all runs; None for any other scenario.

    The setting ``repeat`` is the study's own: with how many seeds each point is run. Where it is
    not given, what is read from this machine's clock is measured `TURNS` times, at smoke scale
    once.

    Raise :exc:`ConfigError` naming the key that is wrong.
    """
    values = scenario_files.read(name_or_path, scale=scale)
    written = values.pop(STUDY, None)
    if written is None:
        return None
    written = dict(written)
    written = _put_words(written, written.pop("words", {}))
    settings = dict(settings or {})
    repeats = [settings.pop(name) for name in REPEAT if name in settings]
    if repeats:
        written = written | {"repeat": repeats[-1]}
    unchanged = scenario_files.build(values, where=name_or_path)
    base = scenario_files.change(unchanged, settings)
    section = scenario_files.validate(StudySection, written, where=f"{name_or_path}, [study]")
    same = base.model_dump(exclude=_SAME_EXPERIMENT)
    changed = same != unchanged.model_dump(exclude=_SAME_EXPERIMENT)
    turns = 1 if repeats or scale == "smoke" else TURNS
    study = build_study(base, section, scale, turns=turns, changed=changed)
    return replace(study, settings=tuple(settings))


def _put_words(written: Any, words: Mapping[str, Any]) -> Any:
    """Return a section with ``{word}`` replaced in all its names and texts.

    So a name can carry the size that ran, which a scale changes. A text that is nothing but a word
    becomes what that stands for, a number or a list too.
    """
    if isinstance(written, dict):
        return {_put_words(k, words): _put_words(v, words) for k, v in written.items()}
    if isinstance(written, (list, tuple)):
        return [_put_words(one, words) for one in written]
    if isinstance(written, str):
        for word, value in words.items():
            if written == f"{{{word}}}":
                return value
            written = written.replace(f"{{{word}}}", str(value))
    return written


def build_study(
    base: RunConfig,
    section: StudySection,
    scale: str,
    *,
    turns: int = 1,
    changed: bool = False,
) -> Study:
    """Return the study; runs of equal configuration are one point."""
    points = _Points(base, section, turns)
    charts = []
    for panel in section.panels:
        axis = panel.axis or section.axis
        variants = panel.variants or tuple(section.variants)
        curves = tuple(points.curve(panel, axis, name) for name in variants)
        charts.append(Chart(panel=panel, axis=axis, curves=curves))
    _check_claims(base.name, section, charts)
    return Study(
        base=base,
        scale=scale,
        section=section,
        points=tuple(points.by_config.values()),
        charts=tuple(charts),
        turns=turns,
        changed=changed,
    )


@dataclass(frozen=True)
class _Points:
    """The points of a study, as its curves add them; *turns* is as for a `Study`."""

    base: RunConfig
    section: StudySection
    turns: int
    by_config: dict[str, Point] = field(default_factory=dict)

    def curve(self, panel: Panel, axis: Axis, name: str) -> Curve:
        """Return a variant in a panel, whose points are added."""
        section, variant = self.section, self.section.variants[name]
        measure = variant.measure or panel.measure or section.measure
        numbers: list[tuple[int, ...]] = []
        measures, kinds = [], set()
        for place in axis.places:
            x = axis.name(place)
            measures.append(measure.replace("{x}", x))
            if variant.only and place not in variant.only:
                numbers.append(())
                continue
            settings = panel.set | variant.set | variant.settings(axis, place)
            config = scenario_files.change(self.base, settings)
            _check_measure(self.base.name, config, measures[-1])
            kind = kind_of(config, measures[-1])
            kinds.add(kind)
            times = max(section.repeat, self.turns if kind == "measured" else 1)
            label = ", ".join(part for part in (panel.name, name, x) if part)
            numbers.append(self._add(config, label, times))
        if len(kinds) > 1:
            raise ConfigError(
                f"{self.base.name}, variant {name!r}: some of its points are "
                f"{' and some '.join(sorted(kinds))}: make them variants of their own"
            )
        return Curve(
            variant=name,
            kind=kinds.pop() if kinds else "simulated",
            label=variant.label or panel.label or section.label,
            points=tuple(numbers),
            measures=tuple(measures),
            per=variant.per,
        )

    def _add(self, config: RunConfig, label: str, times: int) -> tuple[int, ...]:
        """Add runs of *config* with so many seeds, where there are none; return their numbers."""
        numbers = []
        for repetition in range(times):
            seeded = reseed(config, repetition)
            called = label + (f", seed {seeded.seed}" if times > 1 else "")
            new = Point(number=len(self.by_config) + 1, label=called, config=seeded)
            numbers.append(self.by_config.setdefault(seeded.model_dump_json(), new).number)
        return tuple(numbers)


def kind_of(config: RunConfig, measure: str) -> Kind:
    """Return where the value called *measure* of a point comes from."""
    first = measure.split(".")[0]
    if config.survey is not None:
        return config.survey.kind_of(measure)
    if first in _ESTIMATES:
        return "derived"
    times = _TIMES if config.clock == "live" else _REAL_TIMES
    return "measured" if first in times or measure in times else "simulated"


def _assumptions_of(config: RunConfig) -> list[Assumption]:
    """Return what is assumed of a run in virtual time, or of a survey.

    Raise :exc:`ConfigError` where the run cannot be.
    """
    if config.survey:
        costs = read_profile(config.profile)
        named = config.survey.assumed
        return [one for one in ASSUMPTIONS if one.name in named and one.costs(costs)]
    if config.clock == "live":
        return []
    topology = topology_of(config)
    parameters = make_parameters(topology, config.parameters)
    return assumptions_of(topology.name, read_profile(config.profile), parameters)


def _check_measure(name: str, config: RunConfig, measure: str) -> None:
    """Refuse, before anything runs, what is no number in any run's record."""
    first = measure.split(".")[0]
    if config.survey is None and first in WORDS:
        raise ConfigError(f"{name}: measure {measure}: it is no number")
    if config.survey is None and first not in (*FIGURES, *SEARCHED):
        known = ", ".join(FIGURES)
        raise ConfigError(f"{name}: measure {measure}: there is no {first!r}; choose from {known}")


def _check_claims(name: str, section: StudySection, charts: Sequence[Chart]) -> None:
    """Refuse a claim that sets a measured variant against one that is not: seconds differ."""
    for claim in section.claims:
        for chart in charts:
            if section.is_about(claim, chart.panel):
                kinds = [curve.kind for curve in chart.curves if curve.variant in claim.of]
                if "measured" in kinds and set(kinds) != {"measured"}:
                    raise ConfigError(
                        f"{name}, claim {claim.text!r}: one of {' and '.join(claim.of)} is "
                        "measured and the other is not"
                    )


def reseed(config: RunConfig, repetition: int) -> RunConfig:
    """Return *config* with the seed of a repetition, counted from 0, its streams drawn anew.

    Raise :exc:`ConfigError` where there are no more seeds.
    """
    if not repetition:
        return config
    settings: dict[str, Any] = {"seed": config.seed + repetition}
    for place, stream in enumerate(config.streams):
        if stream.synthetic:
            seed = stream.synthetic.seed + repetition * _STREAM_SEEDS
            settings[f"streams.{place}.synthetic.seed"] = seed
    return scenario_files.change(config, settings)


def kernel_clock(measures: Iterable[str]) -> Clock:
    """Return what a run of a study reads the time from that is spent in its actors.

    Processor time where one of the *measures* that the study looks up in it is made of that: other
    programs do not slow it down. Nothing else needs it, and reading it slows the run itself down.
    """
    firsts = {measure.split(".")[0] for measure in measures}
    return time.process_time if firsts.intersection(_KERNEL_TIMES) else time.perf_counter
