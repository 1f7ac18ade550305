"""Reads, checks and changes configurations: scenarios by name, TOML files, and settings.

`schema` is the JSON schema of the files, by which editors complete and check them. It is
made from the types that check a file. It says what each key may be, but not what depends on several
keys, so a file that fits it may still be refused, with a reason.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from pydantic import BaseModel, TypeAdapter, ValidationError

from joins.errors import JoinsimError, suggest
from netsim.faults import LinkKind
from scenarios.config import (
    SCALES,
    FeedingConfig,
    NetworkConfig,
    RecoveryConfig,
    RunConfig,
    with_preset,
)
from topologies import TOPOLOGIES

T = TypeVar("T")

CATALOG = Path(__file__).resolve().parent / "catalog"
STUDY = "study"
"""The section that makes a scenario a study of many runs."""

_EXTENDS = "extends"
_NEEDED = {
    "model_type": "a section is needed, of keys and values",
    "model_attributes_type": "a section is needed, of keys and values",
    "tuple_type": "a list is needed",
    "too_short": "at least {min_length} must be there",
}
"""Kinds of mistakes that pydantic names by Python's types, to what a person has to write."""
_SECTIONS: dict[str, type[BaseModel]] = {
    "network": NetworkConfig,
    "feeding": FeedingConfig,
    "recovery": RecoveryConfig,
}
_OPTIONAL = ("recovery", "survey")
"""Sections that are begun where one of their keys is set."""
_SHOWN_MAX = 200  # characters of a value that is wrong
_DIGITS_MAX = 1000  # of a number in TOML; Python itself refuses thousands, without their place


class ConfigError(JoinsimError, ValueError):
    """A configuration that cannot be run; names the file and key, and what is allowed.

    Examples
    --------
    >>> import joinsim as js
    >>> try:
    ...     js.show("split_join", peas=3)
    ... except js.ConfigError as error:
    ...     print(str(error).partition(";")[0])
    parameters of split_join: peas: there is no such key
    """


@cache
def catalog() -> dict[str, Path]:
    """Return the files of our own scenarios by name."""
    return {path.stem: path for path in sorted(CATALOG.glob("*.toml"))}


def load(name_or_path: str, *, scale: str = "laptop") -> RunConfig:
    """Read a scenario by name, or a TOML file, at a scale; of a study, what its points share.

    Raise :exc:`ConfigError` naming the scenarios there are, or the key that is wrong.
    """
    values = read(name_or_path, scale=scale)
    values.pop(STUDY, None)
    return build(values, where=name_or_path)


def read(name_or_path: str, *, scale: str = "laptop") -> dict[str, Any]:
    """Return what a scenario's TOML file says at a scale, of which only the sections are checked.

    A file that ``extends`` a scenario says only what it changes of it.

    Raise :exc:`ConfigError` naming the scenarios there are, or what is no TOML or no section.
    """
    path = Path(name_or_path)
    values = _read_toml(path) if path.suffix.lower() == ".toml" else _read_own(name_or_path)
    values = {key: value for key, value in values.items() if key != _EXTENDS}
    values = at_scale(values, scale, where=name_or_path)
    _section_at(values, [STUDY, "words"], name_or_path)
    return values


def at_scale(values: Mapping[str, Any], scale: str, *, where: str) -> dict[str, Any]:
    """Return *values* with what they change at a scale; raise :exc:`ConfigError` as `read` does."""
    return _merge(values, _section_at(values, ["scales", scale], where))


def _section_at(values: Mapping[str, Any], path: Sequence[str], where: str) -> Mapping[str, Any]:
    """Return the section that *path* leads to, empty if there is none.

    Raise :exc:`ConfigError` naming *where* something else is in its place.
    """
    for depth, name in enumerate(path, 1):
        values = values.get(name, {})
        if not isinstance(values, dict):
            key = ".".join(path[:depth])
            needed = _NEEDED["model_type"]
            raise ConfigError(f"{where}: {key} = {show_value(values)}: {needed}")
    return values


def is_study(name_or_path: str) -> bool:
    """Return whether a scenario is a study of many runs."""
    return STUDY in read(name_or_path)


@cache
def _read_own(name: str) -> dict[str, Any]:
    """Return what one of our own scenarios says, once for all; it is not to be changed."""
    scenarios = catalog()
    if name in scenarios:
        return _read_toml(scenarios[name])
    if name.split()[:1] and name.split()[0].lower() == "select":
        raise ConfigError(
            f"{name!r} is a query, and without data there is nothing to join: pass the data of its "
            "streams, too, as in joinsim.advise(query, streams)"
        )
    raise ConfigError(
        f"no scenario is called {name!r}: {suggest(name, scenarios)}; or give a TOML file"
    )


