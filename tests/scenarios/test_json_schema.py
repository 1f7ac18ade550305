"""The schema of scenario files describes every file of ours, and points at what is wrong."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from scenarios.json_schema import scenario_schema
from scenarios.scenario_files import catalog, parse_toml


@cache
def validator() -> Draft202012Validator:
    schema = scenario_schema()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def complaints(values: dict[str, Any]) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in validator().iter_errors(values)]


def test_every_scenario_of_the_catalog_fits() -> None:
    for name, path in catalog().items():
        assert complaints(parse_toml(path.read_text(encoding="utf-8"))) == [], name


@pytest.mark.parametrize(
    ("toml", "where"),
    [
        ("rowz = 3", "$"),
        ("rows = 0", "$.rows"),
        ("network = { latency = true }", "$.network.latency"),
        ("scales.smoke.network.preset = 'moon'", "$.scales.smoke.network.preset"),
        ("topology = 'split_join'\nparameters = { fanout = 1 }", "$.parameters.fanout"),
        ("topology = 'split_join'\nparameters = { fnout = 2 }", "$.parameters"),
        ("study.axis.logg = true", "$.study.axis"),
    ],
)
def test_a_mistake_is_found_where_it_is(toml: str, where: str) -> None:
    assert [line.partition(":")[0] for line in complaints(parse_toml(toml))] == [where]


def test_keys_have_the_meanings_of_their_docstrings() -> None:
    schema = scenario_schema()
    described = {
        f"{name}.{key}": value.get("description")
        for name, section in [("", schema), *schema["$defs"].items()]
        for key, value in section.get("properties", {}).items()
    }
    assert described["NetworkConfig.cores"] == "Cores of each site."
    assert "such as joiner.*;" in str(described["Loss.sender"])
    without = {key for key, text in described.items() if not text}
    assert without == {".study", "Changes.study"}  # a section with a description of its own


def test_every_key_of_a_run_or_a_study_has_a_meaning_of_its_own() -> None:
    schema = scenario_schema()
    for name, section in [("", schema), *schema["$defs"].items()]:
        keys = section.get("properties", {}).values()
        texts = [text for key in keys if (text := key.get("description"))]
        if not name.endswith("Survey"):  # theirs are described in groups
            assert len(set(texts)) == len(texts), name
