"""Pages of a run, and of runs side by side, from memory and from their folders."""

from __future__ import annotations

import json
import re
import shutil
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import joinsim as js
from joins.errors import OutputError
from joins.work import Work
from netsim.cost import load_profile
from netsim.network import PRESETS
from scenarios.config import FeedingConfig
from scenarios.formatting import format_bytes, format_duration
from scenarios.report import result_pages
from scenarios.report.picture import COLOURS
from scenarios.report.result_pages import picture_of
from scenarios.report.result_tables import settings_tables
from scenarios.report.run_analysis import first_messages
from scenarios.report.run_pages import (
    MESSAGES_MAX,
    RunRecord,
    run_pictures,
    write_report,
    write_runs_page,
)
from scenarios.report.run_summary import describe_verdict, write_run_json
from scenarios.run import FinishedRun
from scenarios.scenario_files import ConfigError
from scenarios.verdict import CheckResult, Verdict
from tests.scenarios.report.test_picture import check_picture
from tests.scenarios.toy_run import (
    ToyParameters,
    failed_verdict,
    passed_verdict,
    toy_config,
    toy_report,
)
from topologies.semijoin import SemijoinParameters

REPLAY = "joinsim run toy --seed 1 --set 'bind.W=<10 & more>'"
SECTIONS = [
    "Who sends how much to whom",
    "Where the latency goes",
    "Latency and throughput over time",
    "Who sent what when",
    "Queues over time",
    "Load of each PE",
    "The run in numbers",
    "Streams and settings",
]
SIZE_MAX = 1_500_000
_ROW_BYTES = 32  # id, ts, key and the one field


