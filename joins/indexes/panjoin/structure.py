"""What the three structures of a subwindow have in common: what one must be able to do."""

from __future__ import annotations

from typing import Any, Literal, Protocol

import numpy as np

from joins.indexes.panjoin.answering import Output, Probes, Stored
from joins.work import Work

StructureName = Literal["bi_sort", "rap_table", "wib_tree"]


class Structure(Protocol):
    """Tuples of one subwindow by the codes of a field; places count from 0 as they arrived."""

    def insert(self, codes: np.ndarray, places: np.ndarray) -> Work:
        """Take a batch in ascending order of *codes* (int64), with the *places* (int32) beside."""

    def answer(
        self, probes: Probes, stored: Stored, begin: int, end: int, output: Output
    ) -> np.ndarray:
        """Answer probes *begin* to *end*; return the counters.

        Calls for different probes may run side by side. *begin* is a multiple of `BLOCK`, and what
        is counted does not depend on how the blocks are dealt out to calls.
        """

    def seal(self) -> Work:
        """Make ready for a life without insertions."""

    @property
    def nbytes(self) -> int:
        """Bytes that its arrays occupy."""

    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain arrays and numbers."""

    @classmethod
    def restore(cls, snapshot: dict[str, Any]) -> Structure:
        """Return the structure that `snapshot` described."""
