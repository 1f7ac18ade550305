"""What a join of a tree joins, and how its results become tuples of an output stream, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from joins.batch import Batch, Schema
from joins.semijoins.combinations import Combinations
from joins.state import storable


@storable
@dataclass(frozen=True, kw_only=True)
class Operand:
    """What a two-way join of a tree joins: a stream, or an output stream S_{1…i-1} (section 4.2).

    A tuple of an output stream is a combination of one tuple of each of its streams. Its event time
    and its arrival number, stored as its key, are those of the newest one; position and event time
    of every tuple in it are fields, beside the join attributes.
    """

    number: int
    """Position of the stream in the query; output streams have the numbers after these."""
    streams: tuple[int, ...]
    """Positions of the streams that are in it, ascending."""

    @classmethod
    def of_stream(cls, stream: int) -> Operand:
        """Return a stream of the query as it comes."""
        return cls(number=stream, streams=(stream,))

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

    def newest_stream(self, tuples: Batch) -> np.ndarray:
        """Return the stream of the newest tuple in each of this operand's *tuples*, int64.

        Of tuples of one event time that of the later stream in the query is the newer.
        """
        newest = np.full(len(tuples), self.streams[0])
        for stream in self.streams[1:]:
            newest[self.ts(tuples, stream) == tuples.ts] = stream
        return newest

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

    def gathered(self, results: Sequence[Combinations], position: int) -> Combinations:
        """Return combinations of two operands (one lot or more) as tuples of this one.

        They are in the order of arrival of their newest tuples, at positions from *position* on.
        """
        tuples = Combinations.concat([self._tuples(rows) for rows in results])
        tuples = tuples.take(np.argsort(tuples.seq, kind="stable"))
        numbered = replace(tuples.newest, id=position + np.arange(len(tuples)))
        return replace(tuples, parts=(numbered,))

    def _tuples(self, rows: Combinations) -> Combinations:
        fields: dict[str, np.ndarray] = {}
        for number, part in zip(rows.streams, rows.parts, strict=True):
            if number not in self.streams:  # an output stream, whose fields are named already
                fields |= part.fields
                continue
            fields |= {_id(number): part.id, _ts(number): part.ts}
            fields |= {self.field(number, name): column for name, column in part.fields.items()}
        batch = replace(
            rows.newest,
            key=rows.seq,
            fields=dict(sorted(fields.items())),
            width_bytes=sum(part.width_bytes for part in rows.parts),
        )
        return replace(rows, streams=(self.number,), parts=(batch,))


def by_newest(rows: Combinations, operands: Sequence[Operand]) -> list[Combinations]:
    """Return combinations of two operands as those of their streams; of ids only.

    There is one `Combinations` for each stream of the newest tuple, that stream first.
    """
    ids = {
        stream: operand.ids(part, stream)
        for operand, part in zip(operands, rows.parts, strict=True)
        for stream in operand.streams
    }
    bare = rows.newest.project([])
    newest = operands[0].newest_stream(rows.newest)
    apart = []
    for head in np.unique(newest).tolist():
        order = (head, *sorted(ids.keys() - {head}))
        parts = tuple(replace(bare, id=ids[stream]) for stream in order)
        apart.append(replace(rows, streams=order, parts=parts).take(newest == head))
    return apart


def _id(stream: int) -> str:
    return f"{stream}:id"


def _ts(stream: int) -> str:
    return f"{stream}:ts"
