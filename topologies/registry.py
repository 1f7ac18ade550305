"""The topologies there are, by name: our own, those that packages register, and the caller's own.

A topology is a class. To add one of your own, define it in a module of yours and pass the class
where a name is expected; so that its name works on the command line too, let your package register
it under the entry point group ``joinsim.topologies``::

    [project.entry-points."joinsim.topologies"]
    my_join = "my_package.my_join:MyJoin"
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from importlib.metadata import entry_points
from typing import Any

from topologies.handshake_join import HandshakeJoin, LowLatencyHandshakeJoin
from topologies.ibwj import Ibwj
from topologies.interval_join import DpOij, FlinkOij, HpOij, KpOij, ScaleOij, SplitOij
from topologies.panjoin import PanJoin
from topologies.semijoin import Semijoin
from topologies.spo_join import SpoJoin
from topologies.topology import Topology, TopologyError
from topologies.window_join import (
    Bchj,
    BPlusTreeJoin,
    ChainIndex,
    HashJoin,
    IeJoin,
    JoinMatrix,
    NestedLoop,
    ScaleJoin,
    SplitJoin,
)

ENTRY_POINTS = "joinsim.topologies"

_RUN_KEYS = """
name title figure topology parameters query bind streams rows feeding network profile measured
backend clock processes seed pairs survey scales
"""
RESERVED = frozenset(_RUN_KEYS.split())
"""Keys of a run's configuration. A parameter of one of these names could not be set: ``--set rows``
sets the configuration's."""


class Registry(Mapping[str, Topology[Any]]):
    """Topologies by name. Entry points are loaded when a name is first looked up."""

    def __init__(self) -> None:
        self._topologies: dict[str, Topology[Any]] = {}
        self._loaded = False

    def register(self, kind: type[Topology[Any]]) -> Topology[Any]:
        """Add a topology by its own name, and return it; raise as `check` does."""
        self._topologies[kind.name] = self.check(kind())
        return self._topologies[kind.name]

    def check(self, topology: Topology[Any]) -> Topology[Any]:
        """Return *topology* if it can be run.

        Raise :exc:`TopologyError` when another class has its name, when its parameters are no
        dataclass, or when one of them has the name of a key of a run's configuration.
        """
        name, kind = topology.name, type(topology)
        if name in self._topologies and type(self._topologies[name]) is not kind:
            raise TopologyError(
                f"{kind.__module__}.{kind.__name__}: a topology is called {name!r} already; choose "
                "another name"
            )
        if not is_dataclass(topology.parameters_type):
            raise TopologyError(f"{name}: parameters_type must be a dataclass")
        taken = RESERVED.intersection(field.name for field in fields(topology.parameters_type))
        if taken:
            raise TopologyError(
                f"{name}: a parameter cannot have the name of a key of a run's configuration, as "
                f"{', '.join(sorted(taken))}; those are {', '.join(sorted(RESERVED))}"
            )
        return topology

    def __getitem__(self, name: str) -> Topology[Any]:
        if name not in self._topologies:
            self._load()
        return self._topologies[name]

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(self._topologies)

    def __len__(self) -> int:
        self._load()
        return len(self._topologies)

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        for entry in entry_points(group=ENTRY_POINTS):
            try:
                kind = entry.load()
            except Exception as error:
                raise TopologyError(
                    f"entry point {entry.name} = {entry.value!r} of group {ENTRY_POINTS} cannot "
                    f"be loaded: {error}"
                ) from error
            self.register(kind)


TOPOLOGIES = Registry()
for _kind in (
    SpoJoin,
    ChainIndex,
    SplitJoin,
    ScaleJoin,
    HandshakeJoin,
    LowLatencyHandshakeJoin,
    Bchj,
    JoinMatrix,
    HashJoin,
    BPlusTreeJoin,
    IeJoin,
    NestedLoop,
    KpOij,
    DpOij,
    HpOij,
    FlinkOij,
    ScaleOij,
    SplitOij,
    PanJoin,
    Ibwj,
    Semijoin,
):
    TOPOLOGIES.register(_kind)


def find_topology(topology: str | type[Topology[Any]] | Topology[Any]) -> Topology[Any]:
    """Return the topology of a name, or one that the caller passes, once it is checked.

    Raise :exc:`TopologyError` with the names there are, the nearest first, for an unknown name, and
    what `Registry.check` raises.
    """
    if not isinstance(topology, str):
        return TOPOLOGIES.check(topology() if isinstance(topology, type) else topology)
    if topology in TOPOLOGIES:
        return TOPOLOGIES[topology]
    near = get_close_matches(topology, TOPOLOGIES, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise TopologyError(
        f"no topology is called {topology!r}: {hint}there are {', '.join(sorted(TOPOLOGIES))}"
    )
