"""Vectors as values of kernels: merging sorted columns several entries at a time.

A merge that takes one entry after the other waits for each comparison before it knows what to
compare next. Two sorted vectors are merged without any decision by a bitonic network (Batcher,
1968): the one against the other reversed, entry by entry, leaves the lesser half in one and the
greater half in the other, and a few exchanges sort each. Like `joins.machine.instructions` these
functions check no bounds.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import models, register_model

from joins.machine.compiling import intrinsic
from joins.machine.lanes import LANES, lanes_at, load

_VECTOR = ir.VectorType(ir.IntType(64), LANES)


class LanesType(types.Type):  # type: ignore[misc]
    """The type of a variable that holds `LANES` int64."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")


_LANES = LanesType()


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, lanes: LanesType) -> None:
        super().__init__(manager, lanes, _VECTOR)


@intrinsic
def load_lanes(typing_context, rows, row, begin):  # type: ignore[no-untyped-def]
    """Return the `LANES` int64 from ``rows[row, begin]`` on."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return load(builder, *lanes_at(context, builder, signature.args[0], *args))

    return _LANES(rows, types.intp, types.intp), emit


@intrinsic
def store_lanes(typing_context, lanes, rows, row, begin):  # type: ignore[no-untyped-def]
    """Write *lanes* from ``rows[row, begin]`` on."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[0], *lanes_at(context, builder, signature.args[1], *args[1:]))
        return context.get_dummy_value()

    return types.void(lanes, rows, types.intp, types.intp), emit


@intrinsic
def choose_lanes(typing_context, first, one, other):  # type: ignore[no-untyped-def]
    """Return *one* when *first* is true and *other* when it is not; no branch."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(*args)

    return _LANES(types.boolean, one, other), emit


@intrinsic
def merge_lanes(typing_context, one, other):  # type: ignore[no-untyped-def]
    """Merge two ascending vectors; return the lesser half of all entries and the greater one."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        reverse = _shuffle(builder, args[1], args[1], list(reversed(range(LANES))))
        halves = [_sort_bitonic(builder, half) for half in _exchange(builder, args[0], reverse)]
        return context.make_tuple(builder, signature.return_type, halves)

    return types.UniTuple(_LANES, 2)(one, other), emit


def _shuffle(builder: Any, one: Any, other: Any, places: list[int]) -> Any:
    """Emit a vector of the entries at *places*, those of *other* being counted after *one*'s."""
    kind = ir.VectorType(ir.IntType(32), len(places))
    return builder.shuffle_vector(one, other, ir.Constant(kind, places))


def _exchange(builder: Any, one: Any, other: Any) -> tuple[Any, Any]:
    """Emit the lesser and the greater of two vectors, entry by entry."""
    is_less = builder.icmp_signed("<", one, other)
    return builder.select(is_less, one, other), builder.select(is_less, other, one)


def _sort_bitonic(builder: Any, lanes: Any) -> Any:
    """Emit in ascending order what ascends and then descends, or the reverse."""
    step = LANES // 2
    while step:
        partner = _shuffle(builder, lanes, lanes, [i ^ step for i in range(LANES)])
        is_less = builder.icmp_signed("<", lanes, partner)
        is_upper = ir.Constant(is_less.type, [bool(i & step) for i in range(LANES)])
        lanes = builder.select(builder.xor(is_less, is_upper), lanes, partner)
        step //= 2
    return lanes
