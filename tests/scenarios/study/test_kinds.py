"""What was simulated, measured or derived is marked so, in the study and wherever it is shown."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from actors.hosting.inline import Clock
from scenarios import scenario_files
from scenarios.config import RunConfig
from scenarios.many_runs import RunResult
from scenarios.report.result_tables import chart_table, claims_table
from scenarios.report.study_picture import kinds_key, study_picture
from scenarios.scenario_files import ConfigError
from scenarios.study.findings import Findings
from scenarios.study.study import KIND_WORDS, Study, kernel_clock, kind_of, load_study

STUDY = """
query = "SELECT s.id FROM s WHERE s.a1 > s.a2 WINDOW AS (SLIDE INTERVAL '10' ON '20')"
[[streams]]
files = ["s.parquet"]
[study]
measure = "throughput_tps"
label = "tuples/s (virtual)"
[study.words]
size = "2^6"
[study.axis]
label = "arrivals a message"
keys = ["feeding.batch_rows"]
values = [1, 2, 3]
[study.variants]
"run" = { only = [0, 1] }
"estimated" = { measure = "capacity_tps.total" }
[study.variants."window of {size}"]
set = { survey = { of = "window join speed", window_bits = 6, passes = 1 } }
measure = "tuples_s.median"
label = "tuples/s (processor time)"
keys = ["survey.batch_rows"]
values = [16, 64, 256]
[[study.claims]]
text = "larger batches in {size} are faster"
of = ["window of {size}"]
rises = true
"""


def load(tmp_path: Path, text: str = STUDY) -> Study:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    study = load_study(str(path))
    assert study is not None
    return study


def made(study: Study) -> Findings:
    """Return findings of records that are made up: a point's number times 100 for all measures."""
    results = {
        point.number: RunResult(
            config=point.config,
            record={
                "throughput_tps": 100.0 * point.number,
                "capacity_tps": {"total": 100.0 * point.number},
                "tuples_s": {"median": 100.0 * point.number},
            },
        )
        for point in study.points
    }
    return Findings(study=study, results=results)


def test_a_curve_knows_where_its_values_come_from(tmp_path: Path) -> None:
    (chart,) = load(tmp_path).charts
    assert [(curve.variant, curve.kind) for curve in chart.curves] == [
        ("run", "simulated"),
        ("estimated", "derived"),
        ("window of 2^6", "measured"),
    ]
    assert chart.label == "tuples/s (virtual); tuples/s (processor time)"
    assert chart.curve("run").points == ((1,), (2,), ())


@pytest.mark.parametrize(
    ("clock", "measure", "kind"),
    [
        ("virtual", "throughput_tps", "simulated"),
        ("virtual", "kernel_seconds.total", "measured"),
        ("virtual", "kernel_tps.total", "measured"),
        ("virtual", "capacity_tps.total", "derived"),
        ("virtual", "state_bytes.total", "simulated"),
        ("live", "throughput_tps", "measured"),
        ("live", "latency_ms.p99", "measured"),
        ("live", "pace_tps.3", "measured"),
        ("live", "pace_max_tps", "measured"),
        ("live", "execution.seconds", "measured"),
        ("live", "transmission.oij", "measured"),
        ("live", "balance.oij", "measured"),
        ("live", "collectors.longest_ms", "measured"),
        ("live", "collectors.most_tuples", "simulated"),
        ("live", "execution.bytes", "simulated"),
        ("live", "network.bytes", "simulated"),
    ],
)
def test_the_kind_of_a_run_follows_from_its_clock(clock: str, measure: str, kind: str) -> None:
    config = RunConfig.model_validate(
        {"query": "", "streams": (), "clock": clock, "backend": "ray"}
    )
    assert kind_of(config, measure) == kind


@pytest.mark.parametrize(
    ("measures", "clock"),
    [
        (["throughput_tps", "kernel_tps.total"], time.process_time),
        (["kernel_seconds.joiner"], time.process_time),
        (["throughput_tps", "wall_seconds"], time.perf_counter),
        ([], time.perf_counter),
    ],
)
def test_actors_are_timed_by_the_processor_where_a_study_draws_it_alone(
    measures: list[str], clock: Clock
) -> None:
    assert kernel_clock(measures) is clock