class Page(HTMLParser):
    """What a reader, a browser and a screen reader find in a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.headings: list[str] = []
        self.rows: list[list[str]] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        elif tag == "h2":
            self.headings.append("")

    def handle_endtag(self, tag: str) -> None:
        self.open.remove(tag)

    def handle_data(self, data: str) -> None:
        if "script" in self.open:
            self.scripts.append(data)
        if {"style", "title", "script"} & set(self.open):
            return
        self.text += data
        if "h2" in self.open:
            self.headings[-1] += data
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data.strip()


def page_of(report: FinishedRun) -> Page:
    write_report(report, report.directory / "report.html", REPLAY)
    return Page((report.directory / "report.html").read_text(encoding="utf-8"))


def pictures(page: Page) -> dict[str, Any]:
    """Return what the page draws: data and panels by name."""
    found: dict[str, Any] = json.loads(page.scripts[0])
    return found


def rows_of(page: Page, name: str) -> list[dict[str, Any]]:
    data = pictures(page)[name]["data"]
    return [dict(zip(data, row, strict=True)) for row in zip(*data.values(), strict=True)]


def row(page: Page, name: str) -> list[str]:
    (found,) = [cells for cells in page.rows if cells[0] == name]
    return found[1:]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    config = toy_config(**{"feeding.batch_rows": 50})
    return toy_report(tmp_path_factory.mktemp("good"), [range(5_000)], config=config)


@pytest.fixture(scope="module")
def page(good: FinishedRun) -> Page:
    return page_of(good)


def test_the_page_tells_the_run_from_verdict_to_versions_in_this_order(page: Page) -> None:
    assert page.headings == SECTIONS
    opening = page.text[: page.text.index(SECTIONS[0])]
    places = [opening.index(word) for word in ("toy-run", "SELECT", "PASS", "oracle", REPLAY)]
    assert places == sorted(places)


def test_the_page_tells_digest_and_figures_of_the_run(good: FinishedRun, page: Page) -> None:
    outcome = good.outcome
    assert str(outcome.digest) in page.text
    for number in (outcome.tuples, outcome.messages, good.verdict.produced):
        assert f"{number:,}" in page.text
    assert format_bytes(outcome.nbytes) in page.text
    p99_ns = good.latencies.percentile(99)
    assert p99_ns is not None
    assert format_duration(p99_ns) in page.text


def test_stages_and_trace_agree(good: FinishedRun, page: Page) -> None:
    stages = rows_of(page, "stages")
    counts = {one["operator"]: one["messages"] for one in stages}
    assert sum(counts.values()) == good.outcome.messages
    assert set(counts) == {"router", "joiner", "sink"}
    rack_ms = PRESETS["rack"].latency.mean_ns / 1e6
    crossing = [one["mean_ms"] for one in stages if one["stage"] == "crosses the network"]
    assert min(crossing) >= rack_ms


def test_messages_are_drawn_from_sender_to_receiver_up_to_a_limit(
    good: FinishedRun, page: Page
) -> None:
    drawn = rows_of(page, "messages")
    assert len(drawn) == good.outcome.messages < MESSAGES_MAX
    assert {(one["from"], one["to"]) for one in drawn} == set(good.plan.graph(pairs=False).edges())
    for one in drawn:
        times = [one[name] for name in ("sent_s", "arrived_s", "started_s", "done_s")]
        assert times == sorted(times)
    assert "These are all messages of the run" in page.text
    few = first_messages(good.directory / "trace.parquet", 7)
    assert few["sent_s"] == [one["sent_s"] for one in drawn[:7]]


def test_settings_and_streams_are_listed(page: Page) -> None:
    assert row(page, "T")[1:] == ["5,000", "0"]
    assert row(page, "joiners") == ["3"]
    assert row(page, "batch_rows") == ["50"]
    assert row(page, "preset") == ["rack (constant 25 µs, 25 Gb/s)"]
    assert row(page, "message_ps")[0].endswith(" ps")
    assert re.fullmatch(r"[\d.]+", row(page, "simpy")[0])


def test_tuples_that_differ_are_counted_where_their_pairs_are_not_known() -> None:
    live = Verdict(claims_exact=True, expected=90, produced=88, differing_tuples=2)
    assert describe_verdict(live) == (
        "90 pairs were expected, 88 came out: 2 tuples have others than they should."
    )


def test_of_a_live_run_no_simulated_network_or_cost_is_shown(good: FinishedRun) -> None:
    config = good.plan.config.model_copy(
        update={"clock": "live", "feeding": FeedingConfig(disorder=5_000_000)}
    )
    listed = settings_tables(replace(good, plan=replace(good.plan, config=config)))
    tables = {table.title: table.rows for table in listed}
    assert "Cost profile" not in tables
    assert tables["Network"] == [("inbox_messages", "16")]
    assert {("linger", "5 ms"), ("disorder", "5 ms"), ("bounded", "yes")} <= set(tables["Feeding"])


def test_quantities_have_their_units_and_nothing_that_was_set_is_left_out(
    good: FinishedRun,
) -> None:
    config = toy_config(
        recovery={"interval": "50 ms", "storage": "1 Gbps"},
        silence="90 s",
        encrypt=True,
        bind={"rows": 200, "W": "5 s"},
        network={"links": [{"a": "router", "b": "joiner.0", "latency": "3 ms"}]},
        faults=[{"kind": "delay", "delay": "5 ms", "end": "2 s"}, {"kind": "slow", "factor": 2}],
    )
    parameters = SemijoinParameters()
    plan = replace(good.plan, config=config, parameters=parameters)
    listed = settings_tables(replace(good, plan=plan))
    tables = {one.title: {str(key): value for key, value in one.rows} for one in listed}
    assert tables["Parameters"]["tau"] == "100 ms"
    assert tables["Recovery"]["interval"] == "50 ms"
    assert tables["Recovery"]["storage"] == "1 Gb/s"
    assert (tables["Run"]["silence"], tables["Run"]["encrypt"]) == ("90 s", "yes")
    assert (tables["Run"]["rows"], tables["Placeholders"]) == ("all", {"rows": "200", "W": "5 s"})
    assert tables["Network"]["router - joiner.0"] == "latency 3 ms"
    assert tables["Faults"] == {"1. delay": "end 2 s, delay 5 ms", "2. slow": "factor 2.0"}


def test_notes_on_parameters_are_shown(
    good: FinishedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = shutil.copytree(good.directory, tmp_path / "run")
    noted = replace(
        good, directory=copied, plan=replace(good.plan, warnings=("results may be lost",))
    )
    topology = type(good.plan.topology)
    monkeypatch.setattr(topology, "notes", lambda *_: ("there are fewer cores than threads",))
    shown = page_of(noted).text
    assert "there are fewer cores than threads" in shown
    assert "results may be lost" in shown


def test_the_page_needs_nothing_but_itself(good: FinishedRun, page: Page) -> None:
    text = (good.directory / "report.html").read_text(encoding="utf-8")
    assert "link" not in {tag for tag, _ in page.tags}
    for _, attributes in page.tags:
        for name in ("src", "href", "xlink:href", "data", "srcset"):
            assert (attributes.get(name) or "#").startswith("#")
    without = text[: text.index("<script")]
    assert set(re.findall(r"https?://[^\"'\s<)]*", without)) == {"http://www.w3.org/2000/svg"}
    assert "@import" not in text
    assert "url(" not in without


def svgs(report: FinishedRun) -> list[ET.Element]:
    text = (report.directory / "report.html").read_text(encoding="utf-8").split("<script", 1)[0]
    return [ET.fromstring(svg) for svg in re.findall(r"<svg .*?</svg>", text, re.DOTALL)]


def test_every_picture_is_valid_described_captioned_and_has_its_numbers(
    good: FinishedRun, page: Page
) -> None:
    drawn, _ = run_pictures(good)
    for picture in drawn.values():
        check_picture(picture)
    assert set(pictures(page)) == set(drawn)
    figures = [attributes.get("data-picture") for tag, attributes in page.tags if tag == "figure"]
    assert sorted(filter(None, figures)) == sorted(drawn)
    tags = [tag for tag, _ in page.tags]
    assert tags.count("details") == tags.count("summary") == len(drawn)
    assert tags.count("figcaption") == len(drawn) + 1
    described = [attributes for _, attributes in page.tags if attributes.get("role") == "img"]
    assert len(described) == len(drawn) + 1
    assert all(attributes.get("aria-label") for attributes in described)
    (graph,) = svgs(good)
    shown = "".join(graph.itertext())
    assert all(label in shown for label in ("joiner.0", "% busy", "found"))
    assert "source to router, out 203 kB" in shown  # where the pointer rests


def test_everything_that_scrolls_can_be_reached_by_keyboard(page: Page) -> None:
    wide = [attributes for _, attributes in page.tags if attributes.get("class") == "wide"]
    assert wide
    assert all(attributes.get("tabindex") == "0" for attributes in wide)
    assert all(attributes.get("aria-label") for attributes in wide)


def test_colours_of_figures_follow_the_theme(good: FinishedRun, page: Page) -> None:
    text = (good.directory / "report.html").read_text(encoding="utf-8")
    used = set(re.findall(r"var\(--(\w+)\)", text)) - {"mark", "columns"}
    assert used <= set(COLOURS)
    drawn = text[text.index("</style>") :]
    assert not [light for light, _ in COLOURS.values() if light in drawn]


def test_the_same_run_gives_the_same_page(good: FinishedRun, page: Page) -> None:
    first = (good.directory / "report.html").read_bytes()
    write_report(good, good.directory / "report.html", REPLAY)
    assert (good.directory / "report.html").read_bytes() == first


def test_the_most_loaded_joiner_is_named_with_its_skew(good: FinishedRun, page: Page) -> None:
    # Every message holds 50 tuples, and joiner i does i + 1 times the work of the first.
    profile = load_profile()
    assert {one["messages"] for one in rows_of(page, "stages") if one["operator"] == "router"} == {
        100
    }
    work_ns = [profile.work_ns(Work(comparisons=50_000 * (i + 1))) for i in range(3)]
    floor_ns = profile.floor_ns(50, 50 * _ROW_BYTES)
    costs_ns = [floor_ns + cost_ns for cost_ns in work_ns]
    assert "joiner.2 was busy for" in page.text
    shares = [one["busy"] for one in rows_of(page, "load") if one["operator"] == "joiner"]
    skew = 3 * max(costs_ns) / sum(costs_ns)
    assert 3 * max(shares) / sum(shares) == pytest.approx(skew, abs=0.006)


def test_offending_pairs_are_named_with_their_arrivals_in_order(tmp_path: Path) -> None:
    found = page_of(toy_report(tmp_path, [range(50), range(60)], verdict=failed_verdict()))
    assert found.headings == ["Offending pairs", *SECTIONS]
    assert "FAIL" in found.text
    assert row(found, "missing") == ["R", "77", "41", "router 1.250, joiner.1 2.500"]


def test_whatever_is_shown_is_text_and_never_markup(tmp_path: Path) -> None:
    verdict = passed_verdict(3)
    verdict.checks.append(
        CheckResult(name="<b>odd</b>", passed=None, detail="<script>alert(1)</script>")
    )
    config = toy_config().model_copy(update={"name": "a<i>b&c"})
    report = toy_report(tmp_path, [range(30)], verdict=verdict, config=config)
    found = page_of(report)
    assert [tag for tag, _ in found.tags].count("script") == 3
    assert row(found, "<b>odd</b>") == ["UNKNOWN", "<script>alert(1)</script>"]
    assert "a<i>b&c" in found.text


@pytest.mark.parametrize(
    ("streams", "settings", "joiners", "word"),
    [
        pytest.param([[]], {}, 3, "UNKNOWN", id="no tuple"),
        pytest.param([[7]], {}, 3, "UNKNOWN", id="one tuple"),
        pytest.param([[], [1, 2, 3]], {}, 1, "PASS", id="one of two streams empty"),
        pytest.param([range(900)], {}, 200, "PASS", id="many PEs"),
        pytest.param([[5] * 900], {"feeding.rate_tps": 10}, 2, "PASS", id="slow"),
        pytest.param([range(900)], {"network.latency": 0}, 1, "PASS", id="no latency"),
    ],
)
def test_any_run_has_a_whole_page(
    streams: list[list[int]], settings: dict[str, int], joiners: int, word: str, tmp_path: Path
) -> None:
    report = toy_report(
        tmp_path, streams, config=toy_config(**settings), parameters=ToyParameters(joiners=joiners)
    )
    found = page_of(report)
    assert found.headings == SECTIONS
    assert word in found.text[: found.text.index(SECTIONS[0])]
    assert "nan" not in found.text
    assert len(svgs(report)) == 1
    assert all(set(one) >= {"data", "panels"} for one in pictures(found).values())
    assert (report.directory / "report.html").stat().st_size < SIZE_MAX


def test_a_run_without_files_of_results_has_a_page(good: FinishedRun, tmp_path: Path) -> None:
    (tmp_path / "trace.parquet").write_bytes((good.directory / "trace.parquet").read_bytes())
    assert page_of(replace(good, directory=tmp_path)).headings == SECTIONS


def test_a_place_that_cannot_be_written_is_named(good: FinishedRun, tmp_path: Path) -> None:
    (tmp_path / "trace.parquet").write_bytes((good.directory / "trace.parquet").read_bytes())
    (tmp_path / "report.html").mkdir()
    with pytest.raises(OutputError, match=r"cannot write to .*report\.html: Is a directory"):
        write_report(replace(good, directory=tmp_path), tmp_path / "report.html", REPLAY)


@pytest.mark.parametrize(
    ("verdict", "shown"),
    [
        (passed_verdict(12), "Exactly the 12 expected pairs came out, each once."),
        (passed_verdict(1), "Exactly the 1 expected pair came out, once."),
        (
            Verdict(claims_exact=False, expected=1, produced=2, inconsistent=1, late=1),
            "1 pair was expected, 2 came out: 1 tuple whose counts or",
        ),
        (
            Verdict(
                claims_exact=True,
                expected=9,
                produced=9,
                checks=[CheckResult(name="query", passed=False, detail="it reads < as <=")],
            ),
            "9 pairs came out, as the joins read the query, which another parser reads otherwise. "
            "Failed: query.",
        ),
        (passed_verdict(0), "No pair was expected and none came out"),
        (failed_verdict(), "5 pairs were expected, 4 came out: 1 missing. Failed: oracle."),
        (
            Verdict(claims_exact=False, expected=9, produced=12, duplicate=2, expired=1, late=4),
            "2 duplicate, 1 outside the window. The run makes no claim to exactness: whether it "
            "should differ so is unknown. 4 late tuples were dropped.",
        ),
        (
            Verdict(claims_exact=False, as_promised=True, expected=9, produced=12, duplicate=3),
            "3 duplicate. The run promised less than exactness, and kept that promise.",
        ),
        (
            Verdict(claims_exact=True, expected=9, produced=9, inconsistent=4),
            "9 came out: 4 tuples whose counts or fingerprints are of other pairs.",
        ),
    ],
)
def test_the_verdict_is_described_in_words(verdict: Verdict, shown: str) -> None:
    assert shown in describe_verdict(verdict)


def test_every_table_scrolls_where_the_screen_is_narrow() -> None:
    for template in (Path(result_pages.__file__).parent / "templates").glob("*.html"):
        for line in template.read_text().splitlines():
            if "| table }}" in line and "{{ one | table }}" not in line:  # settings wrap instead
                assert line.startswith("{% call wide("), f"{template.name}: {line}"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[FinishedRun]:
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
    runs: list[FinishedRun], tmp_path: Path
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


def test_a_run_whose_answer_was_not_tested_has_not_passed(
    runs: list[FinishedRun], tmp_path: Path
) -> None:
    verdicts = (Verdict(claims_exact=True, expected=9, produced=9), Verdict(claims_exact=True))
    records = [
        RunRecord.of(replace(run, verdict=verdict))
        for run, verdict in zip(runs, verdicts, strict=True)
    ]
    page = Page(write_runs_page(records, tmp_path / "runs.html", "joinsim report").read_text())
    assert row(page, "verdict") == ["PASS", "UNKNOWN"]


def test_a_run_at_hand_and_its_folder_are_the_same_record(runs: list[FinishedRun]) -> None:
    at_hand, read = RunRecord.of(runs[0]), RunRecord.read(runs[0].directory)
    assert at_hand.data == read.data
    assert at_hand.summary["digest"] == read.summary["digest"]


def test_a_folder_without_a_run_is_named(runs: list[FinishedRun], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"{tmp_path} is no finished run"):
        RunRecord.read(tmp_path)
    with pytest.raises(ConfigError, match=f"there is no folder {tmp_path}/elsewhere"):
        RunRecord.read(tmp_path / "elsewhere")
    (tmp_path / "run.json").write_text("{}")
    (tmp_path / "report.html").write_text("<p>an old page</p>")
    with pytest.raises(ConfigError, match="earlier version: run it again"):
        RunRecord.read(tmp_path)
    record = RunRecord.of(runs[0])
    with pytest.raises(ConfigError, match=r"1 run\(s\): a page can have 2 to 8"):
        write_runs_page([record], tmp_path / "runs.html", "")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([1], "damaged, run it again: a section is needed"),
        ({"topology": None}, "damaged, run it again: topology = None: input should be a valid str"),
        ({"verdict": {"passed": True}}, "damaged, run it again: verdict.produced: is missing"),
    ],
)
def test_a_damaged_record_is_named(runs: list[FinishedRun], wrong: object, message: str) -> None:
    path = runs[0].directory / "run.json"
    whole = path.read_text()
    path.write_text(json.dumps(json.loads(whole) | wrong if isinstance(wrong, dict) else wrong))
    try:
        with pytest.raises(ConfigError, match=f"{path} is {message}"):
            RunRecord.read(path.parent)
    finally:
        path.write_text(whole)


def test_a_page_whose_data_is_damaged_is_named(runs: list[FinishedRun]) -> None:
    path = runs[0].directory / "report.html"
    whole = path.read_text()
    path.write_text(whole.replace('"stages"', '"stage"'))
    try:
        with pytest.raises(ConfigError, match=f"{path} is damaged: its data cannot be read"):
            RunRecord.read(path.parent)
    finally:
        path.write_text(whole)


def test_a_runs_figure_is_its_curves_over_time(runs: list[FinishedRun]) -> None:
    picture = picture_of(runs[0])
    check_picture(picture)
    assert sum(map(float, picture.data["answered_tps"])) > 0
    assert len(picture.panels) == 4


@pytest.mark.parametrize(
    ("query", "topology"),
    [
        ("A.k = B.k AND B.ts BETWEEN A.ts - INTERVAL '5 us' AND A.ts", "kp_oij"),
        ("A.k = B.k WINDOW AS (SLIDE INTERVAL '1' ON '20')", "semijoin"),
        ("A.k = B.k WINDOW AS (SLIDE INTERVAL '1' ON '20')", "split_join"),
    ],
)
def test_no_tuple_is_inside_a_run_that_has_ended(query: str, topology: str, tmp_path: Path) -> None:
    """Half of the tuples have no pair, of which only joins over windows report that."""
    ts = np.arange(400) * 1_000
    streams = {
        "A": {"ts": ts, "k": np.arange(400) % 10},
        "B": {"ts": ts, "k": ts // 1_000 % 10 + 5},
    }
    run = js.run(f"SELECT * FROM A, B WHERE {query}", streams, topology=topology)
    page = Page(run.report(tmp_path / "run.html").read_text(encoding="utf-8"))
    over_time = rows_of(page, "time")
    inside = [one["inside"] for one in over_time]
    assert sum(one["answered_tps"] for one in over_time) > 0
    assert min(inside) >= 0
    assert inside[-1] == 0
    counted = "Tuples without a pair are not counted" in page.text
    assert counted == (topology != "split_join")


def test_what_has_no_figure_says_so() -> None:
    with pytest.raises(ConfigError, match="a int has no figure of its own"):
        picture_of(3)
