"""Whose checkpoint a folder has: a query goes on with its own, and takes over no other's."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from actors.whole_files import write_text
from joins.errors import DataError
from spark_bridge.hosted.stage import HostedQuery

_ABOUT = "joinsim.json"


def describe_query(
    query: HostedQuery, actors: Sequence[Any], partitions: int, arrivals: Path
) -> dict[str, Any]:
    """Return as JSON all that a run's state and results depend on; *actors* are by stage."""
    description = {
        "query": query.text,
        "streams": [[schema.stream, dict(schema.fields)] for schema in query.schemas],
        "arrivals": os.fspath(arrivals.absolute()),
        "actors": {
            name: [_name_of(spec.actor), _as_json(spec.arguments)]
            for name, spec in query.specs.items()
        },
        "wiring": {name: dict(ports) for name, ports in query.wiring.items()},
        "stages": actors,
        "partitions": partitions,
        "pairs": query.pairs,
        "seed": query.seed,
    }
    read_back: dict[str, Any] = json.loads(json.dumps(description))
    return read_back


def _as_json(value: Any) -> Any:
    """Return an argument of an actor as JSON has it; of an object its class, and its fields if any.

    Paths are left out: of the streams' files, what counts is the log of their arrivals.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(name): _as_json(one) for name, one in value.items()}
    if isinstance(value, list | tuple | range):
        return [_as_json(one) for one in value]
    if isinstance(value, Set):
        return sorted((_as_json(one) for one in value), key=repr)
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, partial):
        return _as_json([value.func, value.args, value.keywords])
    if isinstance(value, Path):
        return None
    if is_dataclass(value) and not isinstance(value, type):
        content = {field.name: _as_json(getattr(value, field.name)) for field in fields(value)}
        return {"class": _name_of(type(value))} | content
    return _name_of(value if hasattr(value, "__qualname__") else type(value))


def _name_of(code: Any) -> str:
    return f"{code.__module__}.{code.__qualname__}"


def claim_checkpoint(checkpoint: Path, description: Mapping[str, Any], *, results: Path) -> None:
    """Claim the folder *checkpoint* for the query of this *description*, which writes *results*.

    Continuing another query's would give an answer to neither, and so would results of both. Raise
    :exc:`DataError` for a checkpoint of another query, with what differs, and for results without
    one.
    """
    about = checkpoint / _ABOUT
    if not about.exists():
        if checkpoint.exists() and any(checkpoint.iterdir()):
            raise DataError(
                f"{checkpoint} is no checkpoint of joinsim's: there is no {_ABOUT} in it; name "
                "another folder"
            )
        if results.exists() and any(results.iterdir()):
            raise DataError(
                f"{results} has results of a query whose checkpoint is gone: delete them, or name "
                "another folder"
            )
        checkpoint.mkdir(parents=True, exist_ok=True)
        write_text(about, json.dumps(description, indent=1))
        return
    before = json.loads(about.read_text(encoding="utf-8"))
    if description != before:
        where, theirs, ours = _difference(before, description)
        raise DataError(
            f"{checkpoint} is the checkpoint of another query: its {where} is "
            f"{_short(theirs)}, here it is {_short(ours)}; name another folder, or "
            "delete it and the results next to it to begin anew"
        )


def _difference(theirs: Any, ours: Any, *where: str) -> tuple[str, Any, Any]:
    """Return the first place where two unequal values of JSON differ, and both values."""
    sides = [dict(enumerate(side)) if isinstance(side, list) else side for side in (theirs, ours)]
    if all(isinstance(side, dict) for side in sides):
        one, other = sides
        name = next(n for n in [*other, *one] if n not in one or one[n] != other.get(n))
        return _difference(one.get(name), other.get(name), *where, str(name))
    return ".".join(where), theirs, ours


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    text = " ".join(text.split())
    return text if len(text) <= 200 else text[:200] + "..."
