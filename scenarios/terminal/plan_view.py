"""A plan in the terminal: what it is, why, and what it was estimated to cost and did."""

from __future__ import annotations

from rich import table as rich
from rich.console import Console

from scenarios.planning.planner import Cost, Proposal


def show_proposal(out: Console, proposal: Proposal) -> None:
    """Print the plan, the tables that explain it, and its costs."""
    for line in proposal.plan:
        out.print(line, style="bold")
    for part in proposal.tables:
        table = rich.Table(*part.columns, title=part.title, title_justify="left")
        for row in part.rows:
            table.add_row(*row)
        out.print(table)
    costs = rich.Table("", "estimated", "simulated", "estimate over simulation")
    for cost in proposal.costs:
        costs.add_row(f"{cost.name}, {cost.unit}", *_told(cost))
    out.print(costs)


def _told(cost: Cost) -> tuple[str, str, str]:
    if not cost.measured:
        return _figure(cost.estimated), "-", "-"
    ratio = cost.estimated / cost.measured
    return _figure(cost.estimated), _figure(cost.measured), f"{ratio:.3f}"


def _figure(value: float) -> str:
    """Say a number to five digits, and never with an exponent."""
    return f"{value:,.0f}" if value >= 10_000 else f"{value:,.5g}"
