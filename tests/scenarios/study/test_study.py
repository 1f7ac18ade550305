from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scenarios import scenario_files
from scenarios.many_runs import RunResult
from scenarios.plan import make_parameters
from scenarios.scenario_files import ConfigError
from scenarios.study.findings import Findings
from scenarios.study.study import Study, load_study
from tests.scenarios.study.test_claims_of_the_catalog import studies, study_of
from topologies import find_topology

BASE = """
query = "SELECT s.id FROM s WHERE s.a1 > s.a2 AND s.b1 < s.b2 WINDOW AS (SLIDE INTERVAL 'D' ON 'W')"
bind = { D = 10, W = 20 }
topology = "spo_join"
parameters = { po_join_pes = 3 }
[[streams]]
files = ["s.parquet"]
"""
STUDY = """
[study]
measure = "latency_ms.p{x}"
label = "latency"
[study.axis]
label = "sizes"
keys = ["bind.D", "bind.W"]
values = [[10, 20], [20, 40], [30, 60]]
[study.variants]
"plain" = {}
"same run" = { measure = "throughput_tps" }
"other" = { set = { topology = "split_join", index = "b_plus_tree" } }
[scales.smoke]
study.axis.only = [0, 2]
"""


def load(tmp_path: Path, text: str = BASE + STUDY, **arguments: Any) -> Study:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    study = load_study(str(path), **arguments)
    assert study is not None
    return study


@pytest.mark.parametrize(
    ("key", "value", "curves"),
    [
        ("rows", 9, None),
        ("index", "sorted_array", "other"),
        ("bind.D", 5, "plain, same run, other"),
        ("topology", "bchj", "other"),
    ],
)
def test_a_setting_that_the_study_has_a_value_of_its_own_for_is_said_to_have_no_effect(
    key: str, value: Any, curves: str | None, tmp_path: Path
) -> None:
    study = load(tmp_path, settings={key: value})
    said = [remark for remark in study.remarks if "has no effect" in remark]
    expected = f"The study sets {key} itself in {curves}: your value has no effect there."
    assert said == ([expected] if curves else [])
    assert not [one for one in load(tmp_path).remarks if "has no effect" in one]


def test_runs_of_equal_configuration_are_one_point(tmp_path: Path) -> None:
    study = load(tmp_path)
    (chart,) = study.charts
    plain, same, other = chart.curves
    assert plain.points == same.points == ((1,), (2,), (3,))
    assert other.points == ((4,), (5,), (6,))
    assert len(study.points) == 6
    assert study.topologies == ["spo_join", "split_join"]


def test_keys_of_the_axis_move_together_and_win_over_the_base(tmp_path: Path) -> None:
    study = load(tmp_path)
    assert [point.config.bind for point in study.points[:3]] == [
        {"D": 10, "W": 20},
        {"D": 20, "W": 40},
        {"D": 30, "W": 60},
    ]


def test_parameters_stay_with_their_own_system(tmp_path: Path) -> None:
    study = load(tmp_path)
    assert study.points[0].config.parameters == {"po_join_pes": 3}
    assert study.points[3].config.parameters == {"index": "b_plus_tree"}


def test_a_scale_can_keep_some_of_the_points(tmp_path: Path) -> None:
    study = load(tmp_path, scale="smoke")
    (chart,) = study.charts
    assert chart.axis.places == (0, 2)
    assert [point.config.bind["D"] for point in study.points[:2]] == [10, 30]


def test_an_axis_without_keys_chooses_what_is_measured(tmp_path: Path) -> None:
    text = BASE + STUDY.replace('keys = ["bind.D", "bind.W"]\n', "").replace(
        "[[10, 20], [20, 40], [30, 60]]", "[50, 75, 95]"
    )
    study = load(tmp_path, text)
    plain = study.charts[0].curves[0]
    assert plain.points == ((1,), (1,), (1,))
    assert plain.measures == ("latency_ms.p50", "latency_ms.p75", "latency_ms.p95")


def test_a_word_alone_is_what_it_stands_for_and_within_a_text_its_name(tmp_path: Path) -> None:
    text = BASE + STUDY.replace("values = [[10, 20], [20, 40], [30, 60]]", 'values = "{sizes}"')
    text = text.replace('label = "sizes"', 'label = "sizes, {unit}"')
    text += '[study.words]\nsizes = [[1, 5], [2, 5]]\nunit = "K"\n'
    axis = load(tmp_path, text).section.axis
    assert (axis.values, axis.label) == (([1, 5], [2, 5]), "sizes, K")


