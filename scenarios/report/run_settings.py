"""Everything that was set for a run, as tables for its page; a network's also for the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from netsim.cost import COSTS, load_profile
from netsim.network import PRESETS
from scenarios.config import FaultConfig, NetworkConfig
from scenarios.formatting import TextTable, format_bit_rate, format_duration, format_values
from scenarios.machine import versions
from scenarios.run import FinishedRun

_RUN = (
    "seed", "backend", "processes", "silence", "encrypt", "sink", "measured", "pairs", "rows"
)  # fmt: skip
"""Keys of a run that are in no section of their own."""


def settings_tables(finished: FinishedRun) -> list[TextTable]:
    """Return everything that was set for a run, by title."""
    config = finished.plan.config
    # Of the whole configuration only the silence is a quantity; its schema takes long to make.
    run = {key: getattr(config, key) for key in _RUN}
    run |= {"silence": format_duration(config.silence), "rows": config.rows or "all"}
    feeding = format_values(config.feeding)
    if config.feeding.rate_tps is None:
        feeding["rate_tps"] = "as fast as the system takes them"
    titles: dict[str, dict[str, Any]] = {"Run": run}
    if config.bind:
        titles["Placeholders"] = config.bind
    titles |= {"Parameters": format_values(finished.plan.parameters), "Feeding": feeding}
    if config.recovery:
        titles["Recovery"] = format_values(config.recovery)
    if config.clock == "virtual":
        profile = load_profile(config.profile)
        costs = [(name, getattr(profile, name)) for name in ("name", *COSTS)]
        titles["Network"] = _network(config.network)
        if config.faults:
            titles["Faults"] = {
                f"{place}. {fault.kind}": _fault(fault)
                for place, fault in enumerate(config.faults, 1)
            }
        titles["Cost profile"] = {k: f"{v:,} ps" if isinstance(v, int) else v for k, v in costs}
    else:  # of the network only the inboxes are not the machine's own
        titles["Network"] = {"inbox_messages": config.network.inbox_messages}
    titles["Versions"] = versions()
    return [
        TextTable(
            title=title, columns=(), rows=[(key, _setting(value)) for key, value in values.items()]
        )
        for title, values in titles.items()
    ]


def _network(network: NetworkConfig) -> dict[str, Any]:
    link = PRESETS[network.preset]
    mean, rate = format_duration(link.latency.mean_ns), format_bit_rate(link.bandwidth_bps)
    preset = f"{network.preset} ({link.latency.kind} {mean}, {rate})"
    return format_network(network) | {"preset": preset}


def format_network(network: NetworkConfig) -> dict[str, Any]:
    """Return the values of a network, quantities with their units, each link by its two sites."""
    values = format_values(network)
    del values["links"]
    for one in network.links:
        differs = one.model_dump(exclude={"a", "b"}, exclude_none=True)
        values[f"{one.a} - {one.b}"] = _listed(one, differs)
    return values


def _fault(fault: FaultConfig) -> str:
    """Return what is set of a fault beside its kind."""
    names = fault.model_dump(exclude={"kind"}, exclude_defaults=True)
    return _listed(fault, names) or "all the time"


def _listed(section: Any, names: Iterable[str]) -> str:
    """Return some values of a section of a configuration in one line."""
    values = format_values(section)
    return ", ".join(f"{name} {_setting(values[name])}" for name in names)


def _setting(value: Any) -> str:
    if value is None:
        return "by default"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
