"""``joinsim reproduce``: every study of a paper on one page, from a person's side."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import joinsim as js
from joinsim import Scenario
from scenarios import scenario_files
from scenarios.run_directory import UNFINISHED
from scenarios.study import reproduction
from scenarios.study.reproduction import Statement
from tests.end_to_end.conftest import SELF_JOIN, WINDOW, Command

PLAIN = """
title = "Few | many PEs"
figure = "Figure {figure}"
query = \"\"\"{query}\"\"\"
[[streams]]
files = ["{data}"]
"""
STUDY = """
[study]
measure = "capacity_tps.immutable"
label = "tuples/s"
parts = {{ immutable = ["po_join"] }}
[study.axis]
label = "PEs"
keys = ["po_join_pes"]
values = [1, 3]
[study.variants]
"PO-Join" = {{}}
"all" = {{ measure = "verdict.produced" }}
"""
REPORTED = """
[[study.paper]]
of = ["PO-Join"]
values = [10, 30]
[[study.claims]]
text = "more PEs take more"
of = ["PO-Join"]
rises = true
[[study.claims]]
text = "at most a | b"
of = ["all"]
at_most = 1.0
why = "the answer is one and the same"
tried = {{ scale = ["smoke", "laptop"], command = "joinsim run panjoin-one" }}
[[study.claims]]
text = "one point is no trend"
of = ["all"]
at = [0]
rises = true
"""
HOLDS = """
[[study.claims]]
text = "there is an answer"
of = ["all"]
at_least = 1
"""
FAILS = HOLDS.replace("at_least = 1", "at_most = 0")

Catalog = Callable[..., None]


@pytest.fixture
def catalog(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, prepared: Path, points_in_turn: None
) -> Catalog:
    """Write a catalog of two studies of a paper, one of another, and a scenario that is none."""
    folder = tmp_path / "catalog"
    folder.mkdir()

    def write(**changed: str) -> None:
        texts = {
            "panjoin-one": PLAIN + STUDY + REPORTED,
            "panjoin-two": PLAIN + STUDY + HOLDS,
            "panjoin-plain": PLAIN,
            "pim-other": PLAIN + STUDY,
        } | {name.replace("_", "-"): PLAIN + text for name, text in changed.items()}
        query = SELF_JOIN.format(window=WINDOW)
        for figure, (name, text) in enumerate(texts.items(), 1):
            made = text.format(query=query, data=prepared, figure=figure)
            (folder / f"{name}.toml").write_text(made)
        scenario_files._read_own.cache_clear()

    paths = {
        name: folder / f"{name}.toml"
        for name in ("panjoin-one", "panjoin-plain", "panjoin-two", "pim-other")
    }
    monkeypatch.setattr(scenario_files, "catalog", lambda: paths)
    untested = Statement(
        where="Figure 15g",
        text="inside Storm",
        paper=None,
        outcome="not comparable",
        why="Storm is not here",
    )
    monkeypatch.setattr(
        reproduction, "untested_statements", lambda paper: (untested,) if paper == "panjoin" else ()
    )
    write()
    return write


def test_all_studies_of_a_paper_are_run_and_come_to_one_page_and_one_table(
    joinsim: Command, catalog: Catalog, tmp_path: Path
) -> None:
    said = joinsim("reproduce", "panjoin", "--out", "out", "--json")
    assert said.code == 0
    assert [study["name"] for study in said.json["studies"]] == ["panjoin-one", "panjoin-two"]
    assert said.json["counts"] == {
        "tested": 3,
        "hold": 2,
        "fail_with_reason": 1,
        "fail_without_reason": 0,
        "undecided": 0,
        "not_comparable": 1,
    }
    assert json.loads((tmp_path / "out" / "reproduce.json").read_text()) == said.json
    assert (tmp_path / "out" / "panjoin-one" / "study.html").exists()

    page = (tmp_path / "out" / "reproduce.html").read_text()
    assert page.count('<figure data-picture="panjoin-') == 2
    assert "the answer is one and the same" in page
    assert 'href="panjoin-two/study.html"' in page
    assert page.count("a message costs its receiver 20 us") == 1, "what both assume stands once"
    assert page.count('href="#assumed-messages"') == 2

    lines = (tmp_path / "out" / "reproduction.md").read_text().splitlines()
    rows = [line.split(" | ") for line in lines if line.startswith("| Figure")]
    assert [row[0] for row in rows] == ["| Figure 1", *["| Figure 1"] * 2, "| Figure 2"]
    assert [row[4] for row in rows] == ["holds", "does not hold", "not comparable", "holds"]
    assert rows[0][2] == "rises; 10, 30 reported"
    assert rows[1][1] == r"at most a \| b"
    assert rows[1][2] == "at most 1"
    reason = "the answer is one and the same (found by: joinsim run panjoin-one)"
    assert rows[1][5] == f"{reason} |"
    assert rows[3][3].startswith("all: ")
    assert lines[-3] == (
        "3 claims tested: 2 hold, 1 fails with a reason, 0 fail without; 1 is not comparable."
    )
    assert said.json["statement_counts"] == {
        "statements": 5,
        "tested": 3,
        "hold": 2,
        "fail_with_reason": 1,
        "fail_without_reason": 0,
        "undecided": 0,
        "not_comparable": 2,
    }
    messages = "- Assumed, messages: a message costs its receiver 20 us"
    (listed,) = (line for line in lines if line.startswith(messages))
    assert listed.endswith(" In Figure 1, Figure 2.")
    stated = said.json["statements"]
    assert [one["outcome"] for one in stated[:2]] == ["holds", "fails with a reason"]
    assert stated[-1]["why"] == "Storm is not here"
    assert lines[-1].startswith("5 statements, 3 tested: 2 hold")


def test_a_study_that_is_complete_is_not_run_again(
    joinsim: Command, catalog: Catalog, tmp_path: Path, prepared: Path
) -> None:
    def finished() -> list[int]:
        return [
            (tmp_path / "out" / f"panjoin-{name}" / "points" / "001" / "run.json")
            .stat()
            .st_mtime_ns
            for name in ("one", "two")
        ]

    def again(*more: str) -> list[bool]:
        before = finished()
        assert joinsim("reproduce", "panjoin", "--out", "out", *more, "--json").json == first.json
        return [old != new for old, new in zip(before, finished(), strict=True)]

    first = joinsim("reproduce", "panjoin", "--out", "out", "--json")
    assert again() == [False, False]
    assert again("--fresh") == [True, True]
    (tmp_path / "out" / "panjoin-two" / "study.json").unlink()
    assert again() == [False, True]

    catalog(panjoin_one=STUDY.replace("[1, 3]", "[1, 2]") + HOLDS)
    before = finished()
    changed = joinsim("reproduce", "panjoin", "--out", "out", "--json")
    assert [old != new for old, new in zip(before, finished(), strict=True)] == [True, False]
    assert changed.json["counts"]["tested"] == 2


def test_an_interrupted_reproduction_goes_on_where_it_stopped(
    joinsim: Command, catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Scenario.run

    def interrupted(scenario: Scenario, **options: Any) -> Any:
        if scenario.source == "panjoin-two":
            raise KeyboardInterrupt
        return run(scenario, **options)

    with monkeypatch.context() as patched:
        patched.setattr(Scenario, "run", interrupted)
        assert joinsim("reproduce", "panjoin", "--out", "out").code == 3
    so_far = json.loads((tmp_path / "out" / "reproduce.json").read_text())
    assert [study["name"] for study in so_far["studies"]] == ["panjoin-one"]
    first = tmp_path / "out" / "panjoin-one" / "points" / "001" / "run.json"
    before = first.stat().st_mtime_ns
    said = joinsim("reproduce", "panjoin", "--out", "out", "--json")
    assert said.code == 0
    assert said.json["counts"]["tested"] == 3
    assert first.stat().st_mtime_ns == before


def test_a_claim_that_is_reworded_is_judged_anew_without_a_run(
    joinsim: Command, catalog: Catalog, tmp_path: Path
) -> None:
    joinsim("reproduce", "panjoin", "--out", "out")
    run = tmp_path / "out" / "panjoin-two" / "points" / "001" / "run.json"
    before = run.stat().st_mtime_ns
    catalog(panjoin_two=STUDY + FAILS)
    said = joinsim("reproduce", "panjoin", "--out", "out", "--json")
    assert run.stat().st_mtime_ns == before
    assert said.code == 1
    assert said.json["counts"]["fail_without_reason"] == 1
    assert "does not hold" in (tmp_path / "out" / "panjoin-two" / "study.html").read_text()
    written = json.loads((tmp_path / "out" / "panjoin-two" / "study.json").read_text())
    assert [claim["holds"] for claim in written["claims"]] == [False]


def test_a_study_that_fails_does_not_stop_the_others(
    joinsim: Command, catalog: Catalog, tmp_path: Path
) -> None:
    catalog(panjoin_one=STUDY.replace("po_join_pes", "no_such_key"))
    said = joinsim("reproduce", "panjoin", "--out", "out")
    assert said.code == 3
    assert "panjoin-one" in said.out
    assert "no_such_key" in said.out
    assert "no_such_key" in (tmp_path / "out" / "reproduce.html").read_text()
    assert "no_such_key" in (tmp_path / "out" / "reproduction.md").read_text()
    assert (tmp_path / "out" / "panjoin-two" / "study.json").exists()


def test_a_folder_with_something_else_in_it_is_left_alone(
    joinsim: Command, catalog: Catalog, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    said = joinsim("reproduce", "panjoin", "--out", "out")
    assert said.code == 3
    assert "something that is not a run" in said.err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_a_second_reproduction_into_the_same_folder_is_refused(
    joinsim: Command, catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, refused = Scenario.run, []

    def with_a_second_one(scenario: Scenario, **options: Any) -> Any:
        with pytest.raises(js.OutputError, match="another run is writing to out"):
            js.reproduce("panjoin", out="out")
        refused.append(scenario.source)
        return run(scenario, **options)

    monkeypatch.setattr(Scenario, "run", with_a_second_one)
    assert joinsim("reproduce", "panjoin", "--out", "out").code == 0
    assert refused == ["panjoin-one", "panjoin-two"]
    assert not (tmp_path / "out" / UNFINISHED).exists()


def test_a_repeated_reproduction_judges_claims_by_intervals(
    joinsim: Command, catalog: Catalog, tmp_path: Path
) -> None:
    """Taxi trips over a network without jitter: nothing random enters, which is said."""
    said = joinsim("reproduce", "panjoin", "--out", "out", "--repeat", 2, "--json")
    assert said.json["counts"]["undecided"] == 0
    study = json.loads((tmp_path / "out" / "panjoin-one" / "study.json").read_text())
    assert study["repeat"] == 2
    assert [point["seed"] for point in study["points"]] == [1, 2, 1, 2]
    assert study["charts"][0]["variants"][0]["points"] == [[1, 2], [3, 4]]
    assert study["charts"][0]["variants"][0]["intervals"] == [None, None]
    assert "nothing random enters them" in (tmp_path / "out" / "panjoin-one/study.html").read_text()
    assert "--repeat 2" in said.json["replay"]


def test_a_changed_study_gives_no_reason_of_the_unchanged_one(
    joinsim: Command, catalog: Catalog
) -> None:
    reason = "the answer is one and the same"
    assert reason in joinsim("run", "panjoin-one").out
    assert reason not in joinsim("run", "panjoin-one", "--set", "predicate_pes=3").out
    assert reason not in joinsim("run", "panjoin-one", "--scale", "paper").out


def test_seeds_are_for_studies(joinsim: Command, catalog: Catalog) -> None:
    said = joinsim("run", "panjoin-plain", "--repeat", 3)
    assert said.code == 3
    assert "--repeat 3: it is for a study, and this is one run" in said.err


def test_the_claims_of_reproductions_come_to_one_document(
    joinsim: Command, catalog: Catalog, tmp_path: Path
) -> None:
    joinsim("reproduce", "panjoin")
    joinsim("reproduce", "pim", "--out", "other")
    assert joinsim("claims").out.strip() == "reproduction.md: the claims of panjoin"
    said = joinsim("claims", "runs/reproduce-panjoin/laptop", "other", "--out", "docs.md")
    assert said.code == 0
    text = (tmp_path / "docs.md").read_text()
    lines = text.splitlines()
    assert "| panjoin | laptop | 5 | 3 | 2 | 1 | 0 | 0 | 2 |" in lines, "statements"
    assert "| panjoin | laptop | 3 | 2 | 1 | 0 | 0 | 1 |" in lines, "claims"
    assert "| all |  | 3 | 2 | 1 | 0 | 0 | 1 |" in lines
    assert "| Figure 15g | inside Storm |  | Storm is not here |" in lines
    assert text.count("- Assumed, messages: ") == 2, "once a paper"
    assert "1 of its points is run at this scale" in text, "why a claim is not comparable"
    assert "--out" not in text, "where its files were is of no use to a reader"
    (made,) = (line for line in lines if line.startswith("`joinsim reproduce panjoin"))
    assert re.search(r", \d{4}-\d\d-\d\d, on .+, \d+ cores, ", made)
    assert "(found by: joinsim run panjoin-one)" in text

    assert "is no reproduction" in joinsim("claims", "docs").err
    (tmp_path / "other" / UNFINISHED).touch()
    assert "other has not finished" in joinsim("claims", "other").err
    assert "no reproduction at paper scale" in joinsim("claims", "--scale", "paper").err

    (tmp_path / "other" / UNFINISHED).unlink()
    for damaged in ("{", "[]", '{"paper": "pim"}'):
        (tmp_path / "other" / "reproduce.json").write_text(damaged)
        said = joinsim("claims", "other")
        assert said.code == 3
        assert "other/reproduce.json" in said.err
        assert "reproduce it again" in said.err


def test_claims_of_a_scale_that_there_is_not_are_refused() -> None:
    with pytest.raises(js.ConfigError, match="scale = 'huge': there are smoke, laptop, paper"):
        js.claims(scale="huge")


def test_the_help_ends_with_an_example(joinsim: Command) -> None:
    last = joinsim("reproduce", "--help").out.strip().splitlines()[-1]
    assert "joinsim reproduce panjoin --scale smoke" in last


def test_a_reproduction_is_an_object(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = js.reproduce("panjoin", scale="smoke")
    assert done.directory == Path("runs/reproduce-panjoin/smoke")
    assert done.claims["holds"].to_pylist() == [True, False, None, True]
    assert done.claims["study"].to_pylist()[-1] == "panjoin-two"
    assert done.passed
    assert "3 claims tested: 2 hold" in repr(done)
    assert "<table>" in done._repr_html_()
    study = js.scenario("panjoin-two", scale="smoke").run()
    assert repr(study) == "panjoin-two: 2 runs, 1 of 1 claims hold"
    with pytest.raises(js.ConfigError, match="no paper is called 'panjon': did you mean 'panjoin'"):
        js.reproduce("panjon")
