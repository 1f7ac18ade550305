"""How numbers, sizes, times, verdicts and refusals are written wherever a person reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from math import isfinite, isnan
from typing import Any

from pydantic import BaseModel, TypeAdapter
from quantiphy import Quantity

VERDICT_WORDS: dict[bool | None, str] = {True: "PASS", False: "FAIL", None: "UNKNOWN"}
"""What a verdict, or one of its checks, is called; None where nobody can say."""

NO_VALUE = "–"


def format_value(value: float | None) -> str:
    """Return *value* to three digits, with a letter for thousands, millions and billions."""
    if value is None or isnan(value):
        return NO_VALUE
    if not isfinite(value):
        return "∞"
    for scale, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= 0.9995 * scale:  # what rounds up to it
            return f"{value / scale:.3g}{unit}"
    return f"{value:.3g}"


def format_bytes(count: float | None) -> str:
    """Return a number of bytes to three digits, with a unit of its size."""
    return NO_VALUE if count is None else Quantity(count, "B").render(prec=2)


def format_duration(nanoseconds: float | None) -> str:
    """Return a time to three digits, with a unit of its size."""
    if nanoseconds is None:
        return NO_VALUE
    return Quantity(nanoseconds / 1e9, "s").render(prec=2).replace(" us", " µs")


def format_rate(tps: int) -> str:
    """Return a number of tuples per second with its unit."""
    return f"{format_many(tps, 'tuple')}/s"


def format_many(count: int, thing: str) -> str:
    """Return *count* of a *thing*, in the plural unless it is one."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def format_bit_rate(bps: int) -> str:
    """Return a bandwidth to three digits, with a unit of its size."""
    return Quantity(bps, "b/s").render(prec=2)


_QUANTITIES = {"duration": format_duration, "bandwidth": format_bit_rate}
"""How a quantity is written, by the format that its JSON schema names."""


def format_values(section: Any) -> dict[str, Any]:
    """Return the values of a section of a configuration, quantities with their units."""
    values = dict(section) if isinstance(section, BaseModel) else asdict(section)
    hashable: Any = type(section)
    for name, kind in _quantities_of(hashable).items():
        if values[name] is not None:
            values[name] = _QUANTITIES[kind](values[name])
    return values


@cache
def _quantities_of(section: type) -> Mapping[str, str]:
    """Return name to kind of the quantities in a section; making a schema takes milliseconds."""
    kinds = {}
    for name, schema in TypeAdapter(section).json_schema().get("properties", {}).items():
        for one in (schema, *schema.get("anyOf", ())):
            if one.get("format") in _QUANTITIES:
                kinds[name] = one["format"]
    return kinds


def format_ms(ms: float | None) -> str:
    """Return milliseconds without their unit: three digits, from a thousand on whole ones."""
    if ms is None:
        return NO_VALUE
    return f"{ms:,.0f}" if ms >= 999.5 else f"{ms:,.3g}"


def format_count(value: float | None, decimals: int = 0) -> str:
    """Return *value* with commas between thousands."""
    return NO_VALUE if value is None else f"{value:,.{decimals}f}"


def format_toml(value: Any) -> str:
    """Return *value* as it is written in TOML, on one line; keys without a value are left out."""
    if isinstance(value, Mapping):
        there = {json.dumps(str(key)): one for key, one in value.items() if one is not None}
        return f"{{ {', '.join(f'{key} = {format_toml(one)}' for key, one in there.items())} }}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(format_toml, value))}]"
    return json.dumps(value, ensure_ascii=False, default=str)


def format_setting(key: str, value: Any) -> str:
    """Return ``KEY=VALUE`` as ``--set`` takes it."""
    if value is None:
        return f"{key}=none"
    return f"{key}={value if isinstance(value, str) else format_toml(value)}"


def group_refusals(refused: Mapping[str, str]) -> str:
    """Return the reasons why systems cannot evaluate a query, each once with its systems."""
    return "; ".join(f"{', '.join(names)}: {why}" for why, names in by_reason(refused).items())


def by_reason(refused: Mapping[str, str]) -> dict[str, list[str]]:
    """Return reason to systems, of system to reason, which may begin with its system's name.

    A variant is left out where its system is refused for the same reason.

    >>> why = "joins over windows"
    >>> by_reason({"a": f"a {why}", "a, fast": f"a {why}", "b, fast": f"b {why}"})
    {'joins over windows': ['a', 'b, fast']}
    """
    reasons: dict[str, list[str]] = {}
    for label, why in refused.items():
        system = label.split(",")[0]
        systems = reasons.setdefault(why.removeprefix(f"{system} "), [])
        if system not in systems:
            systems.append(label)
    return reasons
