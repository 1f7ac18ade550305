"""The ``[study]`` section of a scenario: what it varies and measures, and what a paper claims."""

from __future__ import annotations

from math import isnan
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from scenarios.config import SCALES, Section
from scenarios.formatting import format_value
from topologies.quantities import Nanoseconds

_LARGE = 100_000
_STATED = ("above", "rises", "falls", "at_least", "at_most", "near", "cases", "mean")
"""Keys by which a claim says what must hold."""
REPEATS_MAX = 100
"""Synthetic streams have seeds of their own for so many (`scenarios.study.study`)."""

Subject = Annotated[tuple[str, ...], Field(min_length=1, max_length=2)]
"""A variant, or two of them: the first over the second."""


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


PanelNames = Annotated[tuple[str, ...], BeforeValidator(_as_list)]
"""Of one panel, or of several; none stands for every panel that has the variants in question."""


def _short(value: Any) -> str:
    """Return a value as a name has it: 1500 and "1500" are 1.5K."""
    if isinstance(value, str) and value.isdigit():
        value = int(value)
    if not isinstance(value, int):
        return str(value)
    for unit, letter in ((10**6, "M"), (10**3, "K")):
        if value >= unit:
            return f"{value / unit:.4g}{letter}"
    return str(value)


class _StudyPart(Section):
    """A part of a study's section, whose names may be numbers, as a word that stands for one is."""

    model_config = ConfigDict(coerce_numbers_to_str=True)


class Axis(_StudyPart):
    """What runs along x."""

    label: str
    """Its label on the figure."""
    keys: tuple[str, ...] = ()
    """What is set, dotted keys as for ``--set``; none where x only chooses the measure, whose
    ``{x}`` it replaces."""
    values: Annotated[tuple[Any, ...], Field(min_length=1)]
    """One per point: a value, or a list with one for each of several keys."""
    names: tuple[str, ...] = ()
    """Names of the points; by default their values."""
    form: str = ""
    """In place of names, how one is made of a point's values: ``{0}-{1}`` has the first and the
    second, thousands and millions with a letter, so that a scale that changes them changes the
    names."""
    only: tuple[Annotated[int, Field(ge=0)], ...] = ()
    """Positions that are run, from 0; so a scale can run fewer points beside the paper's
    figures."""
    log: bool = False
    """Whether the axis is logarithmic."""
    categories: bool = False
    """Whether the values are of different kinds, without a way from one to the next: bars then, not
    lines."""

    @model_validator(mode="after")
    def _fits(self) -> Axis:
        for value in self.values:
            if self.keys and len(_as_list(value)) != len(self.keys):
                raise ValueError(f"{value!r} must have a value for each of {', '.join(self.keys)}")
        if self.names and self.form:
            raise ValueError("names or form: points have one name")
        if self.names and len(self.names) != len(self.values):
            raise ValueError(f"{len(self.names)} names for {len(self.values)} values")
        for place, value in enumerate(self.values):
            try:
                self.name(place)
            except (LookupError, ValueError, AttributeError):
                raise ValueError(
                    f"form = {self.form!r} makes no name of {value!r}: {{0}} is its first value, "
                    "{1} the second"
                ) from None
        if self.only and max(self.only) >= len(self.values):
            raise ValueError(f"only: there are {len(self.values)} values, from position 0")
        if self.log and self.categories:
            raise ValueError("log: categories have no distance from each other")
        return self

    @property
    def places(self) -> tuple[int, ...]:
        """Positions of the values that are run."""
        return self.only or tuple(range(len(self.values)))

    def name(self, place: int) -> str:
        """Return what the point at position *place* is called."""
        if self.names:
            return self.names[place]
        if self.form:
            return self.form.format(*map(_short, _as_list(self.values[place])))
        return " / ".join(str(value) for value in _as_list(self.values[place]))


class Variant(_StudyPart):
    """One line of the figure."""

    set: dict[str, Any] = Field(default_factory=dict)
    """What it changes, keys as for ``--set``."""
    measure: str | None = None
    """Instead of the panel's."""
    label: str | None = None
    """What is measured, where it is not the panel's: a measured variant has another unit."""
    keys: tuple[str, ...] | None = None
    """Instead of the axis's, where its system calls a parameter by another name."""
    values: tuple[Any, ...] = ()
    """Instead of the axis's, one per position, where it calls them otherwise too."""
    only: tuple[Annotated[int, Field(ge=0)], ...] = ()
    """Positions of the axis at which it is run, of those that the axis runs; by default all."""
    per: Annotated[float, Field(gt=0)] = 1.0
    """What its values are divided by: watts, for what is done with a joule; or 1e-3, where the
    label has a thousandth of the measure's unit."""

    def settings(self, axis: Axis, place: int) -> dict[str, Any]:
        """Return what position *place* of *axis* sets of it."""
        keys = axis.keys if self.keys is None else self.keys
        value = self.values[place] if self.values else axis.values[place]
        return dict(zip(keys, _as_list(value), strict=False))


