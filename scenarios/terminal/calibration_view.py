"""A cost profile, and how well it predicts, in the terminal."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from netsim.cost import CostProfile, load_profile
from netsim.operator_cost import GROUPS
from scenarios.calibration.fidelity import Prediction
from scenarios.calibration.fit import COSTS, Calibrated


def show_profile(out: Console, profile: CostProfile, path: Path) -> None:
    """Print what each unit of work costs, beside the default profile."""
    default = load_profile()
    table = Table("cost of one", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for title in ("ns here", "ns by default"):
        table.add_column(title, justify="right")
    for name in COSTS:
        costs = [getattr(one, name) / 1000 for one in (profile, default)]
        table.add_row(name.removesuffix("_ps").replace("_", " "), *(f"{c:,.3g}" for c in costs))
    out.print(table)
    out.print(f"{path}: for --set profile={path}")


def show_operators(out: Console, measured: Calibrated) -> None:
    """Print what each operator costs beside the transport of its messages."""
    table = Table("system", "operator", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for title in ("us a message", "ns a tuple", "search %", "bits %", "matches %"):
        table.add_column(title, justify="right")
    for system, roles in measured.operators.items():
        for role, cost in roles.items():
            told = (f"{cost.message_ps / 1e6:,.3g}", f"{cost.row_ps / 1e3:,.3g}")
            table.add_row(system, role, *told, *(str(getattr(cost, group)) for group in GROUPS))
    out.print(table)
    out.print("search, bits, matches: of what such work costs in the default profile")
    transport = measured.transport
    out.print(
        f"a message within a process: {transport.local_message_ps / 1e6:,.3g} us; to another, for "
        f"its sender: {transport.sent_message_ps / 1e6:,.3g} us"
    )


def show_predictions(out: Console, predictions: Sequence[Prediction]) -> None:
    """Print predicted beside measured, a line per system and query, and the errors' medians."""
    table = Table("system", "query", "exact", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for title in ("predicted/s", "measured/s", "error", "predicted p50", "measured p50", "error"):
        table.add_column(title, justify="right", no_wrap=True)
    for one in predictions:
        table.add_row(
            one.topology,
            one.query,
            "yes" if one.exact else "NO",
            f"{one.predicted_tps:,.0f}",
            f"{one.measured_tps:,.0f}",
            f"{one.throughput_error:+.0%}",
            _ms(one.predicted_ms),
            _ms(one.measured_ms),
            "-" if one.latency_error is None else f"{one.latency_error:+.0%}",
        )
    out.print(table)
    errors = [abs(one.throughput_error) for one in predictions]
    late = [abs(one.latency_error) for one in predictions if one.latency_error is not None]
    for what, found in (("throughput", errors), ("latency", late)):
        if found:
            out.print(
                f"{what}: off by {statistics.median(found):.0%} in the median, {max(found):.0%} at "
                "the most"
            )


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:,.3g} ms"
