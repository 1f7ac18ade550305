"""Parameters that choose the index of a window: one of ours by its name, or the caller's own class.

A class is written down as ``module:Class``, by which other processes, files and the command line
find it too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

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

    def _check(self, value: Any, check_name: Callable[[Any], str]) -> str:
        if isinstance(value, type):
            value = import_path(value)
        if not (isinstance(value, str) and ":" in value):
            return check_name(value)
        from joins.indexes.windows.window_indexes import find_window_index

        find_window_index(value)
        return value


OR_OWN_INDEX = _OrOwnIndex()
