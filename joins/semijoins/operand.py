"""What a two-way join of a tree joins: a stream, or the output stream of the joins below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from joins.batch import Batch, Schema
from joins.semijoins.joined import Joined


@dataclass(frozen=True, kw_only=True)
class Operand:
    """A stream, or an output stream S_{1…i-1} (stream semijoin paper, section 4.2).

    A tuple of an output stream is a combination of one tuple of each of its streams. It takes event
    time and arrival number, as its key, from its newest one; position and event time of every tuple
    in it are fields, beside the join attributes.

    Attributes
    ----------
    number
        Position of the stream in the query; output streams have the numbers after these.
    streams
        Positions of the streams that are in it, ascending.
    """

    number: int
    streams: tuple[int, ...]

    @property
    def is_output(self) -> bool:
        """Whether it is an output stream."""
        return len(self.streams) > 1

    def field(self, stream: int, name: str) -> str:
        """Return what a join field of one of its streams is called in it."""
        return f"{stream}.{name}" if self.is_output else name

    def ids(self, batch: Batch, stream: int) -> np.ndarray:
        """Return the positions of the tuples of *stream* in some tuples of this operand, int64."""
        return batch.fields[_id(stream)] if self.is_output else batch.id

    def ts(self, batch: Batch, stream: int) -> np.ndarray:
        """Return their event times, int64 ns."""
        return batch.fields[_ts(stream)] if self.is_output else batch.ts

    def schema(self, schemas: Sequence[Schema]) -> Schema:
        """Return the fields of its tuples, given the streams' *schemas*.

        What tuples carry beside their join attributes is as wide as in all of its streams together.
        """
        if not self.is_output:
            return schemas[self.number]
        fields: dict[str, str] = {}
        for stream in self.streams:
            fields |= {_id(stream): "int64", _ts(stream): "int64"}
            for name, dtype in schemas[stream].fields.items():
                fields[self.field(stream, name)] = dtype
        return Schema(
            stream="⋈".join(schemas[stream].stream for stream in self.streams),
            fields=dict(sorted(fields.items())),
            width_bytes=sum(schemas[stream].width_bytes for stream in self.streams),
        )

    def gathered(self, results: Sequence[Joined], position: int) -> Joined:
        """Return combinations of two operands (one lot or more) as tuples of this one.

        They are in the order of arrival of their newest tuples, at positions from *position* on.
        """
        batch = Batch.concat([self._tuples(rows) for rows in results])
        seq = np.concatenate([rows.seq for rows in results])
        born_ns = np.concatenate([rows.born_ns for rows in results])
        order = np.argsort(seq, kind="stable")
        batch = replace(batch.take(order), id=position + np.arange(len(order)))
        return Joined(
            streams=(self.number,), parts=(batch,), seq=seq[order], born_ns=born_ns[order]
        )

    def _tuples(self, rows: Joined) -> Batch:
        fields: dict[str, np.ndarray] = {}
        for number, part in zip(rows.streams, rows.parts, strict=True):
            if number not in self.streams:  # an output stream, whose fields are named already
                fields |= part.fields
                continue
            fields |= {_id(number): part.id, _ts(number): part.ts}
            fields |= {self.field(number, name): column for name, column in part.fields.items()}
        return Batch(
            id=rows.newest.id,
            ts=rows.newest.ts,
            key=rows.seq,
            fields=dict(sorted(fields.items())),
            width_bytes=sum(part.width_bytes for part in rows.parts),
        )


def _id(stream: int) -> str:
    return f"{stream}:id"


def _ts(stream: int) -> str:
    return f"{stream}:ts"
