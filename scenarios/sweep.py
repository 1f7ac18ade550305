"""A sweep: parameters over ranges, as a study that is made on the fly.

The first range runs along x, the second from line to line, any others from panel to panel, with a
panel for each measure. So a sweep has the table, the picture, the intervals and the file of a
study. What runs at each point is a query, or a survey (`scenarios.survey`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from joins.errors import suggest
from joins.queries.parser import parse_query
from scenarios.config import FeedingConfig, NetworkConfig, RunConfig, name_topology, passed_value
from scenarios.plan import parameter_names, topology_of
from scenarios.scenario_files import ConfigError, change
from scenarios.study.section import REPEATS_MAX, StudySection
from scenarios.study.study import Study, build_study
from scenarios.synthetic import parse
from topologies import AUTO, find_topology

MEASURES = {
    "throughput_tps": "throughput, tuples/s",
    "latency_ms.p95": "latency p95, ms",
    "network.bytes": "network, bytes",
}
"""What a sweep measures unless it is said, to what that is called; see `scenarios.measures`."""

SUSTAINABLE = "sustainable_tps"
"""What a search finds at each point: see `scenarios.measures.is_sustained`."""
SEARCHED = {
    SUSTAINABLE: "sustainable rate, tuples/s",
    "latency_ms.p95": "latency p95 at that rate, ms",
}
"""What a search measures unless it is said."""

PES = ("pes", "po_join_pes", "replicas", "workers", "units", "threads")
"""What topologies call the number of PEs among which they divide the join."""

_RANGE = re.compile(
    r"([-+\d.e]+)\s*([a-zA-Z/]*)\.\.([-+\d.e]+)\s*([a-zA-Z/]*)(:log|:lin)?(?::(\d+))?"
)
_STEPS, _MOST_POINTS = 5, 10_000
_OF_SURVEYS = ("profile", "seed")
"""Keys that a survey shares with runs."""
_SKEWED = {"zipf": 0, "self_similar": 1, "skewed": 2}
"""Distributions to the argument that says how skewed they are."""


@dataclass(frozen=True, kw_only=True)
class Range:
    """One parameter and its values."""

    key: str
    """As it was written: a key as for ``--set``; or ``pes``, ``window``, ``skew``, or the last part
    of a key of the network or the feeding (``latency``, ``rate_tps``)."""
    values: tuple[Any, ...]
    """One per position."""
    log: bool = False
    """Whether each value is a multiple of the one before."""

    @classmethod
    def read(cls, text: str) -> Range:
        """Read ``KEY=FIRST..LAST``, with ``:log`` and the number of values, or ``KEY=A,B,C``.

        Raise :exc:`ConfigError` saying how it is written.
        """
        key, equals, values = (part.strip() for part in text.partition("="))
        if not (key and equals and values):
            raise ConfigError(
                f"over {text}: write it as KEY=FIRST..LAST, KEY=FIRST..LAST:log:5 or KEY=A,B,C"
            )
        if ".." not in values:
            listed = dict.fromkeys(_number(one.strip()) for one in values.split(","))
            return cls(key=key, values=tuple(listed))
        found = _RANGE.fullmatch(values)
        try:
            if not found:
                raise ValueError
            first, last = float(found[1]), float(found[3])
        except ValueError:
            raise ConfigError(
                f"over {text}: a range is FIRST..LAST, with :log and the number of values after "
                "it, as in 1000..100000:log:5 or '1 ms..25 ms:4'"
            ) from None
        log, steps, unit = found[5] == ":log", int(found[6] or _STEPS), found[4] or found[2]
        if found[2] not in ("", unit):
            raise ConfigError(f"over {text}: both ends need one unit, not {found[2]} and {unit}")
        if log and min(first, last) <= 0:
            raise ConfigError(f"over {text}: a logarithmic range has ends above 0")
        if not 2 <= steps <= _MOST_POINTS:
            raise ConfigError(f"over {text}: 2 to {_MOST_POINTS:,} values are allowed")
        spaced = np.geomspace(first, last, steps) if log else np.linspace(first, last, steps)
        whole = first.is_integer() and last.is_integer()
        whole = whole and (key == "pes" or abs(last - first) >= steps - 1)
        # Whole numbers near each other, as 1 to 4 in nine steps, are some of them the same.
        rounded = dict.fromkeys(
            round(one) if whole else float(f"{one:.4g}") for one in spaced.tolist()
        )
        return cls(
            key=key, values=tuple(f"{one:.15g} {unit}" if unit else one for one in rounded), log=log
        )


def read_ranges(over: Mapping[str, Iterable[Any]] | Iterable[str] | str) -> list[Range]:
    """Return the ranges of a mapping of keys to values, or of texts as `Range.read` takes them."""
    if not isinstance(over, Mapping):
        return [Range.read(text) for text in ([over] if isinstance(over, str) else over)]
    written = {"topology": name_topology}  # all other values as `passed_value` writes them
    each = {key: map(written.get(key, passed_value), values) for key, values in over.items()}
    return [Range(key=key, values=tuple(values)) for key, values in each.items()]


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def pes_parameter(topology: str) -> str:
    """Return the parameter by which *topology* is given PEs; raise :exc:`ConfigError` without."""
    known = parameter_names(find_topology(topology))
    for name in PES:
        if name in known:
            return name
    raise ConfigError(f"pes: {topology} has no parameter for a number of PEs")


def settings_of(config: RunConfig, key: str, value: Any) -> dict[str, Any]:
    """Return what *value* of the range *key* sets of *config*, keys as for ``--set``.

    Raise :exc:`ConfigError` where the query or its streams have nothing of that name.
    """
    if key == "pes":
        return {pes_parameter(config.topology): value}
    if key == "window":
        query = parse_query(config.query)
        clause = query.window or query.interval
        if "W" not in config.bind and (clause is None or "W" not in clause.names):
            raise ConfigError(
                "window: the query needs a placeholder for its length: write it as W, as in "
                "SLIDE INTERVAL '10' ON 'W'"
            )
        return {"bind.W": value}
    if key == "skew":
        return _skew_settings(config, value)
    for section, model in (("feeding", FeedingConfig), ("network", NetworkConfig)):
        if key in model.model_fields:
            return {f"{section}.{key}": value}
    return {key: value}


def _skew_settings(config: RunConfig, value: Any) -> dict[str, Any]:
    settings = {}
    for place, stream in enumerate(config.streams):
        for name, text in (stream.synthetic.fields if stream.synthetic else {}).items():
            kind, arguments = parse(text)
            if kind in _SKEWED:
                arguments[_SKEWED[kind]] = str(value)
                key = f"streams.{place}.synthetic.fields.{name}"
                settings[key] = f"{kind}({', '.join(arguments)})"
    if not settings:
        raise ConfigError(
            "skew: it changes synthetic fields that are drawn from "
            f"{', '.join(_SKEWED)}, and there are none"
        )
    return settings


def sweep_study(
    base: RunConfig,
    ranges: Sequence[Range],
    *,
    seeds: int = 1,
    measures: Sequence[str] = (),
    search: bool = False,
    scale: str = "laptop",
) -> Study:
    """Return the study that runs *base* with every combination of the values of *ranges*.

    These run along x, from line to line, and from panel to panel; without any there is one point.
    Every point runs with so many *seeds*. *measures* are by default those of `MEASURES`. With
    *search* each point's rate is searched for: then no range may set it.

    Raise :exc:`ConfigError` where a range names something that there is not, or a value that is not
    allowed.
    """
    if base.survey:
        _check_survey(base, ranges, measures, search=search)
        base = base.model_copy(update={"query": "", "streams": ()})
    keys = [one.key for one in ranges]
    for key in keys:
        if keys.count(key) > 1:
            raise ConfigError(f"over {key}: it is given twice; put its values in one range")
    for one in ranges:
        if not one.values:
            raise ConfigError(f"over {one.key}: it has no values; give it one at least")
    if not 1 <= seeds <= REPEATS_MAX:
        raise ConfigError(f"seeds = {seeds}: 1 to {REPEATS_MAX} are allowed")
    if base.topology == AUTO and not base.survey:
        swept = next((one.values[0] for one in ranges if one.key == "topology"), None)
        lengths = next((one.values for one in ranges if one.key == "window"), ())
        bound = change(base, settings_of(base, "window", lengths[0])) if lengths else base
        name = swept or topology_of(bound).name
        base = change(base, {"topology": name, "parameters": base.parameters})
    if search and {"rate_tps", "feeding.rate_tps"}.intersection(keys):
        raise ConfigError("find sustainable searches for the rate: leave it out of over")
    ordered = _ordered(ranges)
    across = ordered[0] if ordered else None
    lines = ordered[1] if len(ordered) > 1 else None
    more = [one.key for one in ordered[2:]]
    known = SEARCHED if search else MEASURES
    names = {name: known.get(name, name) for name in measures} or known
    panels = [
        {
            "name": ", ".join(f"{key} {value}" for key, value in zip(more, values, strict=True)),
            "set": _joined(base, zip(more, values, strict=True)),
            "measure": measure,
            "label": label,
        }
        for values in product(*(one.values for one in ordered[2:]))
        for measure, label in names.items()
    ]
    written = {
        "axis": _axis(base, across),
        "variants": _variants(base, across, lines),
        "panels": panels,
        "measure": panels[0]["measure"],
        "label": panels[0]["label"],
        "repeat": seeds,
    }
    over = f" over {' and '.join(keys)}" if keys else ""
    titled = change(base, {"title": f"{base.name}{over}", "figure": None})
    return build_study(titled, StudySection.model_validate(written), scale)


def _ordered(ranges: Sequence[Range]) -> Sequence[Range]:
    """Return *ranges* in the order of x, lines and panels.

    Topologies have different names for a number of PEs, and only a line may have a name of its own
    for what runs along x: there a number of PEs is along x, and each topology is a line.
    """
    by_key = {one.key: one for one in ranges}
    if {"pes", "topology"} <= by_key.keys():
        return [by_key.pop("pes"), by_key.pop("topology"), *by_key.values()]
    return sorted(ranges, key=lambda one: one.key == "topology") if len(ranges) == 2 else ranges


def _check_survey(
    base: RunConfig, ranges: Sequence[Range], measures: Sequence[str], *, search: bool
) -> None:
    """Refuse what means nothing to a survey: a rate, a run's parameters, a run's figures."""
    assert base.survey is not None
    if search:
        raise ConfigError("find sustainable: it is for runs, and a survey has no rate")
    for one in ranges:
        if not one.key.startswith("survey.") and one.key not in _OF_SURVEYS:
            known = [f"survey.{key}" for key in type(base.survey).model_fields if key != "of"]
            hint = suggest(f"survey.{one.key}", known)
            raise ConfigError(f"over {one.key}: a survey does not depend on it; {hint}")
    if not measures:
        raise ConfigError(
            f"a measure is missing: a survey of {base.survey.of} has figures of its own "
            "(see scenarios.survey)"
        )


def check_search(find: str | None) -> bool:
    """Return whether there is something to search for; refuse what cannot be."""
    if find not in (None, "sustainable"):
        raise ConfigError(
            f"find {find}: it can be sustainable, the highest rate without a queue that grows"
        )
    return find is not None


def _joined(config: RunConfig, values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return what *values* of ranges, each with its key, set one after the other."""
    settings: dict[str, Any] = {}
    for key, value in values:
        settings |= settings_of(change(config, settings), key, value)
    return settings


