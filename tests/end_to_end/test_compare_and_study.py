"""``joinsim compare`` and studies, from a person's side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.end_to_end.conftest import SELF_JOIN, WINDOW, Command

QUERY = SELF_JOIN.format(window=WINDOW)
STUDY = """
title = "More PEs"
query = \"\"\"{query}\"\"\"
[[streams]]
files = ["{data}"]
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
[[study.paper]]
of = ["PO-Join"]
values = [10, 30]
[[study.claims]]
text = "more PEs find more"
of = ["all"]
rises = true
why = "the answer is one and the same"
tried = {{ scale = "laptop", command = "joinsim run mine.toml" }}
"""


def test_systems_are_ranked_and_refusals_named(
    joinsim: Command, prepared: Path, tmp_path: Path
) -> None:
    names = "spo_join,nested_loop,hash_join"
    said = joinsim(
        *("compare", QUERY, "--data", prepared, "--topologies", names, "--out", "out", "--json"),
        *("--figure", "bars.pdf"),
    )
    assert said.code == 0
    systems = said.json["systems"]
    assert {system["topology"] for system in systems} == {"spo_join", "nested_loop"}
    assert len({system["verdict"]["produced"] for system in systems}) == 1
    assert all(system["verdict"]["exact"] for system in systems)
    rates = [system["throughput_tps"] for system in systems]
    assert rates == sorted(rates, reverse=True)
    assert said.json["fastest_exact"] == systems[0]["label"]
    assert all(system["kernel_seconds"]["total"] > 0 for system in systems)
    (refused,) = said.json["refused"]
    assert refused["label"] == "hash_join"
    assert "needs a predicate with =" in refused["reason"]
    assert json.loads((tmp_path / "out" / "compare.json").read_text()) == said.json
    assert "nested_loop" in (tmp_path / "out" / "compare.html").read_text()
    assert (tmp_path / "bars.pdf").read_bytes().startswith(b"%PDF")
    assert "nested_loop" in (tmp_path / "bars.pdf.csv").read_text()
    alone = json.loads((tmp_path / "out" / "points" / "nested_loop" / "run.json").read_text())
    assert alone["digest"] == next(s for s in systems if s["topology"] == "nested_loop")["digest"]


def test_a_comparison_that_no_system_can_take_says_why(joinsim: Command, prepared: Path) -> None:
    said = joinsim("compare", QUERY, "--data", prepared, "--topologies", "hash_join")
    assert said.code == 3
    assert "no system compared here can evaluate the query" in said.err


def test_a_study_runs_its_points_judges_its_claims_and_a_point_repeats_alone(
    joinsim: Command, prepared: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text(STUDY.format(query=QUERY, data=prepared))
    said = joinsim("run", "mine.toml", "--out", "out", "--json", "--figure", "lines.svg")
    assert said.code == 0
    assert "PO-Join" in (tmp_path / "lines.svg").read_text()
    assert (tmp_path / "lines.svg.csv").read_text().startswith("panel,x,at,variant,kind,value,")
    (chart,) = said.json["charts"]
    assert chart["x"] == ["1", "3"]
    capacity, produced = (variant["values"] for variant in chart["variants"])
    assert 0 < capacity[0] < capacity[1]
    assert produced[0] == produced[1] > 0
    assert chart["paper"] == [{"of": ["PO-Join"], "values": [10, 30], "ours": capacity}]
    (claim,) = said.json["claims"]
    assert claim["holds"] is False
    for name in ("study.json", "study.html", "points/001/run.json"):
        assert (tmp_path / "out" / name).exists()
    page = (tmp_path / "out" / "study.html").read_text()
    assert "does not hold" in page
    assert "the answer is one and the same" in page

    alone = joinsim("run", "mine.toml", "--point", 2, "--json")
    assert alone.json["digest"] == said.json["points"][1]["digest"]
    changed = joinsim("run", "mine.toml", "--point", 2, "--set", "po_join_pes=1", "--json")
    assert changed.json["digest"] == said.json["points"][0]["digest"]
    assert joinsim("run", "mine.toml", "--point", 3).code == 3

    points = [f"out/points/00{number}" for number in (1, 2)]
    refused = joinsim("report", *points)
    assert (refused.code, "out/points/001 is no finished run" in refused.err) == (3, True)
    for words in (("report", "out", "out"), ("diff", "out", "out")):
        refused = joinsim(*words)
        assert (refused.code, "out is the folder of a study or a sweep" in refused.err) == (3, True)
    for seed in (1, 2):
        joinsim("run", "mine.toml", "--point", 2, "--seed", seed, "--out", f"seed-{seed}")
    assert joinsim("report", "seed-1", "seed-2", "--out", "both.html").out == "both.html\n"
    assert "joinsim report seed-1 seed-2 --out both.html" in (tmp_path / "both.html").read_text()


@pytest.mark.parametrize(
    ("figure", "problem"),
    [
        ("figure.jpg", "figure.jpg: the file's name must end in .pdf, .svg, .png"),
        ("mine.toml/figure.svg", "cannot write to mine.toml/figure.svg: Not a directory"),
        ("absent/figure.svg", "cannot write to absent/figure.svg: No such file"),
    ],
)
def test_a_figure_that_cannot_be_written_is_refused_before_anything_runs(
    figure: str, problem: str, joinsim: Command, tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").touch()
    said = joinsim("run", "oij-w1", "--figure", figure)
    assert (said.code, said.out) == (3, "")
    assert problem in said.err


def test_a_sweep_has_an_interval_for_each_point(
    joinsim: Command, prepared: Path, tmp_path: Path
) -> None:
    words = ["sweep", QUERY, "--data", prepared, "--topology", "split_join", "--processes", "1"]
    said = joinsim(*words, "--over", "pes=1,3", "--seeds", "2", "--out", "out", "--json")
    assert said.code == 0
    (variant,) = said.json["charts"][0]["variants"]
    assert len(variant["values"]) == len(variant["intervals"]) == 2
    assert len(said.json["points"]) == 4
    assert (tmp_path / "out" / "study.html").is_file()
    wrong = joinsim(*words, "--over", "colour=red")
    assert (wrong.code, "there is no such key" in wrong.err) == (3, True)


@pytest.mark.usefixtures("points_in_turn")
def test_a_variant_that_claims_nothing_is_unknown_alone_and_measured_beside_others(
    joinsim: Command, prepared: Path, tmp_path: Path
) -> None:
    fed = ("--set", "feeding.batch_rows=5", "--set", "feeding.rate_tps=50000")
    words = (QUERY, "--data", prepared, "--topology", "spo_join", *fed)
    alone = joinsim("run", "--query", *words, "--set", "hash_table=false", "--out", "alone")
    assert alone.code == 2, alone.err
    assert "verdict UNKNOWN (not exact)" in alone.out
    assert "does not claim to be exact" in " ".join(alone.out.split())
    both = joinsim("sweep", *words, "--over", "hash_table=true,false", "--out", "both", "--json")
    assert both.code == 0, both.err
    assert [point["passed"] for point in both.json["points"]] == [True, None]
    assert "not exact (no claim)" in (tmp_path / "both" / "study.html").read_text()
    only = joinsim("sweep", *words, "--over", "hash_table=false", "--out", "only", "--json")
    assert only.code == 2, only.err


def test_an_advice_can_be_run(joinsim: Command, prepared: Path, tmp_path: Path) -> None:
    words = ["advise", QUERY, "--data", prepared, "--topologies", "split_join,nested_loop"]
    said = joinsim(*words, "--machines", "3", "--seeds", "1", "--out", "out", "--json")
    assert said.code == 0
    assert said.json["candidates"][0]["label"] == said.json["advice"]
    run = joinsim("run", "out/advice.toml", "--out", "run", "--json")
    assert run.code == 0
    assert run.json["topology"] == said.json["candidates"][0]["topology"]
    figure = ("--figure", "advice.svg")
    again = joinsim(*words, "--machines", "3", "--seeds", "1", "--out", "out", *figure)
    assert again.code == 0, again.err
    assert "advice.svg" in again.out
    assert (tmp_path / "advice.svg").exists()
    wrong = joinsim(*words, "--budget", "soon")
    assert (wrong.code, "--budget soon" in wrong.err) == (3, True)


def test_a_file_takes_the_place_of_a_table_that_was_in_memory(
    joinsim: Command, prepared: Path, tmp_path: Path
) -> None:
    streams = '[[streams]]\ntable = "500 tuples"\n'
    (tmp_path / "mine.toml").write_text(f"query = {json.dumps(QUERY)}\n{streams}")
    run = joinsim("run", "mine.toml", "--data", prepared, "--out", "run")
    assert run.code == 0, run.err


def test_an_advice_is_for_a_rate_and_its_prices(joinsim: Command, prepared: Path) -> None:
    words = ["advise", QUERY, "--data", prepared, "--topologies", "split_join", "--engines", ""]
    few = ("--machines", "3", "--seeds", "1", "--rate", "5000", "--out", "out", "--json")
    priced = joinsim(*words, *few, "--price", "core_hour=0.05", "--price", "gigabyte=1")
    assert priced.code == 0, priced.err
    assert "--rate 5000 " in priced.json["replay"]
    assert all(one["price"] > 0 for one in priced.json["candidates"])


def test_a_sweep_finds_the_highest_rate_from_the_command_line(
    joinsim: Command, prepared: Path
) -> None:
    words = ["sweep", QUERY, "--data", prepared, "--topology", "nested_loop", "--processes", "1"]
    found = joinsim(*words, "--over", "rows=200,300", "--find", "sustainable", "--json")
    assert found.code == 0, found.err
    assert all(point["sustainable_tps"] > 0 for point in found.json["points"])


def test_a_run_is_watched(joinsim: Command, prepared: Path) -> None:
    said = joinsim(
        "run", "--query", QUERY, "--data", prepared, "--watch", "--topology", "split_join"
    )
    assert said.code == 0, said.err
    assert "joiner.0" in said.err


@pytest.mark.parametrize(
    ("options", "mistake"),
    [
        (("--goal", ""), "goal: name at least one of throughput, latency, bytes, memory"),
        (("--topologies", "split_jion"), "'split_jion': did you mean 'split_join'?"),
        (("--price", "core_hour"), "--price core_hour: write it as core_hour=0.05"),
        (("--price", "core_hour=dear"), "--price core_hour=dear: write it as core_hour=0.05"),
        (("--price", "gold=1"), "gold"),
        (("--rate", "0"), "--rate"),
    ],
)
def test_an_advice_that_cannot_be_given_is_refused_at_once(
    joinsim: Command, prepared: Path, options: tuple[str, str], mistake: str
) -> None:
    said = joinsim("advise", QUERY, "--data", prepared, *options)
    assert (said.code, said.out) == (3, "")
    assert mistake in said.err
    assert "traceback" not in said.err


def test_the_page_of_a_comparison_has_the_query_as_it_ran(
    joinsim: Command, prepared: Path, tmp_path: Path
) -> None:
    """A placeholder says nothing to a reader who has not got its value."""
    query = SELF_JOIN.format(window="(SLIDE INTERVAL '20' ON 'W')")
    said = joinsim(
        "compare", query, "--data", prepared, "--topologies", "nested_loop", "--out", "out",
        "--set", "bind.W=100", "--rows", 50,
    )  # fmt: skip
    assert said.code == 0, said.err
    page = (tmp_path / "out" / "compare.html").read_text()
    assert "(SLIDE INTERVAL &#39;20&#39; ON &#39;100&#39;)</pre>" in page
