"""Parameters that choose the index of a window: one of ours by its name, or the caller's own class.

A class is written down as ``module:Class``, by which other processes find it too. A file or a
command that names one is believed only where its module is here already: no text imports anything.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from multiprocessing import parent_process
from operator import attrgetter
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from joins.indexes.index import Index
from topologies.topology import TopologyError


def import_path(kind: type) -> str:
    """Return where a class can be imported from: ``module:Class``.

    Raise :exc:`TopologyError` for one that a function defines.
    """
    if "<locals>" in kind.__qualname__:
        raise TopologyError(f"{kind} cannot be imported, as a function defines it: move it out")
    return f"{kind.__module__}:{kind.__qualname__}"


class _OrOwnIndex:
    """For ``Annotated[Literal[...], OR_OWN_INDEX]``: one of these names, or an index class."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Return how pydantic checks values of this kind."""
        return core_schema.no_info_wrap_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return what editors check."""
        return {"anyOf": [handler(schema), {"type": "string", "format": "index"}]}

    def _check(self, value: Any, check_name: Callable[[Any], str]) -> str | type[Index]:
        if isinstance(value, str) and ":" in value:
            value = _named(value)
        if not isinstance(value, type):
            return check_name(value)
        import_path(value)  # which refuses what other processes could not find
        absent = [method for method in _METHODS if not hasattr(value, method)]
        if absent:
            raise ValueError(f"an index has {', '.join(_METHODS)}; it lacks {', '.join(absent)}")
        return value


_METHODS = ("__len__", *(name for name in vars(Index) if not name.startswith("_")))


def _named(path: str) -> Any:
    """Return the class that a text names, in a module that is here already."""
    module, _, name = path.partition(":")
    # A process of a pool has the name from the one that started it, which has checked it.
    if module not in sys.modules and parent_process() is None:
        raise ValueError(f"import {module} before, or pass the class: no text imports anything")
    try:
        return attrgetter(name)(import_module(module))
    except (AttributeError, ImportError) as error:
        raise ValueError(f"it cannot be imported: {error}") from None


OR_OWN_INDEX = _OrOwnIndex()
