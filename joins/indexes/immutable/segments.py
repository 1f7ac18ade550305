"""The immutable structures an epoch can be sealed into; any of them answers the same probes.

A structure of one's own is a class that derives from `ImmutableSegment`.
"""

from __future__ import annotations

from joins.indexes.immutable.css_tree import CssBitsSegment, CssHashSegment
from joins.indexes.immutable.po_join import PoJoinSegment
from joins.indexes.immutable.prefix_grid import PrefixGridSegment
from joins.indexes.immutable.segment import ImmutableSegment

SEGMENTS: dict[str, type[ImmutableSegment]] = {
    "po_join": PoJoinSegment,
    "css_bits": CssBitsSegment,
    "css_hash": CssHashSegment,
    "prefix_grid": PrefixGridSegment,
}
"""Structure name to class; each is built from (keys, lead, permutations, first=...)."""


def find_segment(structure: str | type[ImmutableSegment]) -> type[ImmutableSegment]:
    """Return the class of a structure: a key of `SEGMENTS`, or a class already."""
    return structure if isinstance(structure, type) else SEGMENTS[structure]
