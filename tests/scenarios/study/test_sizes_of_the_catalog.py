"""What every study's axes, names and notes say of sizes is what its points run."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from joins.queries.parser import parse_query
from joins.queries.query import JoinQuery
from scenarios.config import RunConfig
from scenarios.study.section import Axis, PaperParameters
from scenarios.study.study import Point, Study
from tests.scenarios.study.test_claims_of_the_catalog import studies, study_of

SIZE = re.compile(r"2\^(\d+)|(?<![\w.,])(\d+(?:\.\d+)?)(K|M)(?!\w)")
WORKERS = ("po_join_pes", "pes", "replicas", "workers")
SCALES = ("smoke", "laptop", "paper")

FILLED_ONCE = "A window is two subwindows: none is ever full, and nothing expires."
PROBING = "S, which does not fill its own, probes it"
NEVER_FULL = {
    "panjoin-fig10": FILLED_ONCE,
    "panjoin-fig11": FILLED_ONCE,
    "panjoin-fig12": FILLED_ONCE,
    "panjoin-fig13": FILLED_ONCE,
    "panjoin-fig14": FILLED_ONCE,
    "panjoin-fig15e": PROBING,
    "panjoin-fig15f": PROBING,
    "spo-fig12": "too few to fill its own",
}
"""Studies with a stream shorter than its window on purpose, and what their notes say of it."""

SHORT = {"pim-fig12a": {"threads on this machine, wall time", "without control, processor time"}}
"""Lines of two points: as many threads are measured as the machine has cores, two."""


def query_of(config: RunConfig) -> JoinQuery | None:
    if not config.query:
        return None
    return parse_query(config.query).bind(**{k: str(v) for k, v in config.bind.items()})


def numbers(value: Any) -> Iterator[float]:
    """Return every number of a configuration, also those inside its texts."""
    if isinstance(value, dict):
        for one in value.values():
            yield from numbers(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from numbers(one)
    elif isinstance(value, str):
        yield from map(float, re.findall(r"\d+(?:\.\d+)?", value))
    elif isinstance(value, (int, float)):
        yield float(value)


def sizes_in(text: str) -> list[tuple[str, set[float]]]:
    """Return each size that a name has, and what it may stand for: K is 1,000 or 1,024."""
    found = []
    for match in SIZE.finditer(text):
        power, number, letter = match.groups()
        if power:
            found.append((match[0], {float(power), 2.0 ** int(power)}))
        else:
            steps = {"K": 1, "M": 2}[letter]
            found.append((match[0], {float(number) * base**steps for base in (1000, 1024)}))
    return found


def named_points(study: Study) -> Iterator[tuple[str, list[Point]]]:
    """Return a panel's, a variant's or a position's name and a point that has it."""
    points = {point.number: point for point in study.points}
    for chart in study.charts:
        for curve in chart.curves:
            for place, repeated in zip(chart.axis.places, curve.points, strict=True):
                if repeated:
                    mine = [points[number] for number in repeated]
                    moves = curve_moves(study, curve.variant, chart.axis)
                    axis = None if not moves or "selectivity" in chart.axis.label else chart.axis
                    yield chart.panel.name, mine
                    yield curve.variant, mine
                    yield axis.name(place) if axis else "", mine


def curve_moves(study: Study, variant: str, axis: Axis) -> bool:
    """Return whether a variant is run anew at each position, and not drawn as a level."""
    keys = study.section.variants[variant].keys
    return bool(axis.keys if keys is None else keys)


@pytest.mark.parametrize(("name", "scale"), list(studies(*SCALES)))
def test_a_size_in_a_name_is_the_size_that_ran(name: str, scale: str) -> None:
    study = study_of(name, scale)
    for text, points in named_points(study):
        for size, may_be in sizes_in(text):
            for point in points:
                config = point.config.model_dump(exclude={"scales", "name", "title", "figure"})
                ran = set(numbers(config))
                close = any(abs(one - value) <= 0.01 * value for one in ran for value in may_be)
                assert close, f"{text!r}: nothing in {point.label!r} is {size}"


@pytest.mark.parametrize(("name", "scale"), list(studies(*SCALES)))
def test_no_axis_is_labelled_with_sizes_that_did_not_run(name: str, scale: str) -> None:
    study = study_of(name, scale)
    assert not [c.axis.label for c in study.charts if c.axis.label.endswith("in the paper")]


@pytest.mark.parametrize(("name", "scale"), list(studies(*SCALES)))
def test_no_stream_is_shorter_than_its_window(name: str, scale: str) -> None:
    study = study_of(name, scale)
    short = [text for point in study.points for text in short_streams(point)]
    if name in NEVER_FULL:
        assert short
        assert NEVER_FULL[name] in study.section.note
    else:
        assert short == []