class Panel(_StudyPart):
    """One part of the figure."""

    name: str = ""
    """What it is called, where there are several."""
    set: dict[str, Any] = Field(default_factory=dict)
    """What it changes, keys as for ``--set``."""
    variants: tuple[str, ...] = ()
    """Names of the variants that it shows; by default all."""
    measure: str | None = None
    """What is measured, instead of the study's."""
    label: str | None = None
    """How that is called."""
    axis: Axis | None = None
    """Instead of the study's."""


class Paper(_StudyPart):
    """The paper's own figures."""

    of: Subject
    """A variant, or two: then their ratio."""
    values: tuple[float, ...]
    """One per value of the axis; NaN where the paper has none."""
    panel: PanelNames = ()
    """The panel that they are of, where there are several."""


class ReasonTrial(_StudyPart):
    """What was run to find out why a claim does not hold, and where its result is valid."""

    scale: Annotated[
        tuple[Literal[SCALES], ...],  # type: ignore[valid-type]
        BeforeValidator(_as_list),
        Field(min_length=1),
    ]
    """Scales that it was tried at."""
    panel: PanelNames = ()
    """Panels that it was tried at; by default all that the claim is about."""
    command: Annotated[str, Field(min_length=1)]
    """What was run."""


class PaperParameters(_StudyPart):
    """The sizes of a paper's figure, the largest where it has several."""

    window: int | None = Field(default=None, ge=1)
    """Tuples of a window that goes by count."""
    subwindow: int | None = Field(default=None, ge=1)
    """Tuples of a structure that is filled alone."""
    window_time: Nanoseconds | None = None
    """Of a window, or the bound of an interval, that goes by time."""
    threads: int | None = Field(default=None, ge=1)
    """Threads that share an index."""
    workers: int | None = Field(default=None, ge=1)
    """PEs, workers or replicas."""
    others: str = ""
    """What the paper says of other sizes, or that it does not say them."""