def test_a_variant_may_be_called_by_a_word_that_is_a_number(tmp_path: Path) -> None:
    text = (BASE + STUDY).replace('"plain" = {}', '"{window}" = {}')
    claim = '[[study.claims]]\ntext = "x"\nof = ["{window}"]\nrises = true\n'
    section = load(tmp_path, f"{text}{claim}[study.words]\nwindow = 500\n").section
    assert "500" in section.variants
    assert section.claims[-1].of == ("500",)


def test_values_per_watt_are_the_measured_ones_over_the_watts(tmp_path: Path) -> None:
    text = STUDY.replace('"plain" = {}', '"plain" = { measure = "throughput_tps", per = 7.5 }')
    study = load(tmp_path, BASE + text)
    record = {"throughput_tps": 30.0, "latency_ms": {}}
    results = {one.number: RunResult(config=one.config, record=record) for one in study.points}
    chart = replace(study.charts[0], curves=study.charts[0].curves[:2])
    plain, same = Findings(study=study, results=results).curves(chart).values()
    assert [one and one.mean for one in plain] == [4.0, 4.0, 4.0]
    assert [one and one.mean for one in same] == [30.0, 30.0, 30.0]


def test_what_this_machine_takes_is_measured_in_turns(tmp_path: Path) -> None:
    text = BASE + STUDY.replace("latency_ms.p{x}", "throughput_tps")
    text += """
[study.variants.clocked]
measure = "wall_seconds"
[[study.claims]]
text = "longer windows take longer"
of = ["clocked"]
rises = true
"""
    study = load(tmp_path, text)
    *_, clocked = study.charts[0].curves
    assert clocked.kind == "measured"
    assert clocked.points == ((1, 7, 8, 9, 10), (2, 11, 12, 13, 14), (3, 15, 16, 17, 18))
    later = [7, 11, 15, 8, 12, 16, 9, 13, 17, 10, 14, 18]
    assert [point.number for point in study.in_turns] == [1, 2, 3, 4, 5, 6, *later]
    assert load(tmp_path, text, scale="smoke").charts[0].curves[-1].points == ((1,), (2,))
    assert load(tmp_path, text, settings={"repeat": 1}).charts[0].curves[-1].points[0] == (1,)

    def judged(*seconds: Sequence[float]) -> str:
        """Judge the claim where the turns of each point took so long."""
        first = [turns[0] for turns in seconds] + [0.0] * 3
        taken_s = [*first, *(taken for turns in seconds for taken in turns[1:])]
        record = {"throughput_tps": 30.0}
        results = {
            number: RunResult(config=study.base, record=record | {"wall_seconds": taken})
            for number, taken in enumerate(taken_s, 1)
        }
        findings = Findings(study=study, results=results)
        (claim,) = findings.claims
        chart = findings.as_json("")["charts"][0]
        assert chart["variants"][-1]["intervals"]
        assert chart["variants"][0]["intervals"] is None
        assert "5 turns" in " ".join(findings.remarks)
        return "undecided" if claim.undecided else str(claim.holds)

    around = [0.0, 0.1, 0.0, 0.1, 0.2]
    ones, twos, threes = ([level + more for more in around] for level in (1, 2, 3))
    assert judged(ones, twos, threes) == "True"
    assert judged(threes, twos, ones) == "False"
    assert judged(ones, [2.0, 1.0, 3.0, 1.0, 3.0], [3.0, 1.0, 3.0, 1.0, 3.0]) == "undecided"


def test_a_repeated_study_runs_every_point_with_seeds_of_their_own(tmp_path: Path) -> None:
    study = load(tmp_path, settings={"repeat": 3})
    plain, same, other = study.charts[0].curves
    assert plain.points == same.points == ((1, 2, 3), (4, 5, 6), (7, 8, 9))
    assert other.points[0] == (10, 11, 12)
    assert [point.config.seed for point in study.points[:6]] == [1, 2, 3, 1, 2, 3]
    assert [point.label for point in study.points[:2]] == [
        "plain, 10 / 20, seed 1",
        "plain, 10 / 20, seed 2",
    ]
    assert load(tmp_path, settings={"study.repeat": "3", "seed": 7}).points[2].config.seed == 9
    with pytest.raises(ConfigError, match=r"repeat = 0: .* greater than or equal to 1"):
        load(tmp_path, settings={"repeat": 0})


@pytest.mark.parametrize("name", ["oij-fig10", "semijoin-fig07", "panjoin-fig10f"])
def test_synthetic_streams_are_drawn_anew_for_every_seed_and_are_never_alike(name: str) -> None:
    study = load_study(name, scale="smoke", settings={"repeat": 100})
    assert study is not None
    numbers = study.charts[0].curves[0].points[0]
    repeated = [study.points[number - 1].config for number in numbers]
    drawn = [
        seed
        for config in repeated
        for stream in config.streams
        if stream.synthetic
        for seed in stream.synthetic.seeds
    ]
    assert len(set(drawn)) == len(drawn) >= 200


