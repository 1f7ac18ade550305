"""The query as PanJoin's actors see it: which of its predicates subwindows index."""

from __future__ import annotations

import numpy as np

from actors.source import Probes
from joins.batch import Batch, Schema
from joins.codes import encode
from joins.indexes.index import Ranges, codes_of, ranges_of
from joins.queries.query import JoinQuery, JoinSides


def indexed_predicate(query: JoinQuery) -> int:
    """Return the predicate whose field subwindows index.

    The paper's queries have one. Of several an equality finds the fewest candidates, then a band,
    then a comparison; with ``!=`` nearly everything is one.
    """

    def rank(place: int) -> tuple[int, int]:
        operator = query.predicates[place].operator
        if operator.is_equality:
            return 0, place
        if operator.negated:
            return 3, place
        return 1 if operator.subtracts else 2, place

    return min(range(len(query.predicates)), key=rank)


class IndexedQuery(JoinSides):
    """The query's conditions by stream, the indexed one first."""

    def __init__(self, query: JoinQuery, schemas: tuple[Schema, ...]) -> None:
        indexed = indexed_predicate(query)
        others = [place for place in range(len(query.predicates)) if place != indexed]
        super().__init__(query, schemas, [indexed, *others])

    def stored_codes(self, stream: int, batch: Batch) -> list[np.ndarray]:
        """Return what is stored of tuples of *stream*, a column per condition."""
        return codes_of(self.storing[stream], batch)

    def indexed_codes(self, stream: int, batch: Batch) -> np.ndarray:
        """Return the codes that tuples of *stream* are indexed by."""
        return codes_of(self.storing[stream][:1], batch)[0]

    def probes_as_stored(self, stream: int) -> bool:
        """Return whether tuples of *stream* probe with the field that they are indexed by."""
        return self.probing[stream][0].probe_field == self.storing[stream][0].stored_field

    def probing_codes(self, stream: int, batch: Batch) -> np.ndarray:
        """Return the codes of what tuples of *stream* probe the indexed field with."""
        indexed = self.probing[stream][0]
        return encode(batch.fields[indexed.probe_field].astype(indexed.dtype, copy=False))

    def ranges(self, stream: int, part: Probes) -> Ranges:
        """Return the ranges that tuples of *stream* probe with."""
        return ranges_of(self.probing[stream], part.batch, part.start, part.stop)
