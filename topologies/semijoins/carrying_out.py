"""By what actors, with what steps and in which model a plan is carried out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from actors.semijoins.execution import Delayed, Execution, Punctuated
from actors.semijoins.parts import PARTS
from actors.semijoins.site import Site
from actors.semijoins.tree_site import TreeSite
from joins.batch import Schema
from joins.queries.query import JoinQuery
from topologies.semijoins.parameters import SemijoinParameters
from topologies.semijoins.plan import LinearPlan
from topologies.semijoins.reading import JoinPlan
from topologies.semijoins.steps import one_way_steps
from topologies.semijoins.trees.steps import tree_steps


@dataclass(frozen=True, kw_only=True)
class CarryingOut:
    """What all sites of a plan have in common.

    Attributes
    ----------
    actor
        What a site is.
    steps
        Arguments by which it knows the plan.
    execution
        How sites know that they have heard everything.
    """

    actor: type[Site]
    steps: dict[str, Any]
    execution: Execution


def carrying_out(
    query: JoinQuery, plan: JoinPlan, schemas: Sequence[Schema], parameters: SemijoinParameters
) -> CarryingOut:
    """Return how *plan* is carried out.

    Raise :exc:`TopologyError` for a Bloom filter where there is no equality, and for a tree over
    windows that count tuples.
    """
    if isinstance(plan, LinearPlan):
        steps = one_way_steps(query, plan, schemas)
        delayed = any(PARTS[step.algorithm][0].delayed for step in steps)
        removal_ns = parameters.delta * (2 if delayed else 1)
        return CarryingOut(
            actor=Site, steps={"steps": steps}, execution=_execution(parameters, removal_ns)
        )
    tree = tree_steps(query, plan, schemas, parameters.delta)
    return CarryingOut(
        actor=TreeSite,
        steps={"steps": tree.steps, "outputs": tree.outputs},
        execution=_execution(parameters, tree.removal_ns),
    )


def _execution(parameters: SemijoinParameters, removal_ns: int) -> Execution:
    if parameters.execution == "punctuated":
        return Punctuated()
    return Delayed(delta_ns=parameters.delta, removal_ns=removal_ns)
