"""The one-way joins and output streams of a join tree, with all that their sites must know of them.

In the paper's model an output stream has an interval's tuples when everything that is in it has had
the time to come: δ after both operands of its join have theirs, and as much again where a copy of a
window must be complete before it is looked into. So much later than in a linear plan do results
come, and so much longer must windows be kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from actors.semijoins.output_stream import OutputSpec
from actors.semijoins.part import OneWayStep
from actors.semijoins.parts import PARTS
from joins.batch import Schema
from joins.queries.query import JoinQuery
from joins.semijoins.attributes import JoinAttributes
from joins.semijoins.one_way_join import OneWayJoin
from joins.semijoins.operand import Operand
from joins.semijoins.operand_window import OperandWindow
from topologies.semijoins.steps import check_filter
from topologies.semijoins.trees.plan import Tree, TreePlan, TwoWayJoin, joins_of, leaves, site_of
from topologies.topology import TopologyError


@dataclass(frozen=True, kw_only=True)
class TreeSteps:
    """A join tree as sites carry it out.

    Attributes
    ----------
    steps
        All one-way joins, numbered; two for each join.
    outputs
        The output streams.
    removal_ns
        By which removals are delayed in the paper's model.
    """

    steps: tuple[OneWayStep, ...]
    outputs: tuple[OutputSpec, ...]
    removal_ns: int


def tree_steps(
    query: JoinQuery, plan: TreePlan, schemas: Sequence[Schema], delta_ns: int
) -> TreeSteps:
    """Return what sites must know of *plan*.

    Raise :exc:`TopologyError` for windows that count tuples, and for a Bloom filter where there is
    no equality.
    """
    counting = [query.streams[s] for s, w in enumerate(query.windows) if w.kind == "count"]
    if counting:
        raise TopologyError(
            f"plan {plan}: a tree joins over windows of time; that of {counting[0]} counts tuples, "
            "and an output stream lacks those that matched nothing. Linear plans can count them"
        )
    return _Builder(query, plan, tuple(schemas), delta_ns).built()


class _Builder:
    """Numbers operands and steps, and looks up what they are made of."""

    def __init__(
        self, query: JoinQuery, plan: TreePlan, schemas: tuple[Schema, ...], delta_ns: int
    ) -> None:
        self._query = query
        self._schemas = schemas
        self._delta_ns = delta_ns
        self._joins = list(joins_of(plan.root))
        self._place = {leaves(join): place for place, join in enumerate(self._joins)}

    def built(self) -> TreeSteps:
        """Return the whole."""
        return TreeSteps(
            steps=tuple(step for join in self._joins for step in self._steps(join)),
            outputs=tuple(self._outputs()),
            removal_ns=self._late_ns(self._joins[-1]),
        )

    def _operand(self, tree: Tree) -> Operand:
        if isinstance(tree, int):
            return Operand(number=tree, streams=(tree,))
        number = len(self._schemas) + self._place[leaves(tree)]
        return Operand(number=number, streams=tuple(sorted(leaves(tree))))

    def _window(self, probe: Tree, stored: Tree) -> OperandWindow:
        operands = self._operand(probe), self._operand(stored)
        return OperandWindow(
            probe=operands[0],
            stored=operands[1],
            windows=self._query.windows,
            last=sum(len(operand.streams) for operand in operands) == len(self._schemas),
        )

    def _late_ns(self, tree: Tree) -> int:
        if isinstance(tree, int):
            return 0
        delayed = any(PARTS[algorithm][0].delayed for algorithm in (tree.up, tree.down))
        below = max(self._late_ns(tree.left), self._late_ns(tree.right))
        return below + self._delta_ns * (2 if delayed else 1)

    def _steps(self, join: TwoWayJoin) -> list[OneWayStep]:
        number = 2 * self._place[leaves(join)]
        return [
            self._step(number, join, join.left, join.right, join.down),
            self._step(number + 1, join, join.right, join.left, join.up),
        ]

    def _step(
        self, number: int, join: TwoWayJoin, probe: Tree, stored: Tree, algorithm: OneWayJoin
    ) -> OneWayStep:
        window = self._window(probe, stored)
        attributes = JoinAttributes.of_operands(
            self._query, window.probe, window.stored, self._schemas
        )
        schemas = [operand.schema(self._schemas) for operand in (window.probe, window.stored)]
        check_filter(algorithm, attributes, schemas[0].stream, schemas[1].stream)
        return OneWayStep(
            number=number,
            algorithm=algorithm,
            source=site_of(probe),
            destination=site_of(stored),
            streams=(window.probe.number,),
            stored=window.stored.number,
            attributes=attributes,
            window=window,
            schema=schemas[1],
            output=None if window.last else self._operand(join).number,
            late_ns=self._late_ns(stored),
        )

    def _outputs(self) -> Iterator[OutputSpec]:
        for above in self._joins:
            for tree, other in ((above.left, above.right), (above.right, above.left)):
                if isinstance(tree, TwoWayJoin):
                    number = 2 * self._place[leaves(tree)]
                    yield OutputSpec(
                        operand=self._operand(tree),
                        window=self._window(other, tree),
                        steps=(number, number + 1),
                        site=tree.site,
                        late_ns=self._late_ns(tree),
                    )