class Claim(_StudyPart):
    """A statement of the paper that can be true or false of what was measured."""

    text: str
    """The statement in words."""
    states: str = ""
    """The text of the study's claim that tests the same statement, where another one does: by
    simulation, say, where this one is about the machine's clock. This one is then judged as that
    one is, unless it says itself what must hold; its *at*, *paper* and *slack* count."""
    of: Subject
    """A variant, or two: then their ratio is meant."""
    panel: PanelNames = ()
    """Panels in which it is judged; by default all that have these variants."""
    at: tuple[int, ...] = ()
    """Positions of the axis, from 0; by default all."""
    scales: tuple[Literal[SCALES], ...] = ()  # type: ignore[valid-type]
    """Those at which it is judged; by default all, but not smoke where its values are measured:
    times of a few milliseconds say nothing about an algorithm."""
    above: bool = False
    """The first lies above the second at every x."""
    rises: bool = False
    """The values rise along x."""
    falls: bool = False
    """The values fall along x."""
    at_least: float | None = None
    """No value is less; with *at_most* a band."""
    at_most: float | None = None
    """No value is more."""
    near: Annotated[float, Field(gt=1)] | None = None
    """Each value is at most this many times as far above 1 as the paper's own number at its x, and
    the paper's at most this many times as far as the value. The numbers are those of the study's
    ``paper`` for the same variants; an x without one is not judged."""
    cases: Annotated[int, Field(ge=1)] | None = None
    """At how many x the bounds hold, at least; by default at all."""
    mean: bool = False
    """The bounds are for the mean of the values, where the paper has an average."""
    paper: float | None = None
    """The paper's own number, where it has one for the claim."""
    slack: Annotated[float, Field(ge=0, lt=1)] = 0.02
    """Share that counts as no difference: a step may go against the trend by it, or one value of
    the first lie below the second's; the whole trend, or the largest lead, must be more."""
    why: str = ""
    """Why it does not hold here, where that is known."""
    tried: ReasonTrial | None = None
    """What was run to find out: a reason is for the scales and panels it was tried at, and for no
    other."""

    @model_validator(mode="after")
    def _one_statement(self) -> Claim:
        bounds = (self.at_least, self.at_most)
        is_near = self.near is not None
        bounded = any(b is not None for b in bounds)
        if sum([self.above, self.rises, self.falls, is_near, bounded]) != 1:
            raise ValueError(
                "a claim states one of above, rises, falls, near, or at_least, at_most or both"
            )
        if None not in bounds and self.at_least > self.at_most:  # type: ignore[operator]
            raise ValueError(f"nothing is at least {self.at_least:g} and at most {self.at_most:g}")
        if self.above and len(self.of) != 2:
            raise ValueError("above needs two variants")
        if (self.mean or self.cases) and not bounded:
            raise ValueError("mean and cases are for claims of at_least, at_most or both")
        if self.mean and self.cases:
            raise ValueError("mean or cases: a mean is one number")
        return self

    @model_validator(mode="after")
    def _reason_was_tried(self) -> Claim:
        if bool(self.why) != (self.tried is not None):
            raise ValueError(
                f"claim {self.text!r}: why and tried belong together: a reason names the scale it "
                "is for and the command that was run to find it, tried = { scale = ..., command = "
                "... }"
            )
        return self

    @property
    def stated(self) -> str:
        """What it says of the values, in words, with the paper's number."""
        if self.at_least is not None and self.at_most is not None:
            words = f"{_bound(self.at_least)} to {_bound(self.at_most)}"
        elif self.at_least is not None:
            words = f"at least {_bound(self.at_least)}"
        elif self.at_most is not None:
            words = f"at most {_bound(self.at_most)}"
        elif self.near is not None:
            words = f"each 1/{self.near:g} to {self.near:g} times as far above 1 as the paper's"
        elif self.above:
            words = "the first above the second"
        else:
            words = "rises" if self.rises else "falls"
        if self.mean:
            words += " on average"
        if self.cases:
            words += f" in {self.cases} cases or more"
        return words + ("" if self.paper is None else f"; {format_value(self.paper)} in the paper")

    def reason(self, scale: str, panel: str) -> str:
        """Return why it does not hold at *scale* in *panel*, and how that was found; or nothing."""
        tried = self.tried
        if tried is None or scale not in tried.scale or (tried.panel and panel not in tried.panel):
            return ""
        # It names the other scales, but not the one whose figures it is about.
        about = [one for one in tried.scale if one not in self.why]
        elsewhere = about and scale not in about and f"{scale}, too" not in self.why
        seen = f"as seen at {' and '.join(about)} scale, " if elsewhere else ""
        return f"{seen}{self.why} (found by: {tried.command})"


def _bound(value: float) -> str:
    """Return a bound: with all its digits, unless it is of millions."""
    return f"{value:g}" if abs(value) < _LARGE else format_value(value)


