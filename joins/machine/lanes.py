"""Vector instructions: many entries of a column at once, as functions for kernels.

Python has no spelling for them. Like `joins.machine.instructions` they check no bounds.

A vector can be a value of a kernel, too, so that sorted columns are merged several entries at a
time. A merge that takes one entry after the other waits for each comparison before it knows what to
compare next. Two sorted vectors are merged without any decision by a bitonic network (Batcher,
1968): the one against the other reversed, entry by entry, leaves the lesser half in one and the
greater half in the other, and a few exchanges sort each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import models, register_model
from numba.types import boolean, int64, intp, void

from joins.machine.compiling import ARRAY, ITEM, CodeEmitter, inlined, instruction, kernel
from joins.machine.instructions import address

LANES = 16
"""Entries that `lanes_less`, `lanes_greater`, `move_lanes` and `widen_lanes` take at once."""

NODE_SLOTS = 2 * LANES
"""Slots of a tree's node, unless another width is set; `insert_in_node` moves them at once."""


def lanes_from(emit: CodeEmitter, entry: Any, count: int = LANES) -> tuple[Any, int]:
    """Emit the address of a vector of *count* entries, from the first one's; and its alignment."""
    kind = entry.type.pointee
    lanes = ir.VectorType(kind, count)
    return emit.builder.bitcast(entry, lanes.as_pointer()), kind.width // 8


def _lanes_at(emit: CodeEmitter, rows: Any, row: Any, begin: Any) -> tuple[Any, int]:
    """Emit the address of a vector of `LANES` entries of a matrix, and its alignment."""
    return lanes_from(emit, address(emit, rows, row, begin))


def load_vector(emit: CodeEmitter, place: Any, align: int) -> Any:
    """Emit the vector at an address."""
    entries = emit.builder.load(place)
    entries.align = align
    return entries


def _compare(emit: CodeEmitter, entries: Any, compared: str, target: Any) -> Any:
    """Emit a word with a bit for each entry of a vector: whether it compares so with *target*."""
    builder, lanes = emit.builder, entries.type
    bits = builder.icmp_signed(compared, entries, repeat(emit, target, lanes))
    return builder.zext(builder.bitcast(bits, ir.IntType(entries.type.count)), ir.IntType(64))


def repeat(emit: CodeEmitter, value: Any, lanes: Any) -> Any:
    """Emit a vector with *value* in every place."""
    anything = ir.Constant(lanes, ir.Undefined)
    places = ir.VectorType(ir.IntType(32), lanes.count)
    one = emit.builder.insert_element(anything, value, ir.IntType(32)(0))
    return emit.builder.shuffle_vector(one, anything, ir.Constant(places, [0] * lanes.count))


@instruction(int64, ARRAY, intp, intp, ITEM)
def lanes_less(emit: CodeEmitter, rows: Any, row: Any, begin: Any, target: Any) -> Any:
    """Count how many of the `LANES` integers from ``rows[row, begin]`` on are less than *target*.

    One or two instructions compare them all.
    """
    entries = load_vector(emit, *_lanes_at(emit, rows, row, begin))
    return emit.builder.ctpop(_compare(emit, entries, "<", target))


@instruction(int64, ARRAY, intp, intp, ITEM)
def lanes_greater(emit: CodeEmitter, rows: Any, row: Any, begin: Any, target: Any) -> Any:
    """Count how many of the `LANES` integers from ``rows[row, begin]`` on exceed *target*."""
    entries = load_vector(emit, *_lanes_at(emit, rows, row, begin))
    return emit.builder.ctpop(_compare(emit, entries, ">", target))


@inlined
def count_less(rows: np.ndarray, row: int, begin: int, width: int, key: int) -> int:
    """Count the slots from *begin*, *width* of them, that are less than *key*; no branches.

    Vectors of `LANES` slots, whose counts are single bits: the compiler's own vectors add up words.
    """
    # The usual width: a loop over vectors takes longer to set up than to run.
    if width == NODE_SLOTS:
        return int(lanes_less(rows, row, begin, key) + lanes_less(rows, row, begin + LANES, key))
    return _count_less_of(rows, row, begin, width, key)


@kernel
def _count_less_of(rows: np.ndarray, row: int, begin: int, width: int, key: int) -> int:
    less, vectors = 0, width - width % LANES
    for i in range(0, vectors, LANES):
        less += lanes_less(rows, row, begin + i, key)
    for i in range(vectors, width):
        less += rows[row, begin + i] < key
    return less


LOOKAHEAD = 8
"""Entries that `leading_less` looks at."""