def test_tables_mark_what_was_not_simulated(tmp_path: Path) -> None:
    study = load(tmp_path)
    table = chart_table(made(study), study.charts[0])
    assert table.columns[1:] == ("run", "estimated [derived]", "window of 2^6 [measured]")
    assert [row[1] for row in table.rows] == ["100", "200", "–"]
    ((_, claim, _, _),) = claims_table(made(study)).rows
    assert claim == "larger batches in 2^6 are faster [measured]"


def test_json_has_kind_unit_and_machine(tmp_path: Path) -> None:
    written = made(load(tmp_path)).as_json("")
    (chart,) = written["charts"]
    assert [(one["kind"], one["unit"]) for one in chart["variants"]] == [
        ("simulated", "tuples/s (virtual)"),
        ("derived", "tuples/s (virtual)"),
        ("measured", "tuples/s (processor time)"),
    ]
    assert written["claims"][0]["kind"] == "measured"
    assert set(written["machine"]) == {"processor", "cores", "system"}
    json.dumps(written)


def test_a_study_of_simulations_alone_names_no_machine(tmp_path: Path) -> None:
    study = load(tmp_path, STUDY[: STUDY.index("[study.variants.")])
    assert made(study).as_json("")["machine"] is None
    assert not study.remarks


def test_the_picture_draws_kinds_apart_and_explains_them(tmp_path: Path) -> None:
    study = load(tmp_path)
    picture = study_picture(made(study))
    simulated, measured = (panel["layer"] for panel in picture.panels)
    dashes = {one["variant"]: tuple(one["dash"]) for one in simulated[0]["data"]["values"]}
    assert len(set(dashes.values())) == len(dashes) == 2
    assert {one["variant"] for one in measured[0]["data"]["values"]}.isdisjoint(dashes)
    fill = measured[1]["encoding"]["fill"]["condition"]
    assert fill == {"test": "datum.kind == 'measured'", "value": "var(--paper)"}
    for kind in ("measured", "derived"):
        assert KIND_WORDS[kind] in kinds_key(study, picture)


@pytest.mark.parametrize(("theirs", "drawn"), [(150, True), (9_000, False)])
def test_the_papers_marks_are_explained_where_they_are_drawn(
    tmp_path: Path, theirs: int, drawn: bool
) -> None:
    paper = f'[[study.paper]]\nof = ["estimated"]\nvalues = [nan, {theirs}, nan]\n'
    study = load(tmp_path, STUDY + paper)
    key = kinds_key(study, study_picture(made(study)))
    assert ("×: the paper's value" in key) == drawn


def test_what_is_measured_has_a_panel_and_an_axis_of_its_own(tmp_path: Path) -> None:
    picture = study_picture(made(load(tmp_path)))
    assert [panel["title"] for panel in picture.panels] == ["", "measured"]
    units = [" ".join(panel["layer"][1]["encoding"]["y"]["title"]) for panel in picture.panels]
    assert units == ["tuples/s (virtual)", "tuples/s (processor time)"]
    assert list(dict.fromkeys(picture.data["panel"])) == ["panel 1", "measured"]


def test_a_claim_is_judged_where_its_variants_are_run(tmp_path: Path) -> None:
    claim = '\n[[study.claims]]\ntext = "up"\nof = ["run"]\nrises = true\n'
    judged = made(load(tmp_path, STUDY + claim)).claims[1]
    assert (judged.holds, judged.detail, judged.kind) == (True, "100, 200", "simulated")


def test_a_measured_variant_is_not_set_against_a_simulated_one(tmp_path: Path) -> None:
    claim = '\n[[study.claims]]\ntext = "x"\nof = ["window of {size}", "run"]\nabove = true\n'
    with pytest.raises(ConfigError, match="one of window of 2\\^6 and run is measured"):
        load(tmp_path, STUDY + claim)


