"""Which system evaluates a query that names none.

It follows from the query alone, because it is chosen before any data are read: the first system of
`RULES` that can evaluate the query as it is set. Their order is that of measured comparisons
(`joinsim compare`), whose winner at a rate, a window and a network of one's own may be another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from actors.source import Feeding
from joins.errors import suggest
from joins.queries.query import JoinQuery
from scenarios.formatting import group_refusals
from scenarios.scenario_files import ConfigError
from topologies import TOPOLOGIES, Topology, TopologyError

SMALL_WINDOW = 2_500
"""Tuples up to which it is faster to scan a window than to search an index of it."""


def _any(query: JoinQuery) -> bool:
    return True


def _keyed(query: JoinQuery) -> bool:
    return query.key is not None


def _small(query: JoinQuery) -> bool:
    return query.window is not None and all(
        window.kind == "count" and window.length <= SMALL_WINDOW for window in query.windows
    )


RULES: tuple[tuple[str, Callable[[JoinQuery], bool], str], ...] = (
    ("hash_join", _keyed, "an equality sends each tuple to the one PE of its key"),
    ("kp_oij", _keyed, "in an interval join with an equality each key has its PE"),
    ("dp_oij", _any, "in an interval join without an equality PEs take tuples in turns"),
    ("join_matrix", _small, "without an equality small windows are best scanned, in a grid of PEs"),
    (
        "panjoin",
        _any,
        "without an equality large windows need an index, which it divides by values",
    ),
    ("spo_join", _any, "without an equality a stream that joins itself needs an index"),
    ("ibwj", _any, "each stream has a window of its own"),
    ("semijoin", _any, "it joins more than two streams, each at a site of its own"),
)
"""Systems in the order in which they are tried, for which queries, and why; then all others."""


@dataclass(frozen=True, kw_only=True)
class SystemChoice:
    """The system chosen for a query, and why, as a clause about the query."""

    topology: Topology[Any]
    why: str

    def __str__(self) -> str:
        return f"no topology was named: {self.topology.name} is taken, because {self.why}"


def choose(query: JoinQuery, feeding: Feeding, parameters: Mapping[str, Any]) -> SystemChoice:
    """Return the system for *query*: of those that have *parameters*, the first that can.

    Raise :exc:`ConfigError` for parameters that no system has, and :exc:`TopologyError` with the
    reasons where none can evaluate the query.
    """
    check_parameters(parameters, TOPOLOGIES.values(), "topology")
    preferred = [(name, why) for name, fits, why in RULES if fits(query)]
    whatever = [(name, "those preferred cannot evaluate the query so") for name in TOPOLOGIES]
    refusals = {}
    for name, why in (*preferred, *whatever):
        topology = TOPOLOGIES[name]
        if not topology.exact or not parameters.keys() <= parameter_names(topology):
            continue
        refused = refusal(topology, query, feeding)
        if refused is None:
            return SystemChoice(topology=topology, why=why)
        refusals[name] = refused
    if not refusals:
        raise ConfigError(
            f"no topology has all of the parameters {', '.join(parameters)}: name one, and its own"
        )
    raise TopologyError(f"no system can evaluate the query: {group_refusals(refusals)}")


def refusal(
    topology: Topology[Any], query: JoinQuery, feeding: Feeding, parameters: Any = None
) -> str | None:
    """Return why *topology* cannot evaluate *query*; None where it can.

    Without *parameters* it is left at its defaults.
    """
    job = replace(topology.sketch(query), feeding=feeding)
    try:
        topology.build(job, parameters or topology.parameters_type())
    except TopologyError as error:
        return str(error)
    return None


def check_parameters(keys: Iterable[str], topologies: Iterable[Topology[Any]], who: str) -> None:
    """Raise :exc:`ConfigError` for a key that is no parameter of any of *topologies*.

    The message calls one of them *who*.
    """
    every = sorted(set().union(*map(parameter_names, topologies)))
    for key in keys:
        if key not in every:
            raise ConfigError(f"{key}: no {who} has such a parameter; {suggest(key, every)}")


def parameter_names(topology: Topology[Any]) -> set[str]:
    """Return the names of the parameters of *topology*."""
    return {field.name for field in fields(topology.parameters_type)}
