"""A subwindow: a run of a stream's tuples, filled, probed, and let go of as a whole (III-A).

One field is indexed, the first predicate's; the others are kept beside it, by place, and filter
what the index finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from joins.indexes.columns import column
from joins.indexes.panjoin.answering import Output, Probes, Stored
from joins.indexes.panjoin.bi_sort import BiSort
from joins.indexes.panjoin.codes import encode_columns
from joins.indexes.panjoin.rap_table import RapTable
from joins.indexes.panjoin.records import Records, find_records, read_records
from joins.indexes.panjoin.structure import Structure, StructureName
from joins.indexes.panjoin.wib_tree import WibTree
from joins.machine.compiling import kernel
from joins.work import Work

STRUCTURES: dict[str, type[Any]] = {"bi_sort": BiSort, "rap_table": RapTable, "wib_tree": WibTree}
"""Structure name to class."""

CAPACITY_MOST = 2**31 - 1
"""Tuples of a subwindow: a place in it is an int32."""


@dataclass(frozen=True, kw_only=True)
class SubwindowShape:
    """What the subwindows of one stream have in common.

    Attributes
    ----------
    dtypes
        Per predicate the dtype in which its field is compared; the first one is indexed.
    capacity
        N_Sub, the most tuples.
    partitions
        P, at most the capacity.
    sigma
        σ, above 1.
    buffer
        Room of a BI-Sort's insertion buffer; None takes a share of the capacity.
    """

    dtypes: tuple[str, ...]
    capacity: int
    partitions: int
    sigma: float
    buffer: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.capacity <= CAPACITY_MOST:
            raise ValueError(f"capacity is {self.capacity}, must be 1 to {CAPACITY_MOST}")
        if not 1 <= self.partitions <= self.capacity:
            raise ValueError(
                f"partitions is {self.partitions}, must be 1 to {self.capacity}, the capacity"
            )
        if not self.sigma > 1:
            raise ValueError(f"sigma is {self.sigma}, must be above 1")


_RIGHT, _UNSORTED, _GAPS = range(3)


class Subwindow:
    """Tuples *first*, *first* + 1, ... of a stream.

    Parameters
    ----------
    shape
        What it has in common with its neighbours.
    structure
        Key of `STRUCTURES`.
    first
        Stream position of its first tuple.
    splitters
        For a RaP-Table: what `sampled` of its predecessor returned.
    """

    def __init__(
        self,
        shape: SubwindowShape,
        structure: StructureName,
        *,
        first: int,
        splitters: np.ndarray | None = None,
    ) -> None:
        self.shape = shape
        self.kind = structure
        self._stored = Stored(first, 0, np.empty((len(shape.dtypes) - 1, shape.capacity), np.int64))
        self.structure: Structure
        if structure == "bi_sort":
            self.structure = BiSort(shape.capacity, shape.partitions, shape.buffer)
        elif structure == "wib_tree":
            self.structure = WibTree(shape.capacity, shape.partitions, shape.sigma)
        else:
            self.structure = RapTable(
                shape.capacity, shape.partitions, shape.sigma, shape.dtypes[0], splitters
            )

    def __len__(self) -> int:
        return self._stored.size

    @property
    def first(self) -> int:
        """Stream position of its first tuple."""
        return self._stored.first

    @property
    def stop(self) -> int:
        """Stream position after its last tuple."""
        return self._stored.first + self._stored.size

    @property
    def nbytes(self) -> int:
        """Bytes that its arrays occupy."""
        return self.structure.nbytes + self._stored.columns.nbytes

    @property
    def sampled(self) -> np.ndarray | None:
        """Splitters for the next subwindow's RaP-Table; None when this one does not sample."""
        return self.structure.sampled if isinstance(self.structure, RapTable) else None

    def insert(self, columns: Sequence[np.ndarray], positions: np.ndarray) -> Work:
        """Insert a batch: the next positions, in ascending order of the first column.

        Parameters
        ----------
        columns
            Per predicate the tuples' values.
        positions
            int64, where the tuples stand in their stream.

        Raises
        ------
        ValueError
            When the batch does not fit, leaves out a position, or is not sorted.
        """
        codes = encode_columns(columns, self.shape.dtypes)
        positions = column(positions, np.int64, "positions", len(codes[0]))
        size, new = self._stored.size, len(positions)
        if size + new > self.shape.capacity:
            raise ValueError(
                f"{new} tuples do not fit: the subwindow holds {size} of {self.shape.capacity}"
            )
        places = np.empty(new, np.int32)
        wrong = _place(codes[0], positions, self.first, size, np.zeros(new, np.bool_), places)
        if wrong == _UNSORTED:
            raise ValueError("the batch is not in ascending order of the indexed field")
        if wrong == _GAPS:
            raise ValueError(
                f"the batch does not hold every position from {self.stop} to {self.stop + new - 1}"
            )
        for row, others in zip(self._stored.columns, codes[1:], strict=True):
            row[places] = others
        self._stored = self._stored._replace(size=size + new)
        return self.structure.insert(codes[0], places)

    def seal(self) -> Work:
        """Make ready for a life without insertions."""
        return self.structure.seal()

    def answer(self, probes: Probes, begin: int, end: int, output: Output) -> np.ndarray:
        """Add the matches of encoded probes *begin* to *end* to *output*; return the counters.

        Calls for different probes may run side by side, see `Structure.answer`.
        """
        return self.structure.answer(probes, self._stored, begin, end, output)

    def records(self, *bands: Probes) -> tuple[Records, Work]:
        """Return records in place of matches (see `find_records`); only for a BI-Sort."""
        assert isinstance(self.structure, BiSort)
        return find_records(self.structure, bands)

    def read(self, records: Records, probes: Probes, output: Output) -> Work:
        """Add to *output* what records of a subwindow with the same tuples mean."""
        assert isinstance(self.structure, BiSort)
        return read_records(self.structure, records, probes, self._stored, output)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain arrays and numbers."""
        return {
            "dtypes": list(self.shape.dtypes),
            "capacity": self.shape.capacity,
            "partitions": self.shape.partitions,
            "sigma": self.shape.sigma,
            "kind": self.kind,
            "first": self.first,
            "columns": self._stored.columns[:, : len(self)].copy(),
            "size": len(self),
            "structure": self.structure.snapshot(),
        }

    @classmethod
    def restore(cls, snapshot: dict[str, Any]) -> Subwindow:
        """Return the subwindow that `snapshot` described."""
        shape = SubwindowShape(
            dtypes=tuple(snapshot["dtypes"]),
            capacity=snapshot["capacity"],
            partitions=snapshot["partitions"],
            sigma=snapshot["sigma"],
        )
        held = cls(shape, snapshot["kind"], first=snapshot["first"])
        held._stored.columns[:, : snapshot["size"]] = snapshot["columns"]
        held._stored = held._stored._replace(size=snapshot["size"])
        held.structure = STRUCTURES[held.kind].restore(snapshot["structure"])
        return held


@kernel
def _place(
    codes: np.ndarray,
    positions: np.ndarray,
    first: int,
    size: int,
    seen: np.ndarray,
    places: np.ndarray,
) -> int:
    """Fill in the places of a batch that is to follow *size* tuples; say what is wrong with it."""
    for i in range(len(codes)):
        if i > 0 and codes[i] < codes[i - 1]:
            return _UNSORTED
        place = positions[i] - first
        new = place - size
        if new < 0 or new >= len(seen) or seen[new]:
            return _GAPS
        seen[new] = True
        places[i] = place
    return _RIGHT
