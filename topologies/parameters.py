"""What may be set of a topology: each parameter's meaning, default, and the values allowed."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from inspect import getsource
from itertools import pairwise
from types import ModuleType
from typing import Any

from docstring_parser import DocstringStyle, parse
from pydantic import TypeAdapter
from quantiphy import Quantity

from topologies.topology import Topology


@dataclass(frozen=True, kw_only=True)
class Described:
    """One parameter of a topology."""

    name: str
    meaning: str
    """As its class documents it, in the words there."""
    default: str
    """The value where none is set, as a person would set it."""
    allowed: str
    """In words."""


def describe(topology: Topology[Any]) -> list[Described]:
    """Return the parameters of *topology*, those that it shares with others first."""
    known = dict(meanings(topology.parameters_type))
    defaults = topology.parameters_type()
    schema = TypeAdapter(topology.parameters_type).json_schema()
    return [
        Described(
            name=name,
            meaning=known.get(name, ""),
            default=written(getattr(defaults, name), values),
            allowed=allowed_words(values),
        )
        for name, values in schema["properties"].items()
    ]


def meanings(documented_type: type) -> Iterator[tuple[str, str]]:
    """Yield each field with its meaning in the docstrings of a class and its bases."""
    for documented in reversed(documented_type.__mro__):
        for names, description in _described_fields(documented):
            words = " ".join(description.split())
            # As a person sets it: without Python's marks, and `none` as in a file.
            meaning = re.sub(r"\*(\w+)\*", r"\1", words).replace("``", "")
            meaning = re.sub(r"\bNone\b", "none", meaning)
            for name in names.split(", "):
                yield name, meaning


@cache
def _described_fields(documented: type) -> list[tuple[str, str]]:
    """Return the fields in the docstring of a class; if it has none, those with a text beneath."""
    found = parse(documented.__doc__ or "", DocstringStyle.NUMPYDOC)
    if not found.params and "__annotations__" in vars(documented):
        with suppress(KeyError, TypeError, OSError, SyntaxError):  # its source is not there
            return _texts_beneath(sys.modules[documented.__module__])[documented.__qualname__]
    return [(entry.arg_name, entry.description or "") for entry in found.params]


@cache
def _texts_beneath(module: ModuleType) -> dict[str, list[tuple[str, str]]]:
    """Return the fields with a text beneath them of each class in a module, which is read once."""
    found: dict[str, list[tuple[str, str]]] = {}

    def look_in(node: ast.AST, prefix: str) -> None:
        for one in ast.iter_child_nodes(node):
            if isinstance(one, ast.ClassDef):
                found[prefix + one.name] = [
                    (name, text)
                    for field, beneath in pairwise(one.body)
                    if isinstance(field, ast.AnnAssign) and isinstance(beneath, ast.Expr)
                    if (name := getattr(field.target, "id", None))
                    if isinstance(text := getattr(beneath.value, "value", None), str)
                ]
                look_in(one, f"{prefix}{one.name}.")
            elif isinstance(one, ast.FunctionDef):
                look_in(one, f"{prefix}{one.name}.<locals>.")
            elif isinstance(one, ast.stmt):
                look_in(one, prefix)

    look_in(ast.parse(getsource(module)), "")
    return found


def written(value: Any, schema: dict[str, Any]) -> str:
    """Return a default as a person would write it, a quantity with its unit."""
    if value is None:
        return "none"
    match schema.get("format"):
        case "duration":
            return Quantity(value / 1e9, "s").render()
        case "bandwidth":
            return Quantity(value, "bps").render()
    return str(value).lower() if isinstance(value, bool) else str(value)


def allowed_words(schema: dict[str, Any]) -> str:  # noqa: C901  (a kind of value a case)
    """Describe the values that a JSON schema admits, as far as parameters use it."""
    match schema:
        case {"anyOf": [one, {"type": "null"}]}:
            return f"{allowed_words(one)}; or none"
        case {"enum": words}:
            return ", ".join(map(str, words))
        case {"format": "duration"}:
            return "a time, such as '25 ms'"
        case {"format": "bandwidth"}:
            return "a bandwidth, such as '1 Mbps'"
        case {"anyOf": [{"enum": words}, {"format": "class"}]}:
            return f"{', '.join(words)}; or, from Python, a class of your own"
        case {"type": "boolean"}:
            return "true, false"
        case {"exclusiveMinimum": above, "maximum": most}:
            return f"above {above:,}, up to {most:,}"
        case {"minimum": least, "maximum": most} if most < 2**62:
            return f"{least:,} to {most:,}"
        case {"minimum": least}:
            return f"{least:,} or more"
        case {"const": word}:
            return str(word)
        case {"type": "number" | "integer"}:
            return "a number"
        case {"type": ["number", "string", "integer"] | ["string", "integer"]}:
            return "a number, or text"
        case {"type": "array"}:
            return "a list"
        case {"type": "string"}:
            return "text"
        case _:
            return "a table"
