"""Every claim of every study holds of some results, and does not of results that break it.

Nothing is run: records are made up for the points of the study, with measures in the range that
they can have at all. A claim that no such record breaks would say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import inf
from typing import Any

import pytest

from scenarios import scenario_files
from scenarios.many_runs import RunResult
from scenarios.study.findings import Findings
from scenarios.study.section import Claim
from scenarios.study.study import Chart, Study, load_study

SHARES = ("correctness", "balance", "row_balance", "transmission", "approximation")
LIMITS = dict.fromkeys(SHARES, (0, 1)) | {
    "share": (0, 100),
    "written_percent": (0, 100),
    "fullest_percent": (0, 100),
    "idle_percent": (0, 100),
}
"""Measure to the values it can have; any other is from 0 on."""

Values = Sequence[float]


@cache
def study_of(name: str, scale: str) -> Study:
    study = load_study(name, scale=scale)
    assert study is not None
    return study


def studies(*scales: str) -> Iterator[Any]:
    """Yield the catalog's studies at *scales*, for tests that run in one process: it reads each."""
    for name in filter(scenario_files.is_study, scenario_files.catalog()):
        for scale in scales:
            marks = pytest.mark.xdist_group("catalog")
            yield pytest.param(name, scale, id=f"{name}-{scale}", marks=marks)


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A claim in a panel, and what can be made up for it."""

    study: Study
    claim: Claim
    chart: Chart

    @property
    def places(self) -> list[int]:
        """Indexes into the curves of what the claim is about."""
        at, places = self.claim.at, self.chart.axis.places
        run = self.chart.positions_run(self.claim.of)
        if self.claim.near is not None:
            return [i for i in run if places[i] in self.numbers]
        return [i for i in run if not at or places[i] in at]

    @property
    def numbers(self) -> dict[int, float]:
        """The paper's own numbers of what the claim is about, by position of the axis."""
        return self.study.section.numbers(self.claim, self.chart.panel)

    @property
    def own(self) -> list[float]:
        """Those at its places, where there are any."""
        places = (self.chart.axis.places[i] for i in self.places)
        return [self.numbers[place] for place in places if place in self.numbers]

    @property
    def limits(self) -> tuple[float, float]:
        """Least and greatest value of what the first variant measures."""
        _, measure = self.keys(self.claim.of[0])[0]
        return next((LIMITS[part] for part in measure.split(".") if part in LIMITS), (0, inf))

    def holds(self, *curves: Values, failed: int = 0) -> Any:
        """Judge the claim of *curves* of its variants, at its places; *failed* is a point's.

        Where both variants are one number, it is the second's.
        """
        made: dict[tuple[int | None, str], float] = {}
        for name, values in zip(self.claim.of, curves, strict=True):
            for i, value in zip(self.places, values, strict=True):
                made[self.keys(name)[i]] = value * self.chart.curve(name).per
        results = {}
        for point in self.study.points:
            record: dict[str, Any] = {}
            for key in self.looked_up[point.number] if point.number != failed else ():
                _, measure = key
                _put(record, measure, made.get(key))
                # Of so many a share has a narrow interval.
                record["tuples"] = 10**9
                record.setdefault("verdict", {})["expected"] = 10**9
            results[point.number] = RunResult(config=point.config, record=record)
        (finding,) = Findings(study=self.study, results=results).claims
        return finding.holds

    @cached_property
    def looked_up(self) -> dict[int, list[tuple[int, str]]]:
        """Point to what curves look up of it: the number of its first repetition and a measure."""
        found: dict[int, list[tuple[int, str]]] = {point.number: [] for point in self.study.points}
        for curve in self.chart.curves:
            for numbers, measure in zip(curve.points, curve.measures, strict=True):
                for number in numbers:
                    found[number].append((numbers[0], measure))
        return found

    def keys(self, variant: str) -> list[tuple[int | None, str]]:
        """Return what a variant looks up along x: a point's number and a measure."""
        curve = next(curve for curve in self.chart.curves if curve.variant == variant)
        numbers = (numbers[0] if numbers else None for numbers in curve.points)
        return list(zip(numbers, curve.measures, strict=True))

    def alike(self, i: int) -> list[bool]:
        """Return at which places the first variant is the same number as at the claim's *i*-th."""
        keys = self.keys(self.claim.of[0])
        return [keys[place] == keys[self.places[i]] for place in self.places]

    def is_base(self, i: int) -> bool:
        """Return whether the first variant's *i*-th number is one of the second's."""
        keys = self.keys(self.claim.of[0])
        return len(self.claim.of) == 2 and keys[self.places[i]] in self.keys(self.claim.of[1])


