from __future__ import annotations

import re
import shutil
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from joins.errors import OutputError
from joins.work import Work
from netsim.cost import load_profile
from netsim.network import PRESETS
from scenarios.config import FeedingConfig
from scenarios.formatting import format_bytes, format_duration
from scenarios.report.colours import COLOURS
from scenarios.report.run_page import write_report
from scenarios.report.summary import describe_verdict, settings_tables
from scenarios.run import Report
from scenarios.verdict import Check, Verdict
from tests.scenarios.toy_run import (
    ToyParameters,
    failed_verdict,
    passed_verdict,
    toy_config,
    toy_report,
)

REPLAY = "joinsim run toy --seed 1 --set 'bind.W=<10 & more>'"
SECTIONS = [
    "Who sends how much to whom",
    "Where the latency goes",
    "Latency and throughput over time",
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
        if {"style", "title"} & set(self.open):
            return
        self.text += data
        if "h2" in self.open:
            self.headings[-1] += data
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data.strip()


def page_of(report: Report) -> Page:
    write_report(report, report.directory / "report.html", REPLAY)
    return Page((report.directory / "report.html").read_text(encoding="utf-8"))


def row(page: Page, name: str) -> list[str]:
    (found,) = [cells for cells in page.rows if cells[0] == name]
    return found[1:]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Report:
    config = toy_config(**{"feeding.batch_rows": 50})
    return toy_report(tmp_path_factory.mktemp("good"), [range(5_000)], config=config)


@pytest.fixture(scope="module")
def page(good: Report) -> Page:
    return page_of(good)


def test_the_page_tells_the_run_from_verdict_to_versions_in_this_order(page: Page) -> None:
    assert page.headings == SECTIONS
    opening = page.text[: page.text.index(SECTIONS[0])]
    places = [opening.index(word) for word in ("toy-run", "SELECT", "PASS", "oracle", REPLAY)]
    assert places == sorted(places)


def test_the_page_tells_digest_and_figures_of_the_run(good: Report, page: Page) -> None:
    outcome = good.outcome
    assert str(outcome.digest) in page.text
    for number in (outcome.tuples, outcome.messages, good.verdict.produced):
        assert f"{number:,}" in page.text
    assert format_bytes(outcome.nbytes) in page.text
    p99_ns = good.latencies.percentile(99)
    assert p99_ns is not None
    assert format_duration(p99_ns) in page.text


def test_stage_table_and_trace_agree(good: Report, page: Page) -> None:
    stages = {role: row(page, role) for role in ("router", "joiner", "sink")}
    counts = [int(cells[0].replace(",", "")) for cells in stages.values()]
    assert sum(counts) == good.outcome.messages
    rack_ms = PRESETS["rack"].latency.mean_ns / 1e6
    for *_, waits, crosses, queues, service, together in stages.values():
        parts = [float(cell) for cell in (waits, crosses, queues, service)]
        assert sum(parts) == pytest.approx(float(together), abs=5e-4)
        assert float(crosses) >= rack_ms


def test_settings_and_streams_are_listed(page: Page) -> None:
    assert row(page, "T")[1:] == ["5,000", "0"]
    assert row(page, "joiners") == ["3"]
    assert row(page, "batch_rows") == ["50"]
    assert row(page, "preset") == ["rack (constant 25 µs, 25 Gb/s)"]
    assert row(page, "message_ps")[0].endswith(" ps")
    assert re.fullmatch(r"[\d.]+", row(page, "simpy")[0])


def test_of_a_live_run_no_simulated_network_or_cost_is_shown(good: Report) -> None:
    config = good.plan.config.model_copy(
        update={"clock": "live", "feeding": FeedingConfig(disorder=5_000_000)}
    )
    listed = settings_tables(replace(good, plan=replace(good.plan, config=config)))
    tables = {table.title: table.rows for table in listed}
    assert "Cost profile" not in tables
    assert tables["Network"] == [("inbox_messages", "16")]
    assert {("disorder", "5 ms"), ("bounded", "yes")} <= set(tables["Feeding"])


def test_notes_on_parameters_are_shown(
    good: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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


def test_the_page_needs_nothing_but_itself(good: Report, page: Page) -> None:
    text = (good.directory / "report.html").read_text(encoding="utf-8")
    assert "script" not in {tag for tag, _ in page.tags}
    assert "link" not in {tag for tag, _ in page.tags}
    for _, attributes in page.tags:
        for name in ("src", "href", "xlink:href", "data", "srcset"):
            assert (attributes.get(name) or "#").startswith(("#", "data:image/png;base64,"))
    assert set(re.findall(r"https?://[^\"'\s<)]*", text)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert "@import" not in text
    assert all(url.startswith("#") for url in re.findall(r"url\(([^)]*)\)", text))


def svgs(report: Report) -> list[ET.Element]:
    text = (report.directory / "report.html").read_text(encoding="utf-8")
    return [ET.fromstring(svg) for svg in re.findall(r"<svg .*?</svg>", text, re.DOTALL)]


def test_every_figure_is_described_captioned_and_has_units(good: Report, page: Page) -> None:
    figures = svgs(good)
    assert len(figures) == 5
    assert all(figure.get("aria-label") for figure in figures)
    assert [tag for tag, _ in page.tags].count("figcaption") == 5
    shown = ["".join(figure.itertext()) for figure in figures]
    for figure, labels in zip(
        shown,
        [
            ["joiner.0", "% busy", "found"],
            ["time of a message, mean (ms)", "waits in the inbox"],
            ["latency (ms)", "tuples/s", "matches/s", "p99", "time of the run (ms)"],
            ["messages waiting", "joiner.2", "time of the run (ms)"],
            ["busy (share of the run)", "max/mean"],
        ],
        strict=True,
    ):
        for label in labels:
            assert label in figure


def test_colours_of_figures_follow_the_theme_and_ids_of_figures_do_not_clash(good: Report) -> None:
    text = (good.directory / "report.html").read_text(encoding="utf-8")
    used = set(re.findall(r"var\(--(\w+)\)", text)) - {"mark"}
    assert used <= set(COLOURS)
    drawn = text[text.index("</style>") :]
    assert not [light for light, _ in COLOURS.values() if light in drawn]
    ids = [element.get("id") for svg in svgs(good) for element in svg.iter() if element.get("id")]
    assert len(ids) == len(set(ids))


def test_the_same_run_gives_the_same_page(good: Report, page: Page) -> None:
    first = (good.directory / "report.html").read_bytes()
    write_report(good, good.directory / "report.html", REPLAY)
    assert (good.directory / "report.html").read_bytes() == first


def test_the_most_loaded_joiner_is_named_with_its_skew(good: Report, page: Page) -> None:
    # Every message holds 50 tuples, and joiner i does i + 1 times the work of the first.
    profile = load_profile()
    assert row(page, "router")[0] == "100"
    work_ns = [profile.work_ns(Work(comparisons=50_000 * (i + 1))) for i in range(3)]
    floor_ns = profile.floor_ns(50, 50 * _ROW_BYTES)
    costs_ns = [floor_ns + cost_ns for cost_ns in work_ns]
    assert "joiner.2 was busy for" in page.text
    (skew,) = re.findall(r"max/mean ([\d.]+)", page.text)
    assert float(skew) == pytest.approx(3 * max(costs_ns) / sum(costs_ns), abs=0.006)


def test_offending_pairs_are_named_with_their_arrivals_in_order(tmp_path: Path) -> None:
    found = page_of(toy_report(tmp_path, [range(50), range(60)], verdict=failed_verdict()))
    assert found.headings == ["Offending pairs", *SECTIONS]
    assert "FAIL" in found.text
    assert row(found, "missing") == ["R", "77", "41", "router 1.250, joiner.1 2.500"]


def test_whatever_is_shown_is_text_and_never_markup(tmp_path: Path) -> None:
    verdict = passed_verdict(3)
    verdict.checks.append(Check(name="<b>odd</b>", passed=None, detail="<script>alert(1)</script>"))
    config = toy_config().model_copy(update={"name": "a<i>b&c"})
    report = toy_report(tmp_path, [range(30)], verdict=verdict, config=config)
    found = page_of(report)
    assert "script" not in {tag for tag, _ in found.tags}
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
    assert len(svgs(report)) >= 4
    assert (report.directory / "report.html").stat().st_size < SIZE_MAX


def test_a_run_without_files_of_results_has_a_page(good: Report, tmp_path: Path) -> None:
    (tmp_path / "trace.parquet").write_bytes((good.directory / "trace.parquet").read_bytes())
    assert page_of(replace(good, directory=tmp_path)).headings == SECTIONS


def test_a_place_that_cannot_be_written_is_named(good: Report, tmp_path: Path) -> None:
    (tmp_path / "trace.parquet").write_bytes((good.directory / "trace.parquet").read_bytes())
    (tmp_path / "report.html").mkdir()
    with pytest.raises(OutputError, match=r"cannot write to .*report\.html: Is a directory"):
        write_report(replace(good, directory=tmp_path), tmp_path / "report.html", REPLAY)


@pytest.mark.parametrize(
    ("verdict", "shown"),
    [
        (passed_verdict(12), "Exactly the 12 expected pairs came out, each once."),
        (passed_verdict(0), "No pair was expected and none came out"),
        (failed_verdict(), "5 pairs were expected, 4 came out: 1 missing. Failed: oracle."),
        (
            Verdict(claims_exact=False, expected=9, produced=12, duplicate=2, expired=1, late=4),
            "2 duplicate, 1 outside the window. This system makes no claim to exactness. "
            "4 late tuples were dropped.",
        ),
    ],
)
def test_the_verdict_is_described_in_words(verdict: Verdict, shown: str) -> None:
    assert shown in describe_verdict(verdict)