class StudySection(_StudyPart):
    """A figure as many runs.

    In a file the section may also have ``words``, values by name: ``{name}`` stands for them in all
    its other names and texts. So a variant is called after the window that a scale gives it, and a
    scale changes sizes in one place.
    """

    axis: Axis
    """What is varied along x."""
    variants: Annotated[dict[str, Variant], Field(min_length=1)]
    """What is varied from line to line."""
    panels: Annotated[tuple[Panel, ...], Field(min_length=1)] = (Panel(),)
    """What is varied from panel to panel. In a file, ``measured`` are panels that come after these,
    which stay as they are where a scale has other panels."""
    measure: str
    """What is measured (see `scenarios.measures`)."""
    label: str
    """How that is called."""
    parts: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Parts of the system to measure as a whole: name to operators, or to single PEs."""
    repeat: Annotated[int, Field(ge=1, le=REPEATS_MAX)] = 1
    """With how many seeds every point is run, from the study's own on. Synthetic streams are drawn
    anew for each."""
    paper: tuple[Paper, ...] = ()
    """The paper's figures."""
    note: str = ""
    """Remarks on the comparison."""
    ran: PaperParameters | None = None
    """What the paper ran."""
    reduced: str = ""
    """What runs instead at this scale where that is less, and which ratio is as in the paper."""
    claims: tuple[Claim, ...] = ()
    """The paper's statements."""

    @model_validator(mode="before")
    @classmethod
    def _measured_panels(cls, values: Any) -> Any:
        if isinstance(values, dict) and "measured" in values:
            values = dict(values)
            measured = _as_list(values.pop("measured"))
            values["panels"] = _as_list(values.get("panels", {})) + measured
        return values

    @model_validator(mode="before")
    @classmethod
    def _judged_alike(cls, values: Any) -> Any:
        """Have a claim that only names what it states judged as the claim with that text."""
        claims = values.get("claims") if isinstance(values, dict) else None
        if not isinstance(claims, list) or not all(isinstance(one, dict) for one in claims):
            return values
        firsts = [one for one in claims if not one.get("states")]
        alike = []
        for claim in claims:
            if states := claim.get("states"):
                first = next((one for one in firsts if one.get("text") == states), None)
                if first is None:
                    raise ValueError(
                        f"claim {claim.get('text')!r}: no claim has the text {states!r}, whose "
                        "statement it is to test"
                    )
                if not claim.keys() & set(_STATED):
                    alike_in = (*_STATED, "at", "paper", "slack")
                    claim = {key: first[key] for key in alike_in if key in first} | claim
            alike.append(claim)
        return values | {"claims": alike}

    @model_validator(mode="after")
    def _known_names(self) -> StudySection:
        panels = {panel.name for panel in self.panels}
        variants = [name for panel in self.panels for name in panel.variants]
        stated: list[Paper | Claim | ReasonTrial] = [*self.paper, *self.claims]
        stated += [claim.tried for claim in self.claims if claim.tried]
        for one in stated:
            for name in one.panel:
                if name not in panels:
                    raise ValueError(f"there is no panel {name!r}; there are {sorted(panels)}")
            variants += () if isinstance(one, ReasonTrial) else one.of
        for name in variants:
            if name not in self.variants:
                raise ValueError(
                    f"there is no variant {name!r}; there are {', '.join(self.variants)}"
                )
        return self

    @model_validator(mode="after")
    def _fit_their_axis(self) -> StudySection:
        for panel in self.panels:
            axis = panel.axis or self.axis
            places = len(axis.values)
            for paper in self.paper:
                if self.is_about(paper, panel) and len(paper.values) != places:
                    raise ValueError(
                        f"paper, {' / '.join(paper.of)}: {len(paper.values)} figures for "
                        f"{places} values of the axis; nan where there is none"
                    )
            for name in panel.variants or tuple(self.variants):
                variant = self.variants[name]
                if variant.values and len(variant.values) != places:
                    raise ValueError(
                        f"variant {name!r}: {len(variant.values)} values for {places} of the axis"
                    )
                keys = axis.keys if variant.keys is None else variant.keys
                for value in variant.values or axis.values:
                    if len(_as_list(value)) < len(keys):
                        raise ValueError(
                            f"variant {name!r}: {value!r} must have a value for each of "
                            f"{', '.join(keys)}"
                        )
                if not set(variant.only) <= set(range(places)):
                    raise ValueError(
                        f"variant {name!r}: only: the axis has positions 0 to {places - 1}"
                    )
        return self

    @model_validator(mode="after")
    def _fit_their_panels(self) -> StudySection:
        for claim in self.claims:
            panels = [panel for panel in self.panels if self.is_about(claim, panel)]
            if len({panel.measure for panel in panels}) > 1:
                raise ValueError(
                    f"claim {claim.text!r} is about panels that measure different things: name "
                    f"which panel is meant, of {sorted(panel.name for panel in self.panels)}"
                )
            for panel in panels if claim.near is not None else ():
                numbers = list(self.numbers(claim, panel).values())
                if not numbers or min(numbers) <= 1:
                    raise ValueError(
                        f"claim {claim.text!r} is to be near the paper's own numbers, which are "
                        f"above 1; paper has {numbers} of {' / '.join(claim.of)}"
                    )
        return self

    def numbers(self, claim: Claim, panel: Panel) -> dict[int, float]:
        """Return the paper's own numbers of what *claim* is about: position of the axis to it."""
        return {
            place: value
            for paper in self.paper
            if paper.of == claim.of and self.is_about(paper, panel)
            for place, value in enumerate(paper.values)
            if not isnan(value) and (not claim.at or place in claim.at)
        }

    def is_about(self, statement: Paper | Claim, panel: Panel) -> bool:
        """Return whether *statement* is about *panel*: it is meant, and has the variants."""
        meant = not statement.panel or panel.name in statement.panel
        return meant and set(statement.of) <= set(panel.variants or self.variants)
