"""The JSON schema of scenario files, by which editors complete and check them.

It is made from the types that check a file. It says what each key may be, but not what depends on
several keys, so a file that fits it may still be refused, with a reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel, TypeAdapter

from scenarios.config import SCALES, RunConfig
from scenarios.scenario_files import catalog
from topologies import TOPOLOGIES

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_ONE_OR_MORE = ("panel", "scale", "fields", "selectivity", "rate_tps", "window_s")
"""Keys whose list of one may be written without brackets."""
_TEXT_OR_NUMBER = ["string", "integer"]


def scenario_schema() -> dict[str, Any]:
    """Return the schema of a scenario's or a study's TOML file."""
    from scenarios.study.section import StudySection  # runs need none of it

    run, study = _schema_of(RunConfig), _schema_of(StudySection)
    for part in (study, *study["$defs"].values()):
        part["properties"] = {key: _or_word(value) for key, value in part["properties"].items()}
    definitions = {
        **run.pop("$defs"),
        **study.pop("$defs"),
        "StudySection": study,
        "Changes": _changes(run),
        "Word": {"type": "string", "pattern": r"^\{\w+\}$"},
    }
    changes = {"$ref": "#/$defs/Changes"}
    run["properties"] |= {
        "extends": {
            "description": "The scenario that this one changes: it says only what differs.",
            "enum": sorted(catalog()),
        },
        "study": {"$ref": "#/$defs/StudySection"},
        "scales": {
            "description": "Per scale, what it changes of all this.",
            "type": "object",
            "additionalProperties": False,
            "properties": dict.fromkeys(SCALES, changes),
        },
    }
    # With `extends`, and in a scale, a section says only what differs.
    for one in (run, *definitions.values()):
        one.pop("required", None)
    study["properties"] |= {
        "words": {"description": "Values by name, for {name} in texts.", "type": "object"},
        "measured": {
            "description": "Panels that come after the others, and stay where a scale has others.",
            "$ref": "#/$defs/StudySection/properties/panels",
        },
    }
    return {
        "$schema": DRAFT,
        "title": "A joinsim scenario",
        **run,
        "allOf": [_parameters_of(name) for name in TOPOLOGIES],
        "$defs": definitions,
    }


def _changes(run: dict[str, Any]) -> dict[str, Any]:
    """Return what a scale may change: any key but the scales themselves."""
    keys = {name: value for name, value in run["properties"].items() if name != "scales"}
    return {
        "description": "What a scale changes.",
        "type": "object",
        "additionalProperties": False,
        "properties": keys | {"study": {"$ref": "#/$defs/StudySection"}},
    }


def _or_word(value: dict[str, Any]) -> dict[str, Any]:
    """Return a key of a study that may also be one of its ``words``."""
    described = {"description": value.pop("description")} if "description" in value else {}
    return {**described, "anyOf": [value, {"$ref": "#/$defs/Word"}]}


def _parameters_of(name: str) -> dict[str, Any]:
    """Return the rule for ``parameters`` where the topology is *name*."""
    kind = TOPOLOGIES[name].parameters_type
    parameters = _documented(TypeAdapter(kind).json_schema(), kind)
    for value in parameters["properties"].values():
        if value.get("type") == "string" and "enum" not in value:
            value["type"] = _TEXT_OR_NUMBER  # a number of tuples may be written as one
    return {
        "if": {"properties": {"topology": {"const": name}}, "required": ["topology"]},
        "then": {"properties": {"parameters": parameters}},
    }


def _schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of *model*, each key with its meaning from the docstrings."""
    schema = _documented(model.model_json_schema(), model)
    kinds = {kind.__name__: kind for kind in _sections(model)}
    for name, definition in schema["$defs"].items():
        _documented(definition, kinds[name])
    return schema


def _sections(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the sections in a type, and those in their keys."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        for field in annotation.model_fields.values():
            yield from _sections(field.annotation)
    for part in get_args(annotation):
        yield from _sections(part)


def _documented(schema: dict[str, Any], kind: type) -> dict[str, Any]:
    """Describe a schema and its keys by the docstring of *kind*; remove generated titles."""
    from docstring_parser import parse

    from topologies.parameters import meanings

    schema["description"] = parse(schema.get("description", "")).short_description or ""
    known = dict(meanings(kind))
    for name, value in schema.get("properties", {}).items():
        value.pop("title", None)
        if "$ref" not in value:
            for mark in ("ge", "le"):  # pydantic's, of types with a reader of their own
                value.pop(mark, None)
        if name in known:
            value["description"] = known[name]
        for kind_of in value.get("anyOf", [dict(value)]):
            if kind_of.get("type") == "array" and name in _ONE_OR_MORE:
                others = value.pop("anyOf", [{"type": "array", "items": value.pop("items", {})}])
                value.pop("type", None)
                value["anyOf"] = [kind_of["items"], *others]
    return schema
