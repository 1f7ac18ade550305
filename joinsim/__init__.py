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

import ast
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # and `_find_homes` reads them: so each public name is written once
    from actors.hosting.processes import RayUnavailableError as RayUnavailableError
    from actors.hosting.ray_cluster import ray_cluster as ray_cluster
    from joins.errors import DataError as DataError
    from joins.errors import JoinsimError as JoinsimError
    from joins.errors import OutputError as OutputError
    from joins.queries.query import QueryError as QueryError
    from joinsim import checks as checks
    from joinsim._calibration import Calibration as Calibration
    from joinsim._calibration import calibrate as calibrate
    from joinsim._calls import advise as advise
    from joinsim._calls import compare as compare
    from joinsim._calls import compare_engines as compare_engines
    from joinsim._calls import plan as plan
    from joinsim._calls import resume as resume
    from joinsim._calls import run as run
    from joinsim._calls import sweep as sweep
    from joinsim._catalog import TopologyInfo as TopologyInfo
    from joinsim._catalog import draw as draw
    from joinsim._catalog import scenario as scenario
    from joinsim._catalog import scenarios as scenarios
    from joinsim._catalog import show as show
    from joinsim._catalog import topologies as topologies
    from joinsim._listing import search as search
    from joinsim._outcomes import Advice as Advice
    from joinsim._outcomes import Comparison as Comparison
    from joinsim._outcomes import EngineComparison as EngineComparison
    from joinsim._outcomes import Reproduction as Reproduction
    from joinsim._outcomes import Run as Run
    from joinsim._outcomes import StudyRun as StudyRun
    from joinsim._outcomes import report as report
    from joinsim._reproduction import claims as claims
    from joinsim._reproduction import reproduce as reproduce
    from joinsim._scenario import Scenario as Scenario
    from joinsim._starter import new_topology as new_topology
    from joinsim._streams import prepare as prepare
    from joinsim._streams import synthetic as synthetic
    from netsim.network import NetworkError as NetworkError
    from scenarios.scenario_files import ConfigError as ConfigError
    from scenarios.scenario_files import schema as schema
    from scenarios.trace_difference import Difference as Difference
    from scenarios.trace_difference import diff as diff
    from scenarios.worlds.fuzzing import Fuzzed as Fuzzed
    from scenarios.worlds.fuzzing import Replayed as Replayed
    from scenarios.worlds.fuzzing import fuzz as fuzz
    from scenarios.worlds.fuzzing import replay as replay
    from spark_bridge.engines import EngineUnavailable as EngineUnavailable
    from topologies.topology import Topology as Topology
    from topologies.topology import TopologyError as TopologyError


_PACKAGES = ("actors", "joins", "netsim", "scenarios", "spark_bridge", "topologies")
"""What joinsim imports beside itself."""


def _check_packages() -> None:
    """Raise :exc:`ImportError` naming a module of the caller's that is found in place of one."""
    ours = Path(__file__).parents[1]
    for name in _PACKAGES:
        spec = find_spec(name)
        if spec and spec.origin and Path(spec.origin).parent != ours / name:
            raise ImportError(
                f"{spec.origin} is found in place of the package {name!r} of joinsim, in {ours}: "
                "give it another name, or another folder"
            )


_check_packages()


def _find_homes() -> dict[str, str]:
    """Return each public name and the module that it comes from, by the imports above."""
    source = ast.parse(Path(__file__).read_text(encoding="utf-8"))
    (imports,) = (node for node in source.body if isinstance(node, ast.If))
    return {
        alias.name: node.module
        for node in imports.body
        if isinstance(node, ast.ImportFrom) and node.module is not None
        for alias in node.names
    }


_HOMES = _find_homes()
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name == "__version__":
        from importlib.metadata import version

        return version("joinsim")
    if name not in _HOMES:
        raise AttributeError(f"module 'joinsim' has no attribute {name!r}")
    home = _HOMES[name]
    if home == __name__:
        return import_module(f"{home}.{name}")
    value = getattr(import_module(home), name)
    if isinstance(value, FunctionType):
        from joinsim._arguments import check_arguments

        value = check_arguments(value)
        value.__module__ = __name__  # where pickle finds it again
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
