"""Parameters that choose a structure: one of ours by its name, or the caller's own class.

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
from joins.state import Stateful
from topologies.topology import TopologyError


def import_path(kind: type) -> str:
    """Return where a class can be imported from: ``module:Class``.

    Raise :exc:`TopologyError` for one that a function defines.
    """
    if "<locals>" in kind.__qualname__:
        raise TopologyError(f"{kind} cannot be imported, as a function defines it: move it out")
    return f"{kind.__module__}:{kind.__qualname__}"


def check_path(kind: type) -> None:
    """Raise :exc:`TopologyError` where another class is found by the path of *kind*.

    That one would run in its place. Where none is found, `OrOwnClass` refuses the path.
    """
    path = import_path(kind)
    try:
        found = attrgetter(kind.__qualname__)(sys.modules.get(kind.__module__))
    except AttributeError:
        return
    if found is not kind:
        raise TopologyError(
            f"{path} is another class than the one that was passed; give each a name of its own"
        )


class OrOwnClass:
    """For ``Annotated[Literal[...], OrOwnClass(check)]``: one of these names, or a class.

    *check* raises :exc:`ValueError` for a class that is not what is wanted.
    """

    def __init__(self, check: Callable[[type], None]) -> None:
        self._check_class = check

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Return how pydantic checks values of this kind."""
        return core_schema.no_info_wrap_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return what editors check."""
        return {"anyOf": [handler(schema), {"type": "string", "format": "class"}]}

    def _check(self, value: Any, check_name: Callable[[Any], str]) -> str | type:
        if isinstance(value, str) and ":" in value:
            value = _named(value)
        if not isinstance(value, type):
            return check_name(value)
        import_path(value)  # which refuses what other processes could not find
        self._check_class(value)
        return value


_METHODS = ("__len__", *(name for name in vars(Index) if not name.startswith("_")))


def _check_index(kind: type) -> None:
    absent = [method for method in _METHODS if not hasattr(kind, method)]
    if absent:
        raise ValueError(f"an index has {', '.join(_METHODS)}; it lacks {', '.join(absent)}")
    if not issubclass(kind, Stateful):  # its snapshot could not be read again
        raise ValueError(f"it does not derive from {Stateful.__module__}.{Stateful.__name__}")


def derived_from(base: type) -> Callable[[type], None]:
    """Return a check that a class derives from *base* and leaves out none of its methods."""

    def check(kind: type) -> None:
        if not issubclass(kind, base):
            raise ValueError(f"it does not derive from {base.__module__}.{base.__name__}")
        absent: frozenset[str] = getattr(kind, "__abstractmethods__", frozenset())
        if absent:
            raise ValueError(f"it lacks {', '.join(sorted(absent))}")

    return check


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


OR_OWN_INDEX = OrOwnClass(_check_index)
"""For windows: a class that is `Stateful` and has the methods of `Index`."""
