"""The immutable structures an epoch can be sealed into; any of them answers the same probes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from joins.found import Found
from joins.indexes.po_join import PoJoinSegment
from joins.indexes.search import Brackets
from joins.work import Work


class Segment(Protocol):
    """One epoch's tuples of one stream, positions *first* to *first* + n - 1; never changes.

    Attributes
    ----------
    first
        The epoch's first position.
    work
        What sealing cost.
    """

    first: int
    work: Work

    def __len__(self) -> int:
        """Return how many tuples it holds."""

    @property
    def nbytes(self) -> int:
        """Bytes that its arrays occupy."""

    def probe(
        self,
        lo: Sequence[np.ndarray],
        hi: Sequence[np.ndarray],
        *,
        negated: Sequence[bool] | None = None,
        start: np.ndarray | None = None,
        stop: np.ndarray | None = None,
        brackets: Brackets | None = None,
        enumerate: bool = False,
    ) -> Found:
        """Find for every probe the tuples that satisfy all predicates and lie in its window.

        The arguments are those of `joins.indexes.po_join.PoJoinSegment.probe`; a structure that
        searches by other means takes no notice of *brackets*.
        """

    def snapshot(self) -> dict[str, Any]:
        """Return the segment as plain arrays and numbers."""

    @classmethod
    def restore(cls, snapshot: dict[str, Any]) -> Segment:
        """Return the segment that `snapshot` described."""


SEGMENTS: dict[str, type[Any]] = {"po_join": PoJoinSegment}
"""Structure name to class; each is built from (keys, lead, permutations, first=...)."""
