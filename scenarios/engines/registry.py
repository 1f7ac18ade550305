"""The engines there are, by name."""

from __future__ import annotations

from collections.abc import Iterable

from joins.errors import suggest
from scenarios.engines.embedded_engines import DuckDB, Polars
from scenarios.engines.engine import Engine
from scenarios.engines.flink_engine import Flink
from scenarios.engines.joinsim_engines import Inline, Ray
from scenarios.engines.spark_engines import SparkHosted, SparkNative, SparkShipping
from scenarios.scenario_files import ConfigError

ENGINES: dict[str, Engine] = {
    engine.name: engine
    for engine in (
        Inline(),
        Ray(),
        SparkHosted(),
        SparkNative(),
        SparkShipping("full"),
        SparkShipping("semijoin"),
        SparkShipping("bloom"),
        Flink(),
        DuckDB(),
        Polars(),
    )
}


def find_engines(names: str | Iterable[str]) -> list[Engine]:
    """Return the engines of a list, which may be one text with commas; ``all`` is all of them.

    Raise :exc:`ConfigError` for an unknown name, with the nearest known one and all others.
    """
    listed = names.split(",") if isinstance(names, str) else names
    wanted = dict.fromkeys(name.strip() for name in listed if name.strip())
    if list(wanted) == ["all"]:
        return list(ENGINES.values())
    if not wanted:
        raise ConfigError(f"--engines: name some of {', '.join(ENGINES)}, or all")
    for name in wanted:
        if name not in ENGINES:
            raise ConfigError(f"--engines: no engine is called {name!r}: {suggest(name, ENGINES)}")
    return [ENGINES[name] for name in wanted]
