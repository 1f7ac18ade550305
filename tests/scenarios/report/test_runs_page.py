"""Runs side by side, from memory and from their folders; a run's figure for print."""

from __future__ import annotations

from pathlib import Path

import pytest

from scenarios.report.page import write_report
from scenarios.report.result_pages import picture_of
from scenarios.report.runs_page import RunRecord, write_runs_page
from scenarios.run import Report
from scenarios.run_json import write_run_json
from scenarios.scenario_files import ConfigError
from tests.scenarios.report.test_pictures import check_picture
from tests.scenarios.report.test_run_page import Page, pictures, row, rows_of
from tests.scenarios.toy_run import ToyParameters, toy_config, toy_report


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Report]:
    """Two runs whose folders have their page and their summary."""
    made = []
    for batch_rows, joiners in ((50, 3), (200, 2)):
        report = toy_report(
            tmp_path_factory.mktemp("run"),
            [range(2_000)],
            config=toy_config(**{"feeding.batch_rows": batch_rows}),
            parameters=ToyParameters(joiners=joiners),
        )
        write_report(report, report.directory / "report.html", "replay")
        write_run_json(report, "replay")
        made.append(report)
    return made


def test_two_runs_have_one_page_with_every_curve_of_both(
    runs: list[Report], tmp_path: Path
) -> None:
    records = [RunRecord.read(run.directory) for run in runs]
    page = Page(write_runs_page(records, tmp_path / "runs.html", "joinsim report").read_text())
    assert set(pictures(page)) == {"time", "stages", "load"}
    for run, name in zip(runs, ("A: toy", "B: toy"), strict=True):
        alone = Page((run.directory / "report.html").read_text())
        own = [one for one in rows_of(page, "time") if one.pop("run") == name]
        assert own == rows_of(alone, "time")
        assert str(run.directory) in page.text
    begins, ends = pictures(page)["time"]["span"]
    last_s = max(run.outcome.virtual_ns for run in runs) / 1e9
    assert begins == 0
    assert ends == pytest.approx(last_s, rel=0.01)
    busy = [(one["operator"], one["run"]) for one in rows_of(page, "load")]
    assert busy.count(("joiner, A", "A: toy")) == 3
    assert busy.count(("joiner, B", "B: toy")) == 2
    assert row(page, "messages") == [f"{run.outcome.messages:,}" for run in runs]


def test_a_run_at_hand_and_its_folder_are_the_same_record(runs: list[Report]) -> None:
    at_hand, read = RunRecord.of(runs[0]), RunRecord.read(runs[0].directory)
    assert at_hand.data == read.data
    assert at_hand.summary["digest"] == read.summary["digest"]


def test_a_folder_without_a_run_is_named(runs: list[Report], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"{tmp_path} is no finished run"):
        RunRecord.read(tmp_path)
    (tmp_path / "run.json").write_text("{}")
    (tmp_path / "report.html").write_text("<p>an old page</p>")
    with pytest.raises(ConfigError, match="earlier version: run it again"):
        RunRecord.read(tmp_path)
    record = RunRecord.of(runs[0])
    with pytest.raises(ConfigError, match=r"1 run\(s\): a page can have 2 to 8"):
        write_runs_page([record], tmp_path / "runs.html", "")


def test_a_runs_figure_is_its_curves_over_time(runs: list[Report]) -> None:
    picture = picture_of(runs[0])
    check_picture(picture)
    assert sum(map(float, picture.data["answered_tps"])) > 0
    assert len(picture.panels) == 4


def test_what_has_no_figure_says_so() -> None:
    with pytest.raises(ConfigError, match="a int has no figure of its own"):
        picture_of(3)