def _put(record: dict[str, Any], measure: str, value: float | None) -> None:
    *sections, last = measure.split(".")
    for section in sections:
        record = record.setdefault(section, {})
    record[last] = value


def _alone(study: Study, claim: Claim, chart: Chart) -> Study:
    """Return *study* with nothing but one claim in one panel."""
    section = study.section.model_copy(update={"claims": (claim,)})
    return replace(study, section=section, charts=(chart,))


def judged(study: Study, claim: Claim) -> list[Judged]:
    """Return the panels in which a claim has numbers enough to be judged."""
    panels = [
        Judged(study=_alone(study, claim, chart), claim=claim, chart=chart)
        for chart in study.charts
        if study.section.is_about(claim, chart.panel)
    ]
    assert panels, "the claim is about no panel"
    needed = 2 if claim.rises or claim.falls else 1
    there = [one for one in panels if len(one.places) >= needed]
    if study.scale != "smoke":  # which leaves out most of the points
        assert there == panels, "the claim is about positions that are not run"
    return [one for one in there if study.judges(claim, one.chart)]


@pytest.mark.parametrize(("name", "scale"), list(studies("smoke", "laptop", "paper")))
def test_claims_hold_of_some_results_and_are_broken_by_others(name: str, scale: str) -> None:
    study, wrong = study_of(name, scale), []
    for claim in study.section.claims:
        try:
            check(study, claim)
        except AssertionError as error:
            wrong.append(f"{claim.text}: {error}")
    assert wrong == []


def check(study: Study, claim: Claim) -> None:
    for one in judged(study, claim):
        if claim.above:
            check_above(one)
        elif claim.rises or claim.falls:
            check_trend(one)
        elif claim.near is not None:
            check_near(one)
        else:
            check_one_band_is_enough(one)
            check_a_tie_is_told_apart(claim)
            for bound in ("at_least", "at_most"):
                if getattr(claim, bound) is not None:
                    check_bound(one, at_least=bound == "at_least")
        failed, _ = one.keys(claim.of[0])[one.places[0]]
        assert failed is not None  # it is run there
        assert one.holds(*[[1.0] * len(one.places)] * len(claim.of), failed=failed) is None


def check_above(one: Judged) -> None:
    """Swap the two curves, at one place and at all; let them coincide, or hardly differ."""
    count = len(one.places)
    high, low, same = [0.9] * count, [0.3] * count, [0.6] * count
    assert one.holds(high, low) is True
    assert one.holds(low, high) is False
    assert one.holds(same, same) is False
    hardly = [0.6 * (1 + 0.9 * one.claim.slack)] * count
    assert one.holds(hardly, same) is False, "a difference within the slack is none"
    for i in range(count):
        crossed = [high.copy(), low.copy()]
        crossed[0][i] = 0.5 * low[i]
        assert one.holds(*crossed) is False, f"they cross at {i}"


def check_trend(one: Judged) -> None:
    """Turn the curve round, flatten it, and let one step go against it."""
    assert one.claim.slack <= 0.05, "a step of more than 5 % against a trend is one"
    count = len(one.places)
    steps = [0.2 + 0.6 * i / (count - 1) for i in range(count)]
    along, against = (steps, steps[::-1]) if one.claim.rises else (steps[::-1], steps)
    # Of a ratio the second goes the other way, in case the first is one and the same point.
    wanted, turned = ([along, against], [against, along])
    flat = [[0.5] * count] * 2
    curves = len(one.claim.of)
    assert one.holds(*wanted[:curves]) is True
    assert one.holds(*turned[:curves]) is False
    assert one.holds(*flat[:curves]) is False
    for i in range(1, count - 1):
        bent = [list(curve) for curve in wanted[:curves]]
        bent[0][i] = bent[0][-1] * 1.5 if one.claim.rises else bent[0][-1] * 0.5
        if curves == 2:
            bent[1][i] = bent[1][-1]
        assert one.holds(*bent) is False, f"a step back at {i}"