def short_streams(point: Point) -> Iterator[str]:
    """Return a sentence for each stream of a point that never fills its own window."""
    config, query = point.config, query_of(point.config)
    if config.survey or query is None or query.interval:
        return
    for stream, window in zip(config.streams, query.windows, strict=True):
        known = [config.rows, stream.synthetic.rows if stream.synthetic else None]
        rows = min((count for count in known if count is not None), default=None)
        if window.kind == "count" and rows is not None and rows < window.length:
            yield f"{point.label}: {stream.name} has {rows} tuples, its window {window.length}"


@pytest.mark.parametrize(("name", "scale"), list(studies("smoke")))
def test_a_line_has_three_points(name: str, scale: str) -> None:
    study = study_of(name, scale)
    few = {
        curve.variant
        for chart in study.charts
        for curve in chart.curves
        if sum(map(bool, curve.points)) < 3
    }
    assert few == SHORT.get(name, set())


def ran_by_clock(study: Study) -> dict[str, dict[str, int]]:
    """Return the largest sizes that were run in virtual time, and on this machine's clock."""
    points = {point.number: point.config for point in study.points}
    largest: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for chart in study.charts:
        for curve in chart.curves:
            for number in (number for repeated in curve.points for number in repeated or ()):
                for size, value in sizes_of(points[number]).items():
                    sizes = largest["real" if curve.kind == "measured" else "virtual"]
                    sizes[size] = max(sizes[size], value)
    return largest


def sizes_of(config: RunConfig) -> dict[str, int]:
    if config.survey is not None:
        sizes = {}
        if "window_bits" in type(config.survey).model_fields:
            sizes["window"] = 1 << config.survey.window_bits  # type: ignore[union-attr]
        if "tuples" in type(config.survey).model_fields:
            sizes["subwindow"] = config.survey.tuples  # type: ignore[union-attr]
        return sizes
    parameters, query = config.parameters, query_of(config)
    sizes = {"threads": parameters["threads"]} if parameters.get("threads") else {}
    workers = [parameters[key] for key in WORKERS if key in parameters]
    if workers:
        sizes["workers"] = max(workers)
    if query is not None and query.interval:
        clause = query.interval
        sizes["window_time"] = max(abs(clause.lower.ns), abs(clause.upper.ns))
    elif query is not None:
        for window in query.windows:
            if window.kind == "count":
                sizes["window"] = max(sizes.get("window", 0), window.length)
                sizes["subwindow"] = max(sizes.get("subwindow", 0), window.slide)
    return sizes


@pytest.mark.parametrize(("name", "scale"), list(studies("paper")))
def test_a_study_at_paper_scale_says_where_it_runs_less_than_the_paper(
    name: str, scale: str
) -> None:
    study = study_of(name, scale)
    if not re.match("Figure|Table", study.base.figure or ""):
        return  # not a figure of a paper
    paper = study.section.ran
    assert paper is not None, "what the paper ran is not written down"
    wanted = {
        key: value for key, value in paper.model_dump(exclude={"others"}, exclude_none=True).items()
    }
    assert wanted or paper.others, "neither a size nor a word about it"
    less = {
        f"{clock} {size}: {ran[size]} of {value}"
        for clock, ran in ran_by_clock(study).items()
        for size, value in wanted.items()
        if 0 < ran.get(size, 0) < value
    }
    assert bool(study.section.reduced) == bool(less), less or study.section.reduced


def test_less_than_the_paper_at_another_scale_needs_no_word() -> None:
    study = study_of("pim-fig13c", "smoke")
    assert study.section.reduced == ""


@pytest.mark.parametrize(
    ("values", "form", "name"),
    [
        (([1800, 18000, 6],), "{0}-{1}-{2}", "1.8K-18K-6"),
        (("1500",), "{0}", "1.5K"),
        (([2500000, "x"],), "{1} {0}", "x 2.5M"),
        ((700,), "{0}", "700"),
    ],
)
def test_a_name_is_made_of_the_values(values: tuple[Any, ...], form: str, name: str) -> None:
    keys = ("a", "b", "c")[: len(values[0]) if isinstance(values[0], list) else 1]
    assert Axis(label="x", keys=keys, values=values, form=form).name(0) == name


def test_names_and_a_form_for_them_are_refused_together() -> None:
    with pytest.raises(ValueError, match="names or form: points have one name"):
        Axis(label="x", values=(1,), names=("a",), form="{0}")


def test_paper_parameters_are_positive() -> None:
    with pytest.raises(ValueError, match="window"):
        PaperParameters(window=0)


def test_a_made_up_size_in_a_name_is_found() -> None:
    assert sizes_in("window of 2^12") == [("2^12", {12.0, 4096.0})]
    assert sizes_in("1.5K-15K") == [("1.5K", {1500.0, 1536.0}), ("15K", {15000.0, 15360.0})]
    assert sizes_in("KP-OIJ, θ = 1.5, M4") == []
