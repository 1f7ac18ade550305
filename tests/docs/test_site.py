"""The documentation builds without a warning, its links lead somewhere, its code runs."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import pytest
from sybil import Document, Example, Region, Sybil
from sybil.parsers.myst import CodeBlockParser, PythonCodeBlockParser

from joinsim.cli.command_line import main
from scenarios import scenario_files
from scenarios.study.study import load_study

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    path for path in DOCS.rglob("*.md") if "_build" not in path.parts and "```" in path.read_text()
)
_ON_SPARK = ("tutorial", "compare", "figures", "own-data", "spark")
ENGINES = {"ray": "ray", **dict.fromkeys(_ON_SPARK, "spark")}
"""Pages that use one of them: they run where the other tests of it do, with the same Spark."""


def run_console(example: Example) -> None:
    """Run each ``$ joinsim ...`` of a block, as this process; none may fail."""
    text = example.parsed.replace("\\\n", " ")
    for command in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        words = shlex.split(command)
        assert words[0] == "joinsim"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.argv", words)
            with pytest.raises(SystemExit) as ended:
                main()
        assert ended.value.code in (0, 2), f"{command} ended with {ended.value.code}"


def read_toml(example: Example) -> None:
    """Check a scenario or a study as the command line does."""
    path = Path("block.toml")
    path.write_text(example.parsed)
    scenario_files.load(str(path), scale="smoke")
    load_study(str(path), scale="smoke")


def no_other_language(document: Document) -> list[Region]:
    found = set(re.findall(r"^ *```(\w+)$", document.text, re.MULTILINE))
    assert found <= {"python", "console", "toml", "text"}, f"{document.path}: {found}"
    return []


SYBIL = Sybil(
    parsers=[
        PythonCodeBlockParser(),
        CodeBlockParser("console", run_console),
        CodeBlockParser("toml", read_toml),
        no_other_language,
    ]
)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            id=str(page.relative_to(DOCS)),
            marks=pytest.mark.xdist_group(ENGINES.get(page.stem, page.stem)),
        )
        for page in PAGES
    ],
)
def test_the_code_of_a_page_runs(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    prepared_once: None,
) -> None:
    if ENGINES.get(page.stem) == "spark":
        request.getfixturevalue("spark")
    monkeypatch.chdir(tmp_path)
    module = ModuleType("page")  # as a script or a notebook is one, whose classes can be imported
    monkeypatch.setitem(sys.modules, module.__name__, module)
    document = SYBIL.parse(page)
    document.namespace = vars(module)
    for example in document.examples():
        example.evaluate()


def test_links_of_the_readme_lead_somewhere() -> None:
    linked = re.findall(r"\]\(([^)]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(linked) > 20
    assert [path for path in linked if not (ROOT / path).exists()] == []


def test_paths_that_pages_name_exist() -> None:
    named = {
        name
        for page in DOCS.rglob("*.md")
        if "_build" not in page.parts
        for name in re.findall(
            r"`((?:joinsim|joins|actors|netsim|topologies|spark_bridge|scenarios|examples)/[\w/.]+)`",
            page.read_text(encoding="utf-8"),
        )
    }
    assert len(named) > 40
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


class Links(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value for name, value in attrs if value}
        self.anchors |= {found["id"]} if "id" in found else set()
        if tag == "a" and "href" in found:
            self.targets.append(found["href"])
        elif tag in ("link", "img", "script"):
            self.loaded += [found[name] for name in ("href", "src") if name in found]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Links]:
    """Build the site strictly; return its pages."""
    out = tmp_path_factory.mktemp("site")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "sphinx",
            "-q",
            "-W",
            "-b",
            "html",
            "-d",
            out / "doctrees",
            DOCS,
            out,
        ],
        check=True,
        timeout=300,
    )
    return {page: Links(page) for page in out.rglob("*.html")}


def test_links_lead_somewhere(site: dict[Path, Links]) -> None:
    broken = []
    for page, links in site.items():
        for target in links.targets:
            if target.startswith(("http://", "https://", "#")) and target != "#":
                continue
            path, _, anchor = target.partition("#")
            there = (page.parent / path).resolve() if path else page
            anchors = site[there].anchors if there in site else set()
            if not there.exists() or (anchor and there in site and anchor not in anchors):
                broken.append(f"{page.name}: {target}")
    assert broken == []


def test_pages_load_nothing_from_elsewhere(site: dict[Path, Links]) -> None:
    loaded = {target for links in site.values() for target in links.loaded}
    assert [target for target in sorted(loaded) if re.match(r"(https?:)?//", target)] == []


def test_each_topology_has_a_picture_and_its_parameters(site: dict[Path, Links]) -> None:
    from topologies import TOPOLOGIES
    from topologies.parameters import describe

    text = "".join(
        page.read_text(encoding="utf-8") for page in site if page.parent.name == "systems"
    )
    for name, topology in TOPOLOGIES.items():
        entry = f'aria-label="The actors of {name}"'
        assert entry in text, f"no page of docs/systems has an entry {{system}} {name}"
        for parameter in describe(topology):
            assert f">{parameter.name}<" in text, (name, parameter.name)