def check_near(one: Judged) -> None:
    """Take the paper's own numbers; flatten and reverse them; move each out of its band."""
    claim, own = one.claim, one.own
    near = claim.near
    assert near is not None
    assert len(claim.of) == 2, "what lies above 1 is a ratio"
    assert min(own) > 1, "what lies above 1 is compared"
    second = [0.25] * len(own)

    def holds(ratios: Values) -> Any:
        return one.holds([0.25 * ratio for ratio in ratios], second)

    def bands() -> Iterator[tuple[float, float]]:
        for number in own:
            low, high = 1 + (number - 1) / near, 1 + (number - 1) * near
            yield low * (1 - 2 * claim.slack), high * (1 + 2 * claim.slack)

    assert holds(own) is True
    for other in (own[::-1], *([flat] * len(own) for flat in own)):
        if any(not low <= one <= high for one, (low, high) in zip(other, bands(), strict=True)):
            assert holds(other) is False, f"{other} in the place of {own}"
    for i, band in enumerate(bands()):
        for beyond in band:
            assert holds([*own[:i], beyond, *own[i + 1 :]]) is False, f"out of its band at {i}"


def check_one_band_is_enough(one: Judged) -> None:
    """Refuse one band for several numbers of the paper that are not alike."""
    own = [] if one.claim.mean else one.own
    if own and None not in (one.claim.at_least, one.claim.at_most):
        assert max(own) <= 1.2 * min(own), f"each of {own} is to have a band of its own: near"


def check_a_tie_is_told_apart(claim: Claim) -> None:
    """Refuse a band around a ratio of the paper that no difference, or any, would keep."""
    if claim.paper is None or len(claim.of) == 1:
        return
    low = -inf if claim.at_least is None else claim.at_least
    high = inf if claim.at_most is None else claim.at_most
    if claim.paper == 1:
        assert low in (-inf, 1) or low >= 0.8, "about the same is 0.8 to 1.25"
        assert high in (inf, 1) or high <= 1.25, "about the same is 0.8 to 1.25"
    else:
        assert not low <= 1 <= high, f"{claim.paper} in the paper, and 1 would hold"


def check_bound(one: Judged, *, at_least: bool) -> None:
    """Move the value past the bound, at one place and at all, as far as its measure goes."""
    claim, count = one.claim, len(one.places)
    bound = claim.at_least if at_least else claim.at_most
    assert bound is not None
    low, high = one.limits
    if len(claim.of) == 1:
        within = bound
        beyond = max(low, 0.4 * bound) if at_least else min(high, 2 * bound + 1)
        second: list[list[float]] = []
    else:
        second = [[0.25 / max(1, bound)] * count]
        within = bound * second[0][0]
        beyond = within * (0.4 if at_least else 2) + (0 if at_least else 1e-3)
    assert one.holds([within] * count, *second) is True
    assert one.holds([beyond] * count, *second) is False, f"{beyond} of {low} to {high} breaks it"
    if claim.cases:
        # Places that are one and the same number come last: they cannot be moved one by one.
        order = sorted(range(count), key=lambda i: sum(one.alike(i)))
        for kept in (claim.cases, claim.cases - 1):
            broken = order[: count - kept]
            moved = [beyond if i in broken else within for i in range(count)]
            assert one.holds(moved, *second) is (kept == claim.cases), f"kept in {kept} cases"
        return
    for i in range(0 if claim.mean else count):
        if not one.is_base(i):
            moved = [beyond if alike else within for alike in one.alike(i)]
            assert one.holds(moved, *second) is False, f"past the bound at {i}"
