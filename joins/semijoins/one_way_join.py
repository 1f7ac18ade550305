"""One-way joins between two sites: the algorithms by name, and what they compare.

A one-way join S_1 → S_2 looks for each new tuple of S_1, at the source site, into the window of
S_2, at the destination site (stream semijoin paper, section 3.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from joins.batch import Batch, Schema
from joins.queries.conditions import Condition
from joins.queries.query import JoinQuery
from joins.semijoins.combinations import Combinations
from joins.semijoins.operand import Operand


class OneWayJoin(StrEnum):
    """How, and where, the tuples of a source are joined with the window of a destination."""

    at_source: bool
    """Whether the output is made at the source site; else at the destination."""
    delayed: bool
    """Whether probes wait δ for what the destination ships unasked (Constraint 1)."""
    crossings: int
    """Messages between the sites, one after the other, from a tuple's coming to its results."""

    def __new__(
        cls, name: str, at_source: bool = False, delayed: bool = False, crossings: int = 0
    ) -> OneWayJoin:
        """Make a join that is spelt as its *name*."""
        join = str.__new__(cls, name)
        join._value_ = name
        join.at_source, join.delayed, join.crossings = at_source, delayed, crossings
        return join

    SP_S = "SP-S", True, True, 0
    """Simple join at the source: all tuples of S_2 are shipped there (Algorithm 1)."""
    SP_D = "SP-D", False, False, 1
    """Simple join at the destination: all tuples of S_1 are shipped there (Algorithm 2)."""
    SM_S1 = "SM-S1", True, False, 2
    """One-step semijoin at the source (Algorithm 3)."""
    SM_S2 = "SM-S2", True, True, 2
    """Two-step semijoin at the source (Algorithm 4)."""
    SM_D1 = "SM-D1", False, True, 1
    """One-step semijoin at the destination (Algorithm 5)."""
    SM_D2 = "SM-D2", False, False, 3
    """Two-step semijoin at the destination (Algorithm 6)."""
    BLOOM_S = "BLOOM-S", True, False, 2
    """Semijoin at the source by a Bloom filter of the new tuples; not in the paper."""
    BLOOM_D = "BLOOM-D", False, True, 1
    """Semijoin at the destination by a Bloom filter of the window; not in the paper."""

    @property
    def simple(self) -> bool:
        """Whether it ships everything, whatever matches."""
        return self in (OneWayJoin.SP_S, OneWayJoin.SP_D)

    @property
    def filters(self) -> bool:
        """Whether it ships Bloom filters."""
        return self in (OneWayJoin.BLOOM_S, OneWayJoin.BLOOM_D)


PAPER_ALGORITHMS = tuple(join for join in OneWayJoin if not join.filters)
"""The six of the paper."""


@dataclass(frozen=True, kw_only=True)
class JoinAttributes:
    """Where a one-way join compares the streams joined so far with the next one."""

    probe: tuple[tuple[int, str], ...]
    """Join attributes of the streams so far, each once: number of the operand, and field. A partial
    tuple of theirs has these."""
    stored: tuple[str, ...]
    """Join attributes of the next stream, each once. A partial tuple of it has these."""
    conditions: tuple[Condition, ...]
    """The predicates, as combinations so far see the next stream."""
    places: tuple[tuple[int, int], ...]
    """Per predicate the places of its two sides in *probe* and *stored*."""

    @classmethod
    def between(
        cls, query: JoinQuery, joined: Sequence[Operand], stored: Operand, schemas: Sequence[Schema]
    ) -> JoinAttributes:
        """Return the attributes that compare the operands *joined* so far with *stored*.

        *schemas* are the streams'. Raise :exc:`joins.queries.query.QueryError` naming a field that
        a stream does not have.
        """
        sides = [
            ((operand.number, operand.field(a, c.probe_field)), stored.field(b, c.stored_field), c)
            for operand in joined
            for a in operand.streams
            for b in stored.streams
            for c in query.conditions_between(a, b, schemas)
        ]
        near = list(dict.fromkeys(probe for probe, _, _ in sides))
        far = list(dict.fromkeys(field for _, field, _ in sides))
        return cls(
            probe=tuple(near),
            stored=tuple(far),
            conditions=tuple(condition for _, _, condition in sides),
            places=tuple((near.index(probe), far.index(field)) for probe, field, _ in sides),
        )

    @property
    def equalities(self) -> tuple[int, ...]:
        """Places of the predicates that are equalities."""
        return tuple(i for i, c in enumerate(self.conditions) if c.operator.is_equality)

    def of_combinations(self, rows: Combinations) -> tuple[np.ndarray, ...]:
        """Project combinations on their join attributes."""
        return tuple(rows.column(stream, field) for stream, field in self.probe)

    def of_stored(self, batch: Batch) -> tuple[np.ndarray, ...]:
        """Project tuples of the next stream on their join attributes."""
        return tuple(batch.fields[field] for field in self.stored)

    def probe_keys(self, columns: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """Return what equalities compare, a column each, of the probing side's attributes."""
        return self._keys(columns, side=0)

    def stored_keys(self, columns: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """Return what equalities compare, a column each, of the stored side's attributes."""
        return self._keys(columns, side=1)

    def _keys(self, columns: Sequence[np.ndarray], side: int) -> tuple[np.ndarray, ...]:
        return tuple(
            columns[self.places[i][side]].astype(self.conditions[i].dtype, copy=False)
            for i in self.equalities
        )
