"""A laboratory for distributed stream joins.

Bring a join query, data and a network; joinsim runs a published join system on it, as real actors
over a simulated network in virtual time, and returns what came out, how fast, over how many bytes,
and whether the answer was exactly right.

>>> import numpy as np, joinsim as js
>>> orders = {"ts": np.arange(0, 40, 4), "price": np.arange(10)}
>>> offers = {"ts": np.arange(1, 41, 4), "price": np.arange(10)[::-1].copy()}
>>> run = js.run(
...     "SELECT * FROM orders, offers WHERE orders.price < offers.price "
...     "WINDOW AS (SLIDE INTERVAL '1' ON '5')",
...     {"orders": orders, "offers": offers},
...     topology="split_join", pes=4, network="wan", seed=1,
... )
>>> run.verdict.passed, run.pairs.num_rows
(True, 30)

Everything that the command ``joinsim`` does is a function here. Nothing heavy is imported before it
is needed: Ray, Spark and numba are loaded by the calls that use them.
"""

from __future__ import annotations

from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from actors.hosting.processes import RayUnavailableError
    from actors.hosting.ray_cluster import ray_cluster
    from joins.errors import DataError, JoinsimError, OutputError
    from joins.queries.query import QueryError
    from joinsim import checks
    from joinsim._calibration import Calibration, calibrate
    from joinsim._calls import advise, compare, compare_engines, plan, resume, run, sweep
    from joinsim._catalog import (
        TopologyInfo,
        draw,
        scenario,
        scenarios,
        schema,
        show,
        topologies,
    )
    from joinsim._fuzzing import Replayed, fuzz, replay
    from joinsim._listing import search
    from joinsim._outcomes import (
        Advice,
        Comparison,
        EngineComparison,
        Reproduction,
        Run,
        StudyRun,
        report,
    )
    from joinsim._reproduction import claims, reproduce
    from joinsim._scenario import Scenario
    from joinsim._starter import new_topology
    from joinsim._streams import prepare, synthetic
    from netsim.network import NetworkError
    from scenarios.scenario_files import ConfigError
    from scenarios.trace_difference import Difference, diff
    from scenarios.worlds.fuzzing import Fuzzed
    from spark_bridge.engines import EngineUnavailable
    from topologies.topology import Topology, TopologyError

_HOMES = {
    "joins.errors": ("DataError", "JoinsimError", "OutputError"),
    "joins.queries.query": ("QueryError",),
    "actors.hosting.processes": ("RayUnavailableError",),
    "actors.hosting.ray_cluster": ("ray_cluster",),
    "netsim.network": ("NetworkError",),
    "topologies.topology": ("Topology", "TopologyError"),
    "spark_bridge.engines": ("EngineUnavailable",),
    "scenarios.scenario_files": ("ConfigError",),
    "scenarios.trace_difference": ("Difference", "diff"),
    "scenarios.worlds.fuzzing": ("Fuzzed",),
    "joinsim._catalog": (
        "TopologyInfo",
        "draw",
        "scenario",
        "scenarios",
        "schema",
        "show",
        "topologies",
    ),
    "joinsim._listing": ("search",),
    "joinsim._starter": ("new_topology",),
    "joinsim._outcomes": (
        "Advice",
        "Comparison",
        "EngineComparison",
        "Reproduction",
        "Run",
        "StudyRun",
        "report",
    ),
    "joinsim._fuzzing": ("Replayed", "fuzz", "replay"),
    "joinsim._reproduction": ("claims", "reproduce"),
    "joinsim._calls": ("advise", "compare", "compare_engines", "plan", "resume", "run", "sweep"),
    "joinsim._scenario": ("Scenario",),
    "joinsim._calibration": ("Calibration", "calibrate"),
    "joinsim._streams": ("prepare", "synthetic"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Advice",
    "Calibration",
    "Comparison",
    "ConfigError",
    "DataError",
    "Difference",
    "EngineComparison",
    "EngineUnavailable",
    "Fuzzed",
    "JoinsimError",
    "NetworkError",
    "OutputError",
    "QueryError",
    "RayUnavailableError",
    "Replayed",
    "Reproduction",
    "Run",
    "Scenario",
    "StudyRun",
    "Topology",
    "TopologyError",
    "TopologyInfo",
    "advise",
    "calibrate",
    "checks",
    "claims",
    "compare",
    "compare_engines",
    "diff",
    "draw",
    "fuzz",
    "new_topology",
    "plan",
    "prepare",
    "ray_cluster",
    "replay",
    "report",
    "reproduce",
    "resume",
    "run",
    "scenario",
    "scenarios",
    "schema",
    "search",
    "show",
    "sweep",
    "synthetic",
    "topologies",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name == "checks":
        return import_module("joinsim.checks")
    if name == "__version__":
        from importlib.metadata import version

        return version("joinsim")
    if name not in _HOME:
        raise AttributeError(f"module 'joinsim' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    if isinstance(value, FunctionType):
        from joinsim._arguments import check_arguments

        value = check_arguments(value)
        value.__module__ = __name__  # where pickle finds it again
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