def test_a_study_with_a_changed_parameter_is_another_experiment(tmp_path: Path) -> None:
    assert not load(tmp_path).changed
    assert not load(tmp_path, settings={"repeat": 2, "seed": 3, "backend": "ray"}).changed
    assert load(tmp_path, settings={"feeding.batch_rows": 7}).changed
    assert load(tmp_path, settings={"po_join_pes": 4}).changed


def test_settings_reach_every_point(tmp_path: Path) -> None:
    study = load(tmp_path, settings={"feeding.batch_rows": 7})
    assert {point.config.feeding.batch_rows for point in study.points} == {7}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[20, 40]", "[20]", "must have a value for each of bind.D, bind.W"),
        ('["bind.D", "bind.W"]', '["bind.W"]', r"\[10, 20\] must have a value for each of bind.W"),
        ('"plain" = {}', '"plain" = { values = [1, 2, 3] }', "'plain': 1 must have a value"),
        ('label = "latency"', 'labels = "latency"', "labels: there is no such key"),
        ('label = "sizes"', 'label = "sizes"\nform = "{2}"', r"'\{2\}' makes no name of"),
        ('label = "sizes"', 'label = "sizes"\nform = "{"', r"'\{' makes no name of"),
        ("only = [0, 2]", "only = [0, 3]", "there are 3 values"),
        ('label = "latency"', 'label = "latency"\nmeasured = 3', "panels.1 = 3: a section"),
        (
            "[scales.smoke]",
            '[[study.claims]]\ntext = "x"\nof = ["plane"]\nrises = true\n[scales.smoke]',
            "there is no variant 'plane'",
        ),
        (
            "[scales.smoke]",
            '[[study.paper]]\nof = ["plain"]\nvalues = [1]\n[scales.smoke]',
            "1 figures for 3 values",
        ),
        (
            "[scales.smoke]",
            '[[study.claims]]\ntext = "x"\nof = ["plain"]\nnear = 1.5\n[scales.smoke]',
            r"above 1; paper has \[\] of plain",
        ),
        (
            "[scales.smoke]",
            '[[study.claims]]\ntext = "x"\nof = ["plain"]\nnear = 1.5\n'
            '[[study.paper]]\nof = ["plain"]\nvalues = [2, 0.5, 3]\n[scales.smoke]',
            r"above 1; paper has \[2.0, 0.5, 3.0\] of plain",
        ),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(tmp_path, (BASE + STUDY).replace(old, new), scale="smoke")


def test_a_file_that_extends_a_scenario_says_only_what_differs(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('extends = "spo-q3"\nbind = { D = 7 }\n')
    mine = scenario_files.load(str(tmp_path / "mine.toml"), scale="paper")
    theirs = scenario_files.load("spo-q3", scale="paper")
    assert mine.name == "mine"
    assert (mine.query, mine.streams, mine.rows) == (theirs.query, theirs.streams, theirs.rows)


@pytest.mark.parametrize(("name", "scale"), list(studies("smoke", "laptop", "paper")))
def test_every_point_of_a_study_has_a_system_with_its_parameters(name: str, scale: str) -> None:
    for point in study_of(name, scale).points:
        make_parameters(find_topology(point.config.topology), point.config.parameters)


def test_every_other_scenario_has_too() -> None:
    for name in scenario_files.catalog():
        if not scenario_files.is_study(name):
            config = scenario_files.load(name)
            make_parameters(find_topology(config.topology), config.parameters)


TWO_PANELS = (
    STUDY
    + """
[[study.panels]]
name = "a"
[[study.panels]]
name = "b"
measure = "throughput_tps"
[[study.panels]]
name = "c"
measure = "throughput_tps"
[[study.claims]]
text = "plain is best"
of = ["plain"]
rises = true
"""
)


def test_a_claim_over_panels_that_measure_different_things_is_refused(tmp_path: Path) -> None:
    """A higher latency is worse, a higher throughput better: a claim holds of one of them."""
    with pytest.raises(ConfigError, match=r"'plain is best' .* which panel is meant, .*'a', 'b'"):
        load(tmp_path, BASE + TWO_PANELS)
    study = load(tmp_path, BASE + TWO_PANELS + 'panel = ["b", "c"]')
    (claim,) = study.section.claims
    about = [panel.name for panel in study.section.panels if study.section.is_about(claim, panel)]
    assert about == ["b", "c"]
