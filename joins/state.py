"""State as plain data: what an actor, an index or a small record stores in a snapshot.

Plain data is made of dicts, lists, arrays, numbers, strings and None. A class whose objects have a
state derives from `Stateful` and declares once which of its attributes are state::

    class Gate(Stateful):
        state = ("_waiting", "_watermarks")

        def __init__(self, *, sources: int) -> None:
            self._sources = sources                  # configuration: the constructor sets it
            self._waiting: list[Batch] = []          # state
            self._watermarks = [0] * sources         # state

`snapshot` and `restore` follow from the declaration; a subclass declares what it adds.

- A state may have numbers, strings, arrays, lists, tuples, deques, sets, dicts with any key,
  dataclasses and NamedTuples (all of their fields), and other `Stateful` objects, at any depth.
  Anything else raises :exc:`TypeError` when the snapshot is taken.
- A dict of another class, such as a Counter, is restored as one only where the constructor made
  one; elsewhere as a dict.
- A snapshot shares no array with the object, and a restored object none with the snapshot.
- `restore` is for an object of equal configuration. It restores the `Stateful` objects that are in
  place already (those the constructor made) and builds the others anew; a class whose objects come
  and go, such as an index, therefore declares all of its attributes, its configuration too.
- A class with a constructor, or without a declaration in its bases, must declare: the class
  statement fails otherwise. A class without state says ``state = ()``; an abstract base that has
  neither names `abc.ABC` among its bases. Where a subclass declares another number of attributes,
  the base's declaration needs a type: ``state: ClassVar[tuple[str, ...]] = (...)``.
- A class may write `snapshot` and `restore` by hand, or extend `restore` where something follows
  from the state, such as the position of an open file.

A snapshot names classes, and nothing is imported for it: a name stands for a class that was
registered when its module was read. Classes that derive from `Stateful` are registered by that, all
others by `storable`.
"""

from __future__ import annotations

from abc import ABC
from collections import deque
from collections.abc import Iterable
from copy import copy
from dataclasses import fields, is_dataclass
from itertools import chain, repeat
from types import FunctionType, ModuleType
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np

State = dict[str, Any]
"""Plain data by the name of the attribute."""

Class = TypeVar("Class", bound=type)

_registered: dict[str, type] = {}
_bare: dict[str, type] = {}
"""By name, classes that had no body yet when one of that name was registered already.

Ray sends a class of a main module, a notebook or a function as a value. The receiving process makes
an empty class first and fills it in later, or drops it if it has that class already.
"""


def storable(cls: Class) -> Class:
    """Register a dataclass or a NamedTuple, as its decorator.

    Its objects may then be in a state, and in a message.
    """
    name = class_name(cls)
    _settle(name)
    (_bare if name in _registered and _is_bare(cls) else _registered)[name] = cls
    return cls


def _is_bare(cls: type) -> bool:
    body = vars(cls)
    has_methods = any(callable(value) or isinstance(value, property) for value in body.values())
    return "__annotations__" not in body and not has_methods


def _settle(name: str) -> None:
    """Register the latest class of a *name* if it has been filled in since.

    A dataclass with slots stays registered: the class that it was made from, without slots, is sent
    along with it under the same name.
    """
    if name in _bare and not _is_bare(_bare[name]):
        later = _bare.pop(name)
        if "__slots__" in vars(later) or "__slots__" not in vars(_registered[name]):
            _registered[name] = later


def class_name(cls: type) -> str:
    """Return what a registered class is called in a snapshot."""
    return f"{cls.__module__}:{cls.__qualname__}"


def registered(name: str) -> Any:
    """Return a registered class by its name; raise :exc:`ValueError` when there is none."""
    try:
        _settle(name)
        return _registered[name]
    except (KeyError, TypeError):  # it may be anything
        raise ValueError(
            f"{name!r} in a snapshot is not a record or an object with a state"
        ) from None