@instruction(int64, ARRAY, intp, ITEM)
def leading_less(emit: CodeEmitter, column: Any, begin: Any, target: Any) -> Any:
    """Count the integers less than *target* from ``column[begin]`` on, up to one that is not.

    It looks at `LOOKAHEAD` of them, all at once, which must be there.
    """
    builder = emit.builder
    entries = load_vector(emit, *lanes_from(emit, builder.gep(column.data, [begin]), LOOKAHEAD))
    past_all = ir.IntType(64)(1 << LOOKAHEAD)
    others = builder.or_(_compare(emit, entries, ">=", target), past_all)
    return builder.cttz(others, ir.IntType(1)(0))


@instruction(void, ARRAY, intp, intp, intp)
def move_lanes(emit: CodeEmitter, rows: Any, row: Any, begin: Any, to: Any) -> Any:
    """Copy `LANES` entries within a row; the two places may overlap.

    ``rows[row, to : to + LANES] = rows[row, begin : begin + LANES]``
    """
    entries = load_vector(emit, *_lanes_at(emit, rows, row, begin))
    emit.builder.store(entries, *_lanes_at(emit, rows, row, to))


@instruction(void, ARRAY, intp, intp, intp, ITEM)
def insert_in_node(
    emit: CodeEmitter, rows: Any, row: Any, begin: Any, place: Any, entry: Any
) -> Any:
    """Insert *entry* at a place of a node, and move the slots from there on by one; no branches.

    The node is the `NODE_SLOTS` entries from ``rows[row, begin]`` on, the last of which is lost.
    """
    builder = emit.builder
    slots, align = lanes_from(emit, address(emit, rows, row, begin), NODE_SLOTS)
    old = load_vector(emit, slots, align)
    moved = _shuffle(builder, old, old, [0, *range(NODE_SLOTS - 1)])  # to the first comes nothing
    numbers = ir.VectorType(place.type, NODE_SLOTS)
    number, target = ir.Constant(numbers, list(range(NODE_SLOTS))), repeat(emit, place, numbers)
    stays = builder.icmp_signed("<", number, target)
    is_new = builder.icmp_signed("==", number, target)
    new = builder.select(is_new, repeat(emit, entry, old.type), moved)
    builder.store(builder.select(stays, old, new), slots, align)


@instruction(void, ARRAY, intp, intp, ARRAY, intp, int64)
def widen_lanes(
    emit: CodeEmitter, rows: Any, row: Any, begin: Any, target: Any, to: Any, more: Any
) -> Any:
    """Copy `LANES` integers of a matrix to a column of int64, and add *more* to each.

    ``target[to : to + LANES] = rows[row, begin : begin + LANES] + more``
    """
    builder = emit.builder
    entries = load_vector(emit, *_lanes_at(emit, rows, row, begin))
    wide, align = lanes_from(emit, builder.gep(target.data, [to]))
    lanes = wide.type.pointee
    sums = builder.add(builder.sext(entries, lanes), repeat(emit, more, lanes))
    builder.store(sums, wide, align)


# Vectors as values.


_VECTOR = ir.VectorType(ir.IntType(64), LANES)


class LanesType(types.Type):  # type: ignore[misc]
    """The type of a variable that holds `LANES` int64."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")


_LANES = LanesType()
_PAIR = types.UniTuple(_LANES, 2)


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, lanes: LanesType) -> None:
        super().__init__(manager, lanes, _VECTOR)


@instruction(_LANES, ARRAY, intp, intp)
def load_lanes(emit: CodeEmitter, rows: Any, row: Any, begin: Any) -> Any:
    """Return the `LANES` int64 from ``rows[row, begin]`` on."""
    return load_vector(emit, *_lanes_at(emit, rows, row, begin))


@instruction(void, _LANES, ARRAY, intp, intp)
def store_lanes(emit: CodeEmitter, lanes: Any, rows: Any, row: Any, begin: Any) -> Any:
    """Write *lanes* from ``rows[row, begin]`` on."""
    emit.builder.store(lanes, *_lanes_at(emit, rows, row, begin))


@instruction(_LANES, boolean, _LANES, _LANES)
def choose_lanes(emit: CodeEmitter, first: Any, one: Any, other: Any) -> Any:
    """Return *one* when *first* is true and *other* when it is not; no branch."""
    return emit.builder.select(first, one, other)


@instruction(_PAIR, _LANES, _LANES)
def merge_lanes(emit: CodeEmitter, one: Any, other: Any) -> Any:
    """Merge two ascending vectors; return the lesser half of all entries and the greater one."""
    builder = emit.builder
    reverse = _shuffle(builder, other, other, list(reversed(range(LANES))))
    halves = [_sort_bitonic(builder, half) for half in _exchange(builder, one, reverse)]
    return emit.context.make_tuple(builder, _PAIR, halves)


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
