"""The engines there are, by name."""

from __future__ import annotations

from difflib import get_close_matches

from scenarios.engines import duckdb_engine, polars_engine
from scenarios.engines.embedded import Embedded
from scenarios.engines.engine import Engine
from scenarios.engines.flink_engine import Flink
from scenarios.engines.joinsim_engines import Inline, Ray
from scenarios.engines.spark_engines import SparkHosted, SparkNative
from scenarios.scenario_files import ConfigError

ENGINES: dict[str, Engine] = {
    engine.name: engine
    for engine in (
        Inline(),
        Ray(),
        SparkHosted(),
        SparkNative(),
        Flink(),
        Embedded("duckdb", duckdb_engine.join),
        Embedded("polars", polars_engine.join),
    )
}


def find_engines(names: str) -> list[Engine]:
    """Return the engines whose *names* have commas between; ``all`` is all of them.

    Raise :exc:`ConfigError` with the names there are, the nearest first, when there is none.
    """
    asked = dict.fromkeys(name.strip() for name in names.split(",") if name.strip())
    if list(asked) == ["all"]:
        return list(ENGINES.values())
    if not asked:
        raise ConfigError(f"--engines: name some of {', '.join(ENGINES)}, or all")
    for name in asked:
        if name not in ENGINES:
            near = get_close_matches(name, ENGINES, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ConfigError(
                f"--engines: no engine is called {name!r}: {hint}there are {', '.join(ENGINES)}"
            )
    return [ENGINES[name] for name in asked]