def _axis(base: RunConfig, across: Range | None) -> dict[str, Any]:
    if across is None:
        return {"label": "", "values": [base.name], "categories": True}
    each = [settings_of(base, across.key, value) for value in across.values]
    return {
        "label": across.key,
        "keys": list(each[0]),
        "values": [_point(list(one.values())) for one in each],
        "names": [str(value) for value in across.values] if len(each[0]) > 1 else [],
        "log": across.log and isinstance(across.values[0], (int, float)),
        "categories": not isinstance(across.values[0], (int, float))
        and len(each[0]) == 1
        and not re.match(r"[-+\d.]", str(across.values[0])),
    }


def _point(values: list[Any]) -> Any:
    """Return one value of several keys, as a study writes it: alone that of one key, but a list."""
    alone = len(values) == 1 and not isinstance(values[0], (list, tuple))
    return values[0] if alone else values


def _variants(base: RunConfig, across: Range | None, lines: Range | None) -> dict[str, Any]:
    if lines is None:
        return {base.survey.of if base.survey else base.topology: {}}
    variants = {}
    for value in lines.values:
        settings = settings_of(base, lines.key, value)
        variant: dict[str, Any] = {"set": settings}
        if lines.key == "topology" and across is not None and across.key == "pes":
            variant["keys"] = [pes_parameter(value)]
        variants[str(value) if lines.key == "topology" else f"{lines.key} {value}"] = variant
    return variants
