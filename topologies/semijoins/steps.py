"""The one-way joins of a plan, with all that their two sites must know of them."""

from __future__ import annotations

from collections.abc import Sequence

from actors.semijoins.part import OneWayStep
from joins.batch import Schema
from joins.queries.query import JoinQuery
from joins.semijoins.attributes import JoinAttributes
from joins.semijoins.one_way_join import OneWayJoin
from topologies.semijoins.plan import LinearPlan
from topologies.topology import TopologyError


def one_way_steps(
    query: JoinQuery, plan: LinearPlan, schemas: Sequence[Schema]
) -> list[OneWayStep]:
    """Return the one-way joins of all sequences, numbered.

    Raise :exc:`TopologyError` for a Bloom filter where there is no equality.
    """
    steps: list[OneWayStep] = []
    for sequence in plan.sequences:
        last = len(steps) + len(sequence.steps) - 1
        for place, step in enumerate(sequence.steps):
            known = sequence.order[: place + 1]
            number = len(steps)
            attributes = JoinAttributes.between(query, known, step.stream, schemas)
            check_filter(
                step.algorithm, attributes, query.streams[known[-1]], query.streams[step.stream]
            )
            steps.append(
                OneWayStep(
                    number=number,
                    algorithm=step.algorithm,
                    source=sequence.sites[place],
                    destination=step.stream,
                    streams=known,
                    stored=step.stream,
                    attributes=attributes,
                    window=query.windows[step.stream],
                    schema=schemas[step.stream],
                    following=None if number == last else number + 1,
                )
            )
    return steps


def check_filter(
    algorithm: OneWayJoin, attributes: JoinAttributes, source: str, destination: str
) -> None:
    """Raise :exc:`TopologyError` for a Bloom filter where there is no equality."""
    if algorithm.startswith("BLOOM") and not attributes.equalities:
        raise TopologyError(
            f"{algorithm} from {source} to {destination}: a Bloom filter needs a predicate with ="
        )
