"""Every study runs at smoke scale, and the claims that hold are those of the committed record.

A change that makes a claim hold or fail is seen here; where it is meant,
``python -m tests.scenarios.study.smoke_claims`` writes the record anew. A claim that holds of what
came out must fail where two curves are swapped or one is flattened.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from scenarios.streams import SAMPLES
from scenarios.study.findings import Findings
from scenarios.study.judging import Estimate, Estimates, Finding, judge_claim
from tests.scenarios.study import smoke_claims

RECORD = smoke_claims.read_record()
ALSO_STEADY = (*smoke_claims.interval_joins(smoke_claims.OF_LATENCY), *smoke_claims.STEADY)
"""Studies that `test_steady_state` runs and checks, for what else it looks at in their runs."""
RUN_HERE = [name for name in smoke_claims.studies() if name not in ALSO_STEADY]
IN_MEMORY = [name for name in RUN_HERE if not smoke_claims.needs_spark(name)]
BY_SPARK = [name for name in RUN_HERE if smoke_claims.needs_spark(name)]
REWRITE = "if that is meant: python -m tests.scenarios.study.smoke_claims"


def check(name: str) -> Findings:
    """Run a study, check its claims, and return what came out."""
    findings = smoke_claims.run(name)
    assert smoke_claims.words_of(findings) == RECORD[name], f"{REWRITE} {name}"
    for finding in findings.claims:
        if finding.holds:
            check_it_notices(findings, finding)
    return findings


def check_it_notices(findings: Findings, finding: Finding) -> None:
    """Perturb the curves of a claim that holds: swap two, flatten one; else scale the first."""
    claim, study = finding.claim, findings.study
    (chart,) = (one for one in study.charts if one.panel.name == finding.panel)
    curves, first = findings.curves(chart), claim.of[0]

    def holds(**perturbed: Estimates) -> bool | None:
        run = chart.positions_run(claim.of)
        places = [chart.axis.places[i] for i in run]
        values = {name: [(curves | perturbed)[name][i] for i in run] for name in claim.of}
        numbers = study.section.numbers(claim, chart.panel)
        return judge_claim(claim, finding.panel, values, places, "", numbers).holds

    if claim.rises or claim.falls:
        flat = {name: [curves[name][0]] * len(curves[name]) for name in claim.of}
        assert holds(**flat) is not True, f"{claim.text}: it holds of flat curves, too"
    elif claim.above or claim.near:
        a, b = claim.of
        swapped = {a: curves[b], b: curves[a]}
        assert holds(**swapped) is not True, f"{claim.text}: it holds with both curves swapped"
    else:
        others = ({first: [change(one) for one in curves[first]]} for change in (nothing, thrice))
        noticed = [holds(**one) is not True for one in others]
        assert any(noticed), f"{claim.text}: it holds of nothing and of thrice as much"


def nothing(estimate: Estimate | None) -> Estimate | None:
    return estimate and replace(estimate, samples=(0.0,) * len(estimate.samples))


def thrice(estimate: Estimate | None) -> Estimate | None:
    return estimate and replace(estimate, samples=tuple(3 * v or 1.0 for v in estimate.samples))


@pytest.mark.parametrize("name", IN_MEMORY)
def test_the_claims_that_hold_are_those_of_the_record(name: str) -> None:
    check(name)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Have a folder for what Spark prepares: studies select the same rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JOINSIM_PREPARED", str(tmp_path_factory.mktemp("prepared")))
        yield


@pytest.mark.parametrize("name", BY_SPARK)
def test_those_that_hold_of_selected_rows_are_too(name: str, spark: Any, prepared: None) -> None:
    check(name)


@pytest.mark.parametrize("name", smoke_claims.ON_OTHER_DATA)
def test_a_study_is_left_out_only_where_its_data_does_not_come_with_joinsim(name: str) -> None:
    samples = {path.name for path in SAMPLES.glob("*.parquet")}
    assert any(
        stream.files and not samples & set(stream.files)
        for point in smoke_claims.load_simulated(name).points
        for stream in point.config.streams
    )


def test_the_record_is_of_the_catalogs_studies() -> None:
    assert list(RECORD) == sorted(smoke_claims.studies())