# How `plain` spells what is not plain: a dict with the kind of thing, its class, and its content.
_KIND, _CLASS, _CONTENT, _MOST = "$kind", "class", "content", "maxlen"
_OBJECT, _RECORD, _MAPPING = "object", "record", "mapping"
_SEQUENCES: dict[str, type] = {"tuple": tuple, "deque": deque, "set": set, "frozenset": frozenset}

_ALLOWED = (
    "a state has None, numbers, strings, arrays of these, lists, tuples, deques, sets, dicts, "
    "records and objects with a state"
)

_LEAVES = (str, bytes, int, float, type, type(None), FunctionType, ModuleType)


class Stateful:
    """Base of every class whose objects have a state; see the module's text."""

    __slots__ = ()

    state: ClassVar[tuple[str, ...]]
    """The attributes that this class adds to the state."""

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        storable(cls)
        body = vars(cls)
        if isinstance(body.get("state"), str):
            raise TypeError(f"{cls.__name__}.state is a string: write a tuple of names")
        if "state" in body or cls.snapshot is not Stateful.snapshot:
            return
        undeclared = not (_is_bare(cls) or hasattr(cls, "state") or ABC in cls.__bases__)
        if "__init__" in body or undeclared:
            raise TypeError(
                f"{cls.__name__} does not declare its state: name the attributes that are state "
                "in `state = (...)`, or write `state = ()` if there are none"
            )

    def snapshot(self) -> State:
        """Return the whole state as plain data; later changes do not reach it.

        Raise :exc:`TypeError` naming the attribute with what may not be in a state.
        """
        state = {}
        for name in state_names(type(self)):
            value = getattr(self, name)
            try:
                state[name] = plain(value)
            except TypeError as error:
                raise TypeError(f"{type(self).__name__}.{name}: {error}") from None
        return state

    def restore(self, state: State) -> None:
        """Go back to a state that `snapshot` returned, on an object of equal configuration."""
        for name in state_names(type(self)):
            value = revive(state[name], current=getattr(self, name, None))
            setattr(self, name, value)

    @classmethod
    def from_snapshot(cls, state: State) -> Self:
        """Build an object from its state alone, for a class that declares all its attributes."""
        made = cls.__new__(cls)
        made.restore(state)
        return made

    @property
    def nbytes(self) -> int:
        """Bytes of all its arrays, as `array_bytes` counts them."""
        return array_bytes(self)


def state_names(kind: type[Stateful]) -> tuple[str, ...]:
    """Return the attributes that *kind* and its bases declare as state, the bases' first."""
    declared = [vars(base).get("state", ()) for base in reversed(kind.__mro__)]
    return tuple(dict.fromkeys(chain.from_iterable(declared)))


