"""What comes into a site: its own stream, and the output streams of a tree that are made there."""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass
from typing import ClassVar

from actors.semijoins.execution import Execution
from actors.semijoins.one_way import Shipment
from actors.semijoins.site_source import NewTuples
from joins.semijoins.combinations import Combinations, Operand
from joins.semijoins.operand_windows import Horizon, OperandWindow
from joins.state import Stateful


class Inflow(Stateful):
    """A stream that enters a site, interval by interval.

    Attributes
    ----------
    stream
        Its number: of a stream of the query its position.
    horizon
        Which of its tuples may still be seen.
    tick
        End of the latest execution interval that it brought.
    """

    state: ClassVar[tuple[str, ...]] = ("horizon", "tick")

    def __init__(self, stream: int, horizon: Horizon) -> None:
        self.stream = stream
        self.horizon = horizon
        self.tick = -1

    def has_all(self, tick: int, execution: Execution, now: int) -> bool:
        """Return whether the windows over it have all of an interval."""
        return self.tick >= tick


@dataclass(frozen=True, kw_only=True)
class OutputSpec:
    """What a site needs to make an output stream.

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


class OutputStream(Inflow):
    """An output stream where it is made, by two one-way joins (section 4.2).

    The two operands of a two-way join send each interval's new tuples into each other's windows.
    What matches is an interval of the output stream, once both have: it comes into the site as an
    interval of the site's own stream does, and meets the other operand of the join above. In the
    paper's model results that come later than a message can take are lost.
    """

    state = ("_complete", "_begun", "_results", "_made")

    def __init__(self, spec: OutputSpec) -> None:
        super().__init__(spec.operand.number, Horizon(spec.window))
        self._spec = spec
        self._complete = dict.fromkeys(spec.steps, -1)
        self._begun: list[int] = []
        self._results: list[Shipment[Combinations]] = []
        self._made = 0

    def gather(self, output: Shipment[Combinations], execution: Execution) -> int | None:
        """Add results; return when their interval is complete, if that needs a timer."""
        if output.final:
            self._complete[output.step] = output.tick
        if output.tick <= self.tick:
            return None
        self._results.append(output)
        if output.tick in self._begun:
            return None
        insort(self._begun, output.tick)
        return execution.complete_at(output.tick, self._spec.late_ns)

    def has_all(self, tick: int, execution: Execution, now: int) -> bool:
        """Return whether the windows over it have all of an interval."""
        waits = self._begun and self._begun[0] <= tick
        return not waits and self._is_made(tick, execution, now)

    def next_interval(self, execution: Execution, now: int) -> NewTuples | None:
        """Return and remove the next interval's tuples if it has all of them."""
        if not (self._begun and self._is_made(self._begun[0], execution, now)):
            return None
        tick = self._begun.pop(0)
        results = [output.content for output in self._results if output.tick == tick]
        self._results = [output for output in self._results if output.tick != tick]
        tuples = self._spec.operand.gathered(results, self._made)
        self._made += len(tuples)
        return NewTuples(tick, tuples)

    def _is_made(self, tick: int, execution: Execution, now: int) -> bool:
        return execution.is_complete(tick, self._spec.late_ns, min(self._complete.values()), now)
