"""Functions that kernels call by the class of their first argument, resolved at compile time.

One is declared once; each record class has an implementation of its own. A kernel that calls it is
compiled for the records it is called with: a call costs what a direct one costs, and the machine
code is stored like any other kernel's.

Implementations are looked up in the record's class and its bases, as methods are. They must be in
the module that defines the record or in one that this imports, because machine code is stored under
the digest of those.

A kernel that works through rows returns why it stopped: `DONE`, or what its caller has to do before
it can go on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba.extending import overload

from joins.machine.compiling import KERNEL, inlined

F = TypeVar("F", bound=Callable[..., Any])

DONE, MAINTAIN, NO_ROOM, NO_OUTPUT = range(4)
"""All rows are done; the row's side must be maintained; its index or window has no room; the list
has no room for the row's matches, of which nothing is left."""

_implementations: dict[Callable[..., Any], dict[type, Callable[..., Any]]] = {}


def dispatched(function: F) -> F:
    """Declare a function that every record has to implement; the body is never run."""
    implementations = _implementations.setdefault(function, {})

    def choose(record: Any, *_: Any) -> Callable[..., Any] | None:
        for base in getattr(record, "instance_class", object).__mro__:
            if base in implementations:
                return implementations[base]
        return None

    overload(function, jit_options={**KERNEL, "forceinline": True}, strict=False)(choose)
    return function


def only_for(record: type, *, otherwise: Any = None) -> Callable[[F], F]:
    """Declare a function for a *record* alone; others do nothing and return *otherwise*."""

    def nothing(*arguments: Any) -> Any:
        return otherwise

    def declare(function: F) -> F:
        _implementations[function] = {record: function, object: nothing}
        return dispatched(function)

    return declare


def implements(declared: Callable[..., Any], record: type) -> Callable[[F], F]:
    """Register the decorated function as that *declared*, for a *record* as first argument."""

    def register(function: F) -> F:
        _implementations[declared][record] = function
        return inlined(function)

    return register