def plain(value: Any) -> Any:
    """Return *value* as plain data, its arrays copied.

    Raise :exc:`TypeError` for what may not be in a state.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject or isinstance(value, np.ma.MaskedArray):
            raise TypeError(f"an array of objects, or with a mask, is not plain data: {_ALLOWED}")
        return np.copy(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        is_saved = isinstance(value.get(_KIND, ""), str)  # or has no such key: a column may
        if is_saved and all(isinstance(key, str | int) for key in value):
            return {key: plain(item) for key, item in value.items()}
        pairs = [[plain(key), plain(item)] for key, item in value.items()]
        return {_KIND: _MAPPING, _CONTENT: pairs}
    if type(value).__name__ in _SEQUENCES:
        items = sorted(value) if isinstance(value, set | frozenset) else value
        saved = {_KIND: type(value).__name__, _CONTENT: [plain(item) for item in items]}
        most = getattr(value, "maxlen", None)
        return saved if most is None else saved | {_MOST: most}
    return _plain_object(value)


def _plain_object(value: Any) -> State:
    kind = _OBJECT
    if isinstance(value, Stateful):
        content = value.snapshot()
    elif (names := record_fields(type(value))) is not None:
        kind = _RECORD
        content = {name: plain(getattr(value, name)) for name in names}
    else:
        raise TypeError(f"a {type(value).__name__} is not plain data: {_ALLOWED}")
    name = class_name(type(value))
    if name not in _registered:
        raise TypeError(f"{name} is not registered: decorate it with joins.state.storable")
    return {_KIND: kind, _CLASS: name, _CONTENT: content}


def revive(saved: Any, *, current: Any = None) -> Any:
    """Return the value that `plain` turned into *saved*, its arrays copied.

    *current* is the value that it replaces: a `Stateful` object in there is restored and used again
    where *saved* has one of its class in the same place.

    Raise :exc:`ValueError` when *saved* names a class that cannot be in a state.
    """
    if isinstance(saved, np.ndarray):
        return np.copy(saved)
    if isinstance(saved, list):
        return _revive_items(saved, current if isinstance(current, list) else ())
    if not isinstance(saved, dict):
        return saved
    kind = saved.get(_KIND)
    if kind is None or kind == _MAPPING:
        return _revive_dict(saved, current)
    content = saved[_CONTENT]
    if kind in _SEQUENCES:
        made = _SEQUENCES[kind]
        items = current if isinstance(current, tuple | deque) else ()
        revived = _revive_items(content, items)
        return deque(revived, saved[_MOST]) if _MOST in saved else made(revived)
    cls = registered(saved[_CLASS])
    if kind == _RECORD:
        return _revive_record(cls, content, current)
    if type(current) is not cls:
        return cls.from_snapshot(content)
    cast(Stateful, current).restore(content)
    return current


def _revive_items(saved: list[Any], current: Iterable[Any]) -> list[Any]:
    pairs = zip(saved, chain(current, repeat(None)), strict=False)
    return [revive(item, current=now) for item, now in pairs]


def _revive_dict(saved: Any, current: Any) -> Any:
    now = current if isinstance(current, dict) else {}
    if _KIND in saved:
        pairs = [(revive(key), item) for key, item in saved[_CONTENT]]
    else:
        pairs = list(saved.items())
    made = {key: revive(item, current=now.get(key)) for key, item in pairs}
    if type(now) is dict:
        return made
    same = copy(now)  # a defaultdict, a Counter
    same.clear()
    same.update(made)
    return same


def _revive_record(cls: type, content: State, current: Any) -> Any:
    same = type(current) is cls
    values = {
        name: revive(item, current=getattr(current, name, None) if same else None)
        for name, item in content.items()
    }
    return build_record(cls, values)


def build_record(cls: type, values: dict[str, Any]) -> Any:
    """Return the record of class *cls* that has these *values*, all of its fields."""
    later = {}
    if is_dataclass(cls):
        later = {field.name: values.pop(field.name) for field in fields(cls) if not field.init}
    made: Any = cls(**values)
    for name, item in later.items():
        object.__setattr__(made, name, item)
    return made


def record_fields(kind: type) -> tuple[str, ...] | None:
    """Return the fields of a dataclass or a NamedTuple, None for any other class."""
    if is_dataclass(kind):
        return tuple(field.name for field in fields(kind))
    return getattr(kind, "_fields", None) if issubclass(kind, tuple) else None


def array_bytes(root: object) -> int:
    """Return the bytes of all arrays that *root* reaches, of views what they are views of."""
    total, seen, waiting = 0, set(), [root]
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, _LEAVES):
            continue
        seen.add(id(value))
        if isinstance(value, np.ndarray):
            if isinstance(value.base, np.ndarray):
                waiting.append(value.base)
            else:
                total += value.nbytes
        elif isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list | tuple | set | frozenset | deque):
            waiting += value
        else:
            waiting += vars(value).values() if hasattr(value, "__dict__") else ()
            slots = (name for kind in type(value).__mro__ for name in _slots(kind))
            waiting += [getattr(value, name) for name in slots if hasattr(value, name)]
    return total


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)
