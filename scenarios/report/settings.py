"""Everything that was set for a run, in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from quantiphy import Quantity

from netsim.cost import load_profile
from netsim.network import PRESETS
from scenarios.run import Report
from scenarios.run_json import versions

Table = tuple[str, list[tuple[str, str]]]
"""A title, then names and values."""


def settings_tables(report: Report) -> list[Table]:
    """Return everything that was set, by title."""
    config = report.plan.config
    feeding: dict[str, Any] = {
        "batch_rows": f"{config.feeding.batch_rows:,} tuples a message",
        "rate_tps": f"{config.feeding.rate_tps:,} tuples/s"
        if config.feeding.rate_tps
        else "as fast as the system takes them",
    }
    if config.feeding.disorder:
        bound = "at most" if config.feeding.bounded else "on average"
        feeding["disorder"] = f"{bound} {duration(config.feeding.disorder)}"
    if config.feeding.watermark_lag is not None:
        feeding["watermark_lag"] = duration(config.feeding.watermark_lag)
    costs = {
        name: f"{value:,} ps" if isinstance(value, int) else value
        for name, value in asdict(load_profile(config.profile)).items()
    }
    run = {"seed": config.seed, "backend": config.backend, "processes": config.processes}
    tables: list[tuple[str, dict[str, Any]]] = [
        ("Run", run | {"pairs": config.pairs, "rows": config.rows or "all"} | config.bind),
        ("Parameters", asdict(report.plan.parameters)),
        ("Feeding", feeding),
    ]
    if config.clock == "virtual":
        tables += [("Network", _network(report)), ("Cost profile", costs)]
    else:  # Of the network only the inboxes are not the machine's own.
        tables += [("Network", {"inbox_messages": config.network.inbox_messages})]
    tables.append(("Versions", versions()))
    return [(title, list(_told(values.items()))) for title, values in tables]


def _network(report: Report) -> dict[str, Any]:
    network = report.plan.config.network
    link = PRESETS[network.preset]
    preset = f"{duration(link.latency.mean_ns)}, {bit_rate(link.bandwidth_bps)}"
    told: dict[str, Any] = {"preset": f"{network.preset} ({link.latency.kind} {preset})"}
    told |= _link(network.latency, network.jitter, network.bandwidth)
    if network.latency_kind:
        told["latency_kind"] = network.latency_kind
    if not network.mesh:
        told["links"] = "only those named"
    told |= {"cores": f"{network.cores} a site", "inbox_messages": network.inbox_messages}
    for one in network.links:
        differs = _link(one.latency, one.jitter, one.bandwidth)
        told[f"{one.a} - {one.b}"] = ", ".join(f"{k} {v}" for k, v in differs.items())
    return told


def _link(latency_ns: int | None, jitter_ns: int | None, bps: int | None) -> dict[str, str]:
    told = {
        "latency": None if latency_ns is None else duration(latency_ns),
        "jitter": None if jitter_ns is None else duration(jitter_ns),
        "bandwidth": None if bps is None else bit_rate(bps),
    }
    return {name: value for name, value in told.items() if value is not None}


def _told(items: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, str]]:
    for name, value in items:
        if value is None:
            yield name, "by default"
        elif isinstance(value, bool):
            yield name, "yes" if value else "no"
        else:
            yield name, f"{value:,}" if isinstance(value, int) else str(value)


def in_bytes(count: int) -> str:
    """Say a number of bytes with a unit of its size."""
    return Quantity(count, "B").render(prec=2)


def duration(nanoseconds: float) -> str:
    """Say a time with a unit of its size."""
    return Quantity(nanoseconds / 1e9, "s").render(prec=2).replace(" us", " µs")


def bit_rate(bps: int) -> str:
    """Say a bandwidth with a unit of its size."""
    return Quantity(bps, "b/s").render(prec=2)
