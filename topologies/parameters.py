"""What may be set of a topology: each parameter's meaning, default, and the values allowed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from docstring_parser import Docstring, DocstringStyle, parse, parse_from_object
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
        for entry in _docstrings(documented).params:
            words = " ".join((entry.description or "").split())
            # As a person sets it: without Python's marks, and `none` as in a file.
            meaning = re.sub(r"\*(\w+)\*", r"\1", words).replace("``", "")
            meaning = re.sub(r"\bNone\b", "none", meaning)
            for name in entry.arg_name.split(", "):
                yield name, meaning


@cache
def _docstrings(documented: type) -> Docstring:
    """Return the docstring of a class; where that has no fields, with those beneath its fields."""
    found = parse(documented.__doc__ or "", DocstringStyle.NUMPYDOC)
    if not found.params and "__annotations__" in vars(documented):  # to read a file takes longer
        with suppress(TypeError, SyntaxError):  # its source is not there
            return parse_from_object(documented, DocstringStyle.NUMPYDOC)
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
