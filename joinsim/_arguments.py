"""Checks the arguments of public functions against the types in their signatures.

A wrong argument is refused before anything runs, by its name, with its value and what is allowed.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from difflib import get_close_matches
from functools import cache, wraps
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from types import NoneType, SimpleNamespace, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from annotated_types import Gt

from joins.errors import JoinsimError

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")

_NUMBERS: dict[Any, Any] = {int: Integral, float: Real}
_LISTS = (Sequence, Iterable, tuple)
_NO_LISTS = (str, bytes, Mapping, Set)
_WORDS: dict[Any, str] = {
    str: "text",
    Path: "a path",
    PathLike: "a path",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    NoneType: "None",
    Callable: "a function",
}


def check_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Return *function*, which then raises :exc:`ConfigError` for arguments of a wrong type.

    Of a keyword that is wrong it names the parameter that has nearly that name.
    """
    signature = inspect.signature(function)

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:  # Python itself reports what is missing or unknown
            return function(*args, **kwargs)
        hints, wrong = _hints(function), []
        for name, value in bound.arguments.items():
            if name in hints:
                try:
                    bound.arguments[name] = _convert(value, hints[name])
                except ValueError:
                    wrong.append(name)
        if wrong:
            from scenarios.scenario_files import ConfigError, show_value

            raise ConfigError(
                "; ".join(
                    f"{name} = {show_value(bound.arguments[name])}: pass {_describe(hints[name])}"
                    for name in wrong
                )
            )
        try:
            return function(*bound.args, **bound.kwargs)
        except JoinsimError as error:
            for name in [name for name in kwargs if name not in signature.parameters]:
                # It was taken for a parameter of a topology, and may be near one of those, too.
                near = get_close_matches(name, signature.parameters, n=1)
                other = re.findall(r"did you mean '(\w+)'\? ", str(error))
                if near and get_close_matches(name, [*near, *other], n=1) == near:
                    text = re.sub(r"did you mean '\w+'\? ", "", str(error), count=1)
                    hint = f"{name}: did you mean {near[0]!r}? "
                    error.args = (re.sub(rf"\b{re.escape(name)}: ", hint, text, count=1),)
            raise

    return checked


def check_methods(kind: type[C]) -> type[C]:
    """Have the constructor and the public methods of a class check their arguments."""
    for name, method in list(vars(kind).items()):
        if inspect.isfunction(method) and (name == "__init__" or not name.startswith("_")):
            setattr(kind, name, check_arguments(method))
    return kind


@cache
def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of a function's parameters, without ``self`` and ``**parameters``."""
    inner: Any = inspect.unwrap(function)
    parameters = inspect.signature(inner).parameters
    # What is returned may be of a type that is imported for type checkers alone.
    written = {name: hint for name, hint in inner.__annotations__.items() if name in parameters}
    hints = get_type_hints(
        SimpleNamespace(__annotations__=written), inner.__globals__, include_extras=True
    )
    for name, parameter in parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            hints[name] = Iterable[hints[name]]  # type: ignore[valid-type]
        elif parameter.kind is parameter.VAR_KEYWORD:
            del hints[name]
    return hints


def _convert(value: Any, hint: Any) -> Any:  # noqa: C901  (a kind of type a case)
    """Return *value*, in which numbers of other libraries are Python's, and arrays are lists.

    Raise :exc:`ValueError` where it is not of the type *hint*. A list may be any collection that
    has an order.
    """
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind is Any or isinstance(kind, TypeVar):
        return value
    if kind in (Union, UnionType):
        for part in parts:
            with suppress(ValueError):
                return _convert(value, part)
    elif kind is Annotated:
        number, bounds = _convert(value, parts[0]), parts[1:]
        if all(number > one.gt if isinstance(one, Gt) else number >= one.ge for one in bounds):
            return number
    elif kind is Literal:
        if isinstance(value, str) and value in parts:
            return value
    elif kind is type:
        if isinstance(value, type) and issubclass(value, _class_in(hint)):
            return value
    elif kind in _NUMBERS:
        if isinstance(value, _NUMBERS[kind]) and not isinstance(value, bool):
            return value if type(value) in (int, float) else kind(value)
    elif kind is Mapping:
        if isinstance(value, Mapping):
            key, of = parts
            return {_convert(name, key): _convert(one, of) for name, one in value.items()}
    elif kind in _LISTS:
        value = value.tolist() if hasattr(value, "tolist") else value
        if isinstance(value, Collection) and not isinstance(value, _NO_LISTS):
            listed = [_convert(one, parts[0]) for one in value]
            return tuple(listed) if isinstance(value, tuple) else listed
        if kind is Iterable and isinstance(value, Iterator):
            return value
    elif isinstance(value, kind) and not (kind in (str, Path) and "\0" in str(value)):
        return value
    raise ValueError


def _describe(hint: Any) -> str:
    """Return in words which values are of the type *hint*."""
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        *most, last = map(_describe, parts)
        return f"{', '.join(most)} or {last}"
    if kind is Annotated:
        words = [
            f"above {one.gt}" if isinstance(one, Gt) else f"of at least {one.ge}"
            for one in parts[1:]
        ]
        return " ".join([_describe(parts[0]), *words])
    if kind is Literal:
        return " or ".join(map(repr, parts))
    if kind is type:
        return f"a class derived from {_class_in(hint).__name__}"
    if kind is Mapping:
        each = "" if parts[1] is Any else f" (each: {_describe(parts[1])})"
        return f"a mapping from names to values{each}"
    if kind in _LISTS:
        return "a list" if parts[0] is Any else f"a list (each: {_describe(parts[0])})"
    name = kind.__name__
    return _WORDS.get(kind) or f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def _class_in(hint: Any) -> type:
    """Return the class in ``type[...]``."""
    found: type = get_args(hint)[0]
    return get_origin(found) or found