def _read_toml(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise ConfigError(f"there is no file {path}")
    try:
        # Windows begins a file with a BOM.
        values = parse_toml(path.read_text(encoding="utf-8-sig"))
    except (UnicodeDecodeError, ValueError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None
    allowed = [*RunConfig.model_fields, _EXTENDS, STUDY]
    for key in values:
        if key not in allowed:
            raise ConfigError(f"{path}: {key}: {_no_such_key(key, allowed)}")
    values.setdefault("name", re.sub(r"[^\w.-]", "-", path.stem).lstrip("."))
    if _EXTENDS in values:
        name = values[_EXTENDS]
        ours = list(catalog())
        if name not in ours:
            raise ConfigError(
                f"{path}: {_EXTENDS} = {name!r}: a file extends one of our scenarios; "
                f"{suggest(str(name), ours)}"
            )
        extended = _read_own(name)
        values = _merge(extended | {"title": "", "figure": None}, values)
    return values


def parse_toml(text: str) -> dict[str, Any]:
    """Return the values of a TOML document.

    Raise :exc:`ValueError` with the place of what is no TOML, or beyond what Python's parser reads.
    """
    for number in re.finditer(rf"[0-9][0-9_]{{{_DIGITS_MAX},}}", text):
        digits, line = len(number[0]), text.count("\n", 0, number.start()) + 1
        raise ValueError(
            f"a number of {digits:,} digits (at line {line}); at most {_DIGITS_MAX:,} are read"
        )
    try:
        return tomllib.loads(text)
    except RecursionError:
        depth, deepest = 0, (0, 0)
        for line, words in enumerate(text.splitlines(), 1):
            for bracket in re.findall(r"[\[{}\]]", words):
                depth += 1 if bracket in "[{" else -1
                deepest = max(deepest, (depth, -line))
        raise ValueError(
            f"brackets are nested {deepest[0]:,} deep (at line {-deepest[1]})"
        ) from None


def build(values: dict[str, Any], *, where: str) -> RunConfig:
    """Check *values* and return the configuration, as `validate` does."""
    return validate(RunConfig, values, where=where)


def validate(kind: type[T], values: Any, *, where: str) -> T:
    """Check *values* and return the section, dataclass of parameters, or value that they describe.

    Raise :exc:`ConfigError` that names *where* they come from and every key that is wrong.
    """
    try:
        return TypeAdapter(kind).validate_python(values)
    except ValidationError as error:
        raise ConfigError(f"{where}: {explain(error, kind)}") from None


def change(config: RunConfig, settings: Mapping[str, Any]) -> RunConfig:
    """Return *config* with *settings* changed, keys as on the command line.

    A key of the configuration, dotted inside a section (``network.preset``, ``bind.W``,
    ``streams.0.where``); any other key is a parameter of the topology. Where that changes, the
    parameters of the other one are gone.
    """
    values = config.model_dump()
    if settings.get("topology", config.topology) != config.topology:
        values["parameters"] = {}
    for key, value in settings.items():
        section, *rest = key.split(".")
        if rest:
            values = _changed(values, [section, *rest], value, key)
        elif key in values:
            values[key] = with_preset(value) if key == "network" else value
        else:
            values["parameters"] = values["parameters"] | {key: value}
    return build(values, where="settings")


def _changed(section: Any, path: list[str], value: Any, key: str) -> Any:
    """Return *section* with what *path* leads to replaced; *key* is the path as it was written."""
    if not path:
        return value
    name, *rest = path
    if isinstance(section, (list, tuple)) and name.isdigit() and int(name) < len(section):
        at = int(name)
        return [*section[:at], _changed(section[at], rest, value, key), *section[at + 1 :]]
    if isinstance(section, (list, tuple)):
        raise ConfigError(
            f"{key}: {name!r} is none of its {len(section)}, counted from 0; a list can also be "
            "set as a whole, as in faults = [{ ... }, { ... }]"
        )
    inner = section.get(name) if isinstance(section, dict) else None
    if inner is None and name in _OPTIONAL:
        inner = {}
    if not isinstance(section, dict) or (rest and not isinstance(inner, (dict, list, tuple))):
        known = section if isinstance(section, dict) else {}
        sections = sorted(k for k, v in known.items() if isinstance(v, (dict, tuple)))
        raise ConfigError(f"{key}: there is no section {name!r}; {suggest(name, sections)}")
    return section | {name: _changed(inner, rest, value, key)}


def explain(error: ValidationError, model: type) -> str:
    """Return for each mistake which key of *model* is wrong, what it is, and what is allowed."""
    lines = []
    for mistake in error.errors():
        key = ".".join(str(part) for part in mistake["loc"])
        if mistake["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
            name, allowed = str(mistake["loc"][-1]), _keys(model, mistake["loc"][:-1])
            place = place_of(name) if is_dataclass(model) else ""  # of a system's parameters
            lines.append(f"{key}: {_no_such_key(name, allowed)}{place}")
        elif mistake["type"] == "missing":
            lines.append(f"{key}: is missing")
        elif mistake["type"].startswith("union_tag"):
            lines.append(_wrong_tag(key, mistake["ctx"]))
        else:
            message = mistake["msg"].removeprefix("Value error, ")
            if mistake["type"] in _NEEDED:
                message = _NEEDED[mistake["type"]].format(**mistake.get("ctx", {}))
            if not key:  # of several keys, which the message names
                lines.append(message)
                continue
            if mistake["type"] == "model_type":
                message += f"; there are {', '.join(_keys(model, mistake['loc']))}"
            value = show_value(mistake["input"])
            lines.append(f"{key} = {value}: {message[0].lower()}{message[1:]}")
    return "; ".join(lines)


def place_of(key: str) -> str:
    """Return in which section a *key* is that was taken for a parameter; nothing if in none."""
    places = [f"{name}.{key}" for name, kind in _SECTIONS.items() if key in kind.model_fields]
    return f"; but there is {places[0]}" if places else ""


def _no_such_key(key: str, allowed: Sequence[str]) -> str:
    """Return what to answer an unknown *key*: those *allowed*, and where else it may belong."""
    where = ""
    if "set" in allowed:
        where = f"; what runs with other values goes in set, as in set = {{ {key} = ... }}"
    elif "parameters" in allowed and key in _all_parameters():
        where = f"; a system's parameter goes in parameters, as in parameters = {{ {key} = ... }}"
    elif "transport" in allowed and key.split("_")[0] in (*get_args(LinkKind), "faults"):
        where = '; what goes wrong goes in faults, as in faults = [{ kind = "loss", rate = 0.1 }]'
    return f"there is no such key; {suggest(key, allowed)}{where}"


def show_value(value: object) -> str:
    """Return a wrong value for a message: in one line, and cut where it is long."""
    shown = " ".join(repr(value).split("\n"))
    return shown if len(shown) <= _SHOWN_MAX else shown[:_SHOWN_MAX] + " ..."


def _wrong_tag(key: str, found: dict[str, Any]) -> str:
    """Return which kinds a section can be of, where it is of none of them."""
    tag, name = found.get("tag"), found["discriminator"].strip("'")
    if tag is None:
        return f"{key}.{name}: is missing"
    kinds = [kind.strip("'") for kind in found["expected_tags"].split(", ")]
    return f"{key}.{name} = {tag!r}: {suggest(tag, kinds)}"


def _all_parameters() -> set[str]:
    """Return the names of all parameters of all topologies."""
    return {one.name for kind in TOPOLOGIES.values() for one in fields(kind.parameters_type)}


def _keys(model: type, path: tuple[int | str, ...]) -> list[str]:
    """Return the keys of the section of *model* that *path* leads to."""
    models = [model]
    for part in path:
        if isinstance(part, int):
            continue
        if len(models) > 1:  # a section of several kinds: its own is the next part of the path
            models = [one for one in models if part in _kinds(one)] or models[:1]
        elif part in (hints := get_type_hints(models[0])):  # else a name in a mapping of sections
            models = _models_in(hints[part])
        if not models:
            return []
    found = models[0]
    if is_dataclass(found):
        return [field.name for field in fields(found)]
    return list(found.model_fields) if issubclass(found, BaseModel) else []


def _models_in(annotation: Any) -> list[type]:
    """Return the models and dataclasses that a type is made of, at any depth."""
    if isinstance(annotation, type) and (
        is_dataclass(annotation) or issubclass(annotation, BaseModel)
    ):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models_in(part)]


def _kinds(model: type) -> set[str]:
    """Return the words that a field of *model* alone may have: the names of its kind."""
    return {word for hint in get_type_hints(model).values() for word in get_args(hint)}


def _merge(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(values)
    for key, change_ in changes.items():
        old = merged.get(key)
        both = isinstance(old, dict) and isinstance(change_, dict)
        merged[key] = _merge(old, change_) if both else change_  # type: ignore[arg-type]
    return merged


DRAFT = "https://json-schema.org/draft/2020-12/schema"
_ONE_OR_MORE = ("panel", "scale", "fields", "selectivity", "rate_tps", "window_s")
"""Keys whose list of one may be written without brackets."""
_TEXT_OR_NUMBER = ["string", "integer"]


def schema() -> dict[str, Any]:
    """Return the JSON schema of scenario files, by which editors complete and check TOML.

    Write it into a file, and name that in the first line of a TOML file: ``#:schema FILE``.

    Examples
    --------
    >>> import joinsim as js
    >>> js.schema()["properties"]["topology"]["type"]
    'string'
    """
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
    documented = _documented(model.model_json_schema(), model)
    kinds = {kind.__name__: kind for kind in _sections(model)}
    for name, definition in documented["$defs"].items():
        _documented(definition, kinds[name])
    return documented


def _sections(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the sections in a type, and those in their keys."""
    for kind in _models_in(annotation):
        if issubclass(kind, BaseModel):
            yield kind
            for field in kind.model_fields.values():
                yield from _sections(field.annotation)


def _documented(generated: dict[str, Any], kind: type) -> dict[str, Any]:
    """Describe a *generated* schema and its keys by the docstrings of *kind*; remove its titles."""
    from docstring_parser import parse

    from topologies.parameters import meanings

    generated["description"] = parse(generated.get("description", "")).short_description or ""
    known = dict(meanings(kind))
    for name, value in generated.get("properties", {}).items():
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
    return generated
