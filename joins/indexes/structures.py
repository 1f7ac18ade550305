"""The structures by name: those that store a window, and those that an epoch is sealed into.

Those of either kind answer the same probes. A structure of one's own for a window is a class
that derives from `joins.state.Stateful` and has the methods of `joins.indexes.index.Index`, made
from the number of its columns, one per predicate; for an epoch it is a class that derives from
`joins.indexes.immutable.segment.ImmutableSegment`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from joins.indexes.immutable.css_tree import CssBitsSegment, CssHashSegment
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


def _hash_index(conditions: Sequence[Condition]) -> HashIndex:
    return HashIndex([condition.operator.is_equality for condition in conditions])


def _plain(index: Callable[..., Index]) -> Callable[..., Index]:
    """Return a factory of an index that needs only the number of its predicates."""

    def make(conditions: Sequence[Condition], **options: Any) -> Index:
        return index(len(conditions), **options)

    return make


WINDOW_INDEXES: dict[str, Callable[..., Index]] = {
    "nested_loop": _plain(NestedLoop),
    "b_plus_tree": _plain(WindowTree),
    "chain_index": _plain(ChainIndex),
    "hash": _hash_index,
    "ie_join": _plain(IeJoin),
}
"""Structure name to factory; each takes the conditions (`joins.queries.conditions`) that stored
tuples are probed for, one per predicate in the order of the columns, and the structure's own
options."""


def find_window_index(index: str | type[Index]) -> Callable[..., Index]:
    """Return the factory of a structure, named as above or a class of the caller's own."""
    return _plain(index) if isinstance(index, type) else WINDOW_INDEXES[index]


SEGMENTS: dict[str, type[ImmutableSegment]] = {
    "po_join": PoJoinSegment,
    "css_bits": CssBitsSegment,
    "css_hash": CssHashSegment,
    "prefix_grid": PrefixGridSegment,
}
"""Structure name to class; each is built from (keys, lead, permutations, first=...)."""
