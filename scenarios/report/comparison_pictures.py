"""What is compared, as a picture: a row of bars for each system or engine, a panel per measure."""

from __future__ import annotations

from collections.abc import Mapping

from scenarios.engines.comparison import EngineComparison
from scenarios.many_runs import RunResult
from scenarios.measures import look_up
from scenarios.report.picture import (
    Picture,
    Spec,
    colour_of,
    layer,
    number_axis,
    row_axis,
    short,
    tooltip,
)

_MEASURES = {
    "throughput_tps": "throughput, tuples/s",
    "latency_ms.p95": "latency p95, ms",
    "network.bytes": "network, bytes",
    "state_bytes.total": "state at the end, bytes",
    "kernel_seconds.total": "kernel time, s",
}
_EXACTNESS = {
    "exact": "blue",
    "not exact, and does not claim to be": "orange",
    "not exact, though it claims to be": "red",
}
_EQUALITY = {"found exactly the expected pairs": "blue", "found others": "red"}
_LINE = 12
"""Pixels between two lines of a name."""


def comparison_picture(results: Mapping[str, RunResult]) -> Picture:
    """Return a picture of the systems that ran, in the order given."""
    ran = {label: result for label, result in results.items() if result.record}
    exact, excused, wrong = _EXACTNESS
    words = [
        exact if one.record["verdict"]["exact"] else wrong if one.claims_exact else excused
        for one in ran.values()
    ]
    columns = {
        title: [_value(one, name) for one in ran.values()] for name, title in _MEASURES.items()
    }
    return _bars("system", list(ran), words, columns, _EXACTNESS)


def _value(result: RunResult, name: str) -> float | None:
    try:
        return look_up(result.record, name)
    except KeyError:  # actors in other processes are not timed
        return None


def engines_picture(comparison: EngineComparison) -> Picture:
    """Return a picture of the engines that ran, the fastest first.

    A measure that none of them has is left out.
    """
    measured = comparison.measured
    equal, other = _EQUALITY
    columns: dict[str, list[float | None]] = {
        "throughput, tuples/s": [comparison.throughput_tps(name) for name in measured],
        "steady, tuples/s": [one.steady_tps for one in measured.values()],
        "latency p95, ms": [(one.latency_ms or {}).get("p95") for one in measured.values()],
        "shuffled, bytes": [one.shuffled_bytes for one in measured.values()],
        "memory, bytes": [one.memory_bytes for one in measured.values()],
    }
    first, *others = columns
    some = [first, *(title for title in others if any(v is not None for v in columns[title]))]
    words = [equal if comparison.equals(name) else other for name in measured]
    return _bars(
        "engine", list(measured), words, {title: columns[title] for title in some}, _EQUALITY
    )


def _bars(
    kind: str,
    names: list[str],
    words: list[str],
    columns: Mapping[str, list[float | None]],
    colours: Mapping[str, str],
) -> Picture:
    """Return a panel for each of *columns*; *words* are what *colours* are of."""
    fields = {
        title: title.replace(", ", "_").replace("/", "p").replace(" ", "_") for title in columns
    }
    data = {kind: names, "answer": words} | {fields[title]: columns[title] for title in columns}
    lines = max((name.count(", ") + 1 for name in names), default=1)
    panels: list[Spec] = []
    for title, field in fields.items():
        top = max((value for value in columns[title] if value is not None), default=0.0) or 1.0
        x = number_axis(field, None, domain=[0, 1.3 * top], nice=False)
        x["axis"] |= {"tickCount": 3, "grid": True, "labelFlush": 16}
        y = row_axis(kind, names)
        y["axis"] |= {
            "grid": False,
            "labelExpr": "split(datum.label, ', ')",
            "labelOffset": {  # the first line is drawn beside the bar's middle, the others below
                "condition": [
                    {
                        "test": f"length(split(datum.value, ', ')) === {n}",
                        "value": -_LINE / 2 * (n - 1),
                    }
                    for n in range(2, lines + 1)
                ],
                "value": 0,
            },
        }
        hover = tooltip(**{kind: kind, field: title, "answer": "answer"})
        bar = layer("bar", x=x, color=colour_of("answer", colours), tooltip=hover)
        text = {"calculate": short(field), "as": "text"}
        value = layer("text", text, look={"align": "left", "dx": 3}, x=x, text="text")
        panels.append(
            {
                "title": title,
                "height": 30 + 22 * max(1, len(names) * lines),
                "encoding": {"y": y},
                "layer": [bar, value],
            }
        )
    return Picture(
        title=f"Bars of each {kind}'s figures",
        data=data,
        panels=panels,
        columns=3,
        legend=colours,
    )
