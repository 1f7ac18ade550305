"""An output stream of a join tree where it is made, by two one-way joins (section 4.2)."""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass
from typing import Any

from actors.semijoins.execution import Execution
from actors.semijoins.inflow import Inflow
from actors.semijoins.part import Output
from actors.semijoins.payloads import NewTuples
from joins.semijoins.horizon import Horizon
from joins.semijoins.operand import Operand
from joins.semijoins.operand_window import OperandWindow


@dataclass(frozen=True, kw_only=True)
class OutputSpec:
    """What a site must know of an output stream that is made there.

    Attributes
    ----------
    operand
        What it is in the join above.
    window
        Over it, as the other operand of that join sees it.
    steps
        Numbers of the two one-way joins whose results it is of.
    site
        Where it is made, as the position of the stream that arrives there.
    late_ns
        How long after an interval's end it has all of it, in the paper's model.
    """

    operand: Operand
    window: OperandWindow
    steps: tuple[int, int]
    site: int
    late_ns: int


class OutputStream:
    """Gathers an execution interval's results, and gives them as an interval of new tuples.

    In the paper's model results that come later than a message can take are lost.

    Attributes
    ----------
    inflow
        What it is to its site.
    """

    def __init__(self, spec: OutputSpec) -> None:
        self.inflow = Inflow(spec.operand.number, Horizon(spec.window))
        self._spec = spec
        self._told = dict.fromkeys(spec.steps, -1)
        self._begun: list[int] = []
        self._results: list[Output] = []
        self._made = 0

    def gather(self, output: Output, execution: Execution) -> int | None:
        """Take results; return when their interval has all of them, if a timer is to tell."""
        if output.final:
            self._told[output.step] = output.tick
        if output.tick <= self.inflow.tick:
            return None
        self._results.append(output)
        if output.tick in self._begun:
            return None
        insort(self._begun, output.tick)
        return execution.ends_at(output.tick, self._spec.late_ns)

    def has_all(self, tick: int, execution: Execution, now: int) -> bool:
        """Return whether its windows have all of an interval."""
        waits = self._begun and self._begun[0] <= tick
        return not waits and self._is_made(tick, execution, now)

    def next_interval(self, execution: Execution, now: int) -> NewTuples | None:
        """Return and remove the next interval's tuples if it has all of them."""
        if not (self._begun and self._is_made(self._begun[0], execution, now)):
            return None
        tick = self._begun.pop(0)
        results = [output.joined for output in self._results if output.tick == tick]
        self._results = [output for output in self._results if output.tick != tick]
        tuples = self._spec.operand.gathered(results, self._made)
        self._made += len(tuples)
        return NewTuples(tick, tuples.newest, tuples.seq, tuples.born_ns)

    def _is_made(self, tick: int, execution: Execution, now: int) -> bool:
        return execution.has_all(tick, self._spec.late_ns, min(self._told.values()), now)

    def snapshot(self) -> dict[str, Any]:
        """Return what is gathered."""
        return {
            "inflow": self.inflow.snapshot(),
            "told": list(self._told.values()),
            "begun": list(self._begun),
            "results": list(self._results),
            "made": self._made,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self.inflow.restore(state["inflow"])
        self._told = dict(zip(self._told, state["told"], strict=True))
        self._begun, self._results = list(state["begun"]), list(state["results"])
        self._made = state["made"]
