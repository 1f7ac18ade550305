"""The structures by name: those that store a window, and those that an epoch is sealed into.

Those of either kind answer the same probes. A structure of one's own for a window is a class
that derives from `joins.state.Stateful` and has the methods of `joins.indexes.index.Index`, made
from the number of its columns, one per predicate; for an epoch it is a class that derives from
`joins.indexes.immutable.segment.ImmutableSegment`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from joins.indexes.immutable.css_segments import CssBitsSegment, CssHashSegment
from joins.indexes.immutable.po_join import PoJoinSegment
from joins.indexes.immutable.prefix_grid import PrefixGridSegment
from joins.indexes.immutable.segment import ImmutableSegment
from joins.indexes.index import Index
from joins.indexes.windows.chain_index import ChainIndex
from joins.indexes.windows.hash_index import HashIndex
from joins.indexes.windows.ie_join import IeJoin
from joins.indexes.windows.nested_loop import NestedLoop
from joins.indexes.windows.window_tree import WindowTree
from joins.queries.conditions import Condition

WINDOW_INDEXES: dict[str, type[Index]] = {
    "nested_loop": NestedLoop,
    "b_plus_tree": WindowTree,
    "chain_index": ChainIndex,
    "hash": HashIndex,
    "ie_join": IeJoin,
}
"""Structure name to class; `make_window_index` makes one."""


def make_window_index(
    index: str | type[Index], conditions: Sequence[Condition], **options: Any
) -> Index:
    """Return an empty structure, named as above or of a class of the caller's own.

    *conditions* are those that stored tuples are probed for, one per column; *options* are the
    structure's own.
    """
    if index == "hash":  # it must know which columns are compared with =
        return HashIndex([condition.operator.is_equality for condition in conditions], **options)
    structure: Any = WINDOW_INDEXES[index] if isinstance(index, str) else index
    made: Index = structure(len(conditions), **options)
    return made


SEGMENTS: dict[str, type[ImmutableSegment]] = {
    "po_join": PoJoinSegment,
    "css_bits": CssBitsSegment,
    "css_hash": CssHashSegment,
    "prefix_grid": PrefixGridSegment,
}
"""Structure name to class; each is built from (keys, lead, permutations, first=...)."""
