"""The files that build, ship and test joinsim name things that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_all_extras_are_pinned() -> None:
    pinned = {
        line.partition("==")[0] for line in (ROOT / "requirements.lock").read_text().splitlines()
    }
    wanted = [
        *PROJECT["dependencies"],
        *(name for extra in PROJECT["optional-dependencies"].values() for name in extra),
    ]
    assert {re.split(r"[<>=]", name)[0] for name in wanted} <= pinned


def test_the_workflow_runs_the_tests_on_each_python_from_the_oldest_allowed() -> None:
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    (listed,) = re.findall(r"python: \[(.*)\]", workflow)
    versions = [text.strip('" ') for text in listed.split(",")]
    assert PROJECT["requires-python"] == f">={versions[0]}"
    assert len(versions) == 3
    assert "- run: make test" in workflow


def test_the_container_has_java_and_is_not_root() -> None:
    lines = (ROOT / "Containerfile").read_text()
    assert re.search(r"openjdk-\d+-jre", lines)
    assert re.findall(r"^USER (\d+)", lines, re.MULTILINE)[-1] != "0"
    for source in re.findall(r"^COPY (\S+)", lines, re.MULTILINE):
        assert (ROOT / source).exists()
