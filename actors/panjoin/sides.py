"""The query as PanJoin's actors see it: one predicate's field is indexed, the others filter."""

from __future__ import annotations

import numpy as np

from actors.probes import Probes
from joins.batch import Batch, Schema
from joins.indexes.panjoin.answering import Probes as EncodedProbes
from joins.indexes.panjoin.probing import encode_probes
from joins.queries.conditions import Band, Condition
from joins.queries.query import JoinQuery


def indexed_predicate(query: JoinQuery) -> int:
    """Return the predicate whose field subwindows index.

    The paper's queries have one. Of several an equality finds the fewest candidates, then a band,
    then a comparison; with ``!=`` nearly everything is one.
    """

    def rank(place: int) -> tuple[int, int]:
        operator = query.predicates[place].operator
        if operator.is_equality:
            return 0, place
        if isinstance(operator, Band):
            return 1, place
        return 3 if operator.negated else 2, place

    return min(range(len(query.predicates)), key=rank)


class Sides:
    """Conditions by stream, the indexed one first.

    Attributes
    ----------
    streams
        Number of streams.
    stored_stream
        Per probing stream the one it probes.
    dtypes
        Per stored stream the dtypes of its fields.
    """

    def __init__(self, query: JoinQuery, schemas: tuple[Schema, ...]) -> None:
        self.streams = len(query.streams)
        lead = indexed_predicate(query)
        self.stored_stream = [query.stored_stream(stream) for stream in range(self.streams)]
        self._probing: list[list[Condition]] = []
        for stream in range(self.streams):
            conditions = list(query.conditions(stream, schemas))
            self._probing.append([conditions.pop(lead), *conditions])
        self._storing = [self._probing[other] for other in self.stored_stream]
        self.dtypes = [tuple(c.dtype for c in conditions) for conditions in self._storing]

    def columns(self, stream: int, batch: Batch) -> list[np.ndarray]:
        """Return what is stored of tuples of *stream*, a column per condition."""
        return [
            batch.fields[condition.stored_field].astype(condition.dtype, copy=False)
            for condition in self._storing[stream]
        ]

    def probes_as_stored(self, stream: int) -> bool:
        """Tell whether tuples of *stream* probe with the field that they are indexed by."""
        return self._probing[stream][0].probe_field == self._storing[stream][0].stored_field

    def probing_values(self, stream: int, batch: Batch) -> np.ndarray:
        """Return the values that tuples of *stream* probe the indexed field with."""
        lead = self._probing[stream][0]
        return batch.fields[lead.probe_field].astype(lead.dtype, copy=False)

    def encode(self, stream: int, part: Probes) -> EncodedProbes:
        """Return tuples of *stream* as the structures take them."""
        conditions = self._probing[stream]
        ends = [c.bounds(part.batch.fields[c.probe_field]) for c in conditions]
        return encode_probes(
            [c.dtype for c in conditions],
            [low for low, _ in ends],
            [high for _, high in ends],
            negated=[c.negated for c in conditions],
            start=part.start,
            stop=part.stop,
        )
