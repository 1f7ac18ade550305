"""A stream's tuples as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from joins.state import storable

FIELD_DTYPES = ("int64", "float64")
"""Every join field is one of these: smaller types widen without loss, and kernels stay few."""

RowSelection = np.ndarray | slice
"""Which rows: int64 positions or a mask, to be copied, or a slice, for views."""

_ROW_BYTES = 24  # id, ts and key: eight bytes each


@storable
@dataclass(frozen=True, kw_only=True)
class Schema:
    """What a stream's tuples carry."""

    stream: str
    """The stream's name, as the query spells it."""
    fields: Mapping[str, str]
    """Join field name to dtype (one of `FIELD_DTYPES`), in column order."""
    width_bytes: int = 0
    """Declared width of the fields that are shipped with a tuple but not joined on."""

    def __post_init__(self) -> None:
        for name, dtype in self.fields.items():
            if dtype not in FIELD_DTYPES:
                raise ValueError(
                    f"stream {self.stream!r}, field {name!r}: dtype {dtype!r} is not one of "
                    f"{', '.join(FIELD_DTYPES)}"
                )


@storable
@dataclass(frozen=True, kw_only=True)
class Batch:
    """Some tuples of one stream, one row each, columns of equal length."""

    id: np.ndarray
    """int64, the tuple's position in its own stream."""
    ts: np.ndarray
    """int64, event time in nanoseconds."""
    key: np.ndarray
    """int64, 0 when the query has no key."""
    fields: dict[str, np.ndarray] = field(default_factory=dict)
    """Join field name to int64 or float64 column."""
    width_bytes: int = 0
    """Declared width per tuple of what is shipped beside these columns."""

    def __len__(self) -> int:
        return len(self.id)

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes: the columns and the declared width."""
        return len(self.id) * self.row_bytes

    @property
    def row_bytes(self) -> int:
        """Size of a tuple on the wire in bytes."""
        return _ROW_BYTES + 8 * len(self.fields) + self.width_bytes

    @classmethod
    def empty(cls, schema: Schema) -> Batch:
        """Return a batch of no tuples with the columns of *schema*."""
        nothing = np.empty(0, np.int64)
        return cls(
            id=nothing,
            ts=nothing,
            key=nothing,
            fields={name: np.empty(0, dtype) for name, dtype in schema.fields.items()},
            width_bytes=schema.width_bytes,
        )

    def slice(self, start: int, stop: int) -> Batch:
        """Return rows *start* to *stop* (exclusive) as views."""
        return self.take(slice(start, stop))

    def take(self, rows: RowSelection) -> Batch:
        """Return the given *rows*."""
        return Batch(
            id=self.id[rows],
            ts=self.ts[rows],
            key=self.key[rows],
            fields={name: column[rows] for name, column in self.fields.items()},
            width_bytes=self.width_bytes,
        )

    def project(self, names: Sequence[str], *, width_bytes: int = 0) -> Batch:
        """Keep only the join fields *names*; the rest, declared width included, is not shipped."""
        fields = {name: self.fields[name] for name in names}
        return replace(self, fields=fields, width_bytes=width_bytes)

    @classmethod
    def from_arrow(cls, table: pa.Table | pa.RecordBatch, schema: Schema) -> Batch:
        """Read a batch from Arrow columns ``id``, ``ts`` and the join fields; its keys are 0.

        `actors.feed` has checked that each column is there, of its type and without nulls. A column
        that already has its dtype is not copied when it is one chunk.
        """

        def column(name: str, dtype: str) -> np.ndarray:
            values = table[name]
            if isinstance(values, pa.ChunkedArray):
                # Combining a single chunk would copy it.
                values = values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()
            return np.asarray(values.to_numpy(zero_copy_only=False), dtype)

        ids = column("id", "int64")
        return cls(
            id=ids,
            ts=column("ts", "int64"),
            key=np.zeros(len(ids), np.int64),
            fields={name: column(name, dtype) for name, dtype in schema.fields.items()},
            width_bytes=schema.width_bytes,
        )

    @classmethod
    def concat(cls, batches: Sequence[Batch]) -> Batch:
        """Join *batches* of one stream (at least one) end to end."""
        first = batches[0]
        batches = [batch for batch in batches if len(batch)]
        if len(batches) <= 1:
            return batches[0] if batches else first
        return cls(
            id=np.concatenate([batch.id for batch in batches]),
            ts=np.concatenate([batch.ts for batch in batches]),
            key=np.concatenate([batch.key for batch in batches]),
            fields={
                name: np.concatenate([batch.fields[name] for batch in batches])
                for name in first.fields
            },
            width_bytes=first.width_bytes,
        )