def test_points_of_one_curve_are_of_one_kind(tmp_path: Path) -> None:
    mixed = STUDY.replace(
        'keys = ["feeding.batch_rows"]\nvalues = [1, 2, 3]',
        'keys = ["clock", "backend"]\n'
        'values = [["virtual", "ray"], ["live", "ray"], ["live", "ray"]]',
    )
    with pytest.raises(ConfigError, match="some of its points are measured and some simulated"):
        load(tmp_path, mixed)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("values = [16, 64, 256]", "values = [16, 64]", "2 values for 3 of the axis"),
        ("only = [0, 1]", "only = [0, 9]", "the axis has positions 0 to 2"),
    ],
)
def test_a_variant_that_does_not_fit_the_axis_is_refused(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        load(tmp_path, STUDY.replace(old, new))


def test_what_runs_instead_of_the_papers_sizes_is_said(tmp_path: Path) -> None:
    text = STUDY.replace("[study]\n", '[study]\nreduced = "windows of {size} instead of 2^25"\n')
    study = load(tmp_path, text)
    assert study.remarks[0] == "Reduced, beside the paper: windows of 2^6 instead of 2^25."
    assert made(study).as_json("")["reduced"] == "windows of 2^6 instead of 2^25"


def test_every_figure_of_pim_tree_about_speed_has_a_measured_variant() -> None:
    speed = ["8a", "8b", "8c", "8d", "9a", "9c", "9d", "10a", "10b", "10c", "10d", "11b", "11c"]
    for part in [*speed, "9b", "12a", "12b", "12c", "13b", "13c", "14"]:
        figure = part if len(part.rstrip("abcd")) == 2 else f"0{part}"
        name = f"pim-fig{figure}"
        assert name in scenario_files.catalog()
        study = load_study(name, scale="smoke")
        assert study is not None
        assert study.is_measured, name


@pytest.mark.parametrize("number", ["10", "11", "12", "13"])
@pytest.mark.parametrize("scale", ["smoke", "laptop", "paper"])
def test_panjoins_structures_have_measured_panels_at_every_scale(number: str, scale: str) -> None:
    study = load_study(f"panjoin-fig{number}", scale=scale)
    assert study is not None
    panels = {
        chart.panel.name for chart in study.charts if {c.kind for c in chart.curves} == {"measured"}
    }
    assert len(panels) >= 2
    sizes = {one.config.survey.tuples for one in study.points if one.config.survey}  # type: ignore[union-attr]
    assert sizes == {{"smoke": 1 << 14, "laptop": 1 << 20, "paper": 1 << 23}[scale]}


def test_a_claim_is_judged_at_its_scales_alone(tmp_path: Path) -> None:
    claim = '\n[[study.claims]]\ntext = "up"\nof = ["run"]\nscales = ["paper"]\nrises = true\n'
    study = load(tmp_path, STUDY + claim)
    assert [one.claim.text for one in made(study).claims] == ["larger batches in 2^6 are faster"]
    assert len(made(replace(study, scale="paper")).claims) == 2


def test_what_is_measured_is_judged_at_smoke_scale_only_where_its_claim_says_so(
    tmp_path: Path,
) -> None:
    assert not made(replace(load(tmp_path), scale="smoke")).claims
    study = load(tmp_path, STUDY + 'scales = ["smoke"]\n')
    assert len(made(replace(study, scale="smoke")).claims) == 1
    assert not made(study).claims


@pytest.mark.parametrize(
    "name",
    [
        "oij-fig10",
        *(f"spo-fig{number}" for number in ("07", "08", "09", "11", "12", "14", "21", "22")),
    ],
)
def test_figures_of_systems_have_measured_variants_of_the_same_runs(name: str) -> None:
    study = load_study(name, scale="smoke")
    assert study is not None
    curves = [curve for chart in study.charts for curve in chart.curves]
    simulated = {at for curve in curves if curve.kind != "measured" for at in curve.points}
    clocked = [
        curve
        for curve in curves
        if curve.kind == "measured" and curve.measures[0].startswith("kernel_")
    ]
    assert clocked
    assert {at for curve in clocked for at in curve.points} <= simulated
