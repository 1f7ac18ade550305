"""The topologies there are, by name: our own, those that packages register, and the caller's own.

A topology is a class. To add one of your own, define it in a module of yours and pass the class to
what runs or compares. For its name to work everywhere, on the command line too, let your package
register it under the entry point group ``joinsim.topologies``::

    [project.entry-points."joinsim.topologies"]
    my_join = "my_package.my_join:MyJoin"
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any, get_type_hints

from pydantic import PydanticUserError, TypeAdapter

from joins.errors import suggest
from topologies.topology import Topology, TopologyError

ENTRY_POINTS = "joinsim.topologies"

Named = str | type[Topology[Any]] | Topology[Any]
"""A topology by its name, or one of the caller's own."""

_OWN = {
    "spo_join": "topologies.spo_join:SpoJoinTopology",
    "chain_index": "topologies.window_join:ChainIndexTopology",
    "split_join": "topologies.window_join:SplitJoinTopology",
    "scale_join": "topologies.window_join:ScaleJoinTopology",
    "handshake_join": "topologies.handshake_join:HandshakeJoinTopology",
    "low_latency_handshake_join": "topologies.handshake_join:LowLatencyHandshakeJoinTopology",
    "bchj": "topologies.window_join:BchjTopology",
    "join_matrix": "topologies.window_join:JoinMatrixTopology",
    "hash_join": "topologies.window_join:HashJoinTopology",
    "b_plus_tree": "topologies.window_join:BPlusTreeTopology",
    "ie_join": "topologies.window_join:IeJoinTopology",
    "nested_loop": "topologies.window_join:NestedLoopTopology",
    "kp_oij": "topologies.interval_join:KpOijTopology",
    "dp_oij": "topologies.interval_join:DpOijTopology",
    "hp_oij": "topologies.interval_join:HpOijTopology",
    "flink_oij": "topologies.interval_join:FlinkOijTopology",
    "scale_oij": "topologies.interval_join:ScaleOijTopology",
    "split_oij": "topologies.interval_join:SplitOijTopology",
    "panjoin": "topologies.panjoin:PanJoinTopology",
    "ibwj": "topologies.ibwj:IbwjTopology",
    "semijoin": "topologies.semijoin:SemijoinTopology",
}
"""Name to module and class: a run need not import the kernels of all other systems."""

_RUN_KEYS = """
name title figure topology parameters query bind streams rows feeding network profile sink
measured backend clock processes seed pairs faults recovery silence encrypt survey scales
"""
RESERVED = frozenset(_RUN_KEYS.split())
"""Keys of a run's configuration. A parameter of one of these names could not be set: ``--set rows``
sets the configuration's."""


_NAME = re.compile(r"[\w-]{1,100}", re.ASCII)
AUTO = "auto"
"""Instead of a topology's name: the system is chosen."""

_REQUIRED = ("name", "title", "paper", "exact", "parameters_type")
"""Attributes that every topology has."""


class Registry(Mapping[str, Topology[Any]]):
    """Topologies by name, each imported when it is first looked up, as are entry points.

    Parameters
    ----------
    own
        Name to ``module:class`` of those that need no entry point.
    """

    def __init__(self, own: Mapping[str, str] = MappingProxyType({})) -> None:
        self._own = own
        self._topologies: dict[str, Topology[Any]] = {}
        self._loaded = False

    def register(self, kind: type[Topology[Any]]) -> Topology[Any]:
        """Add a topology by its own name, and return it; raise as `check` does."""
        topology = self.check(_instance(kind))
        self._topologies[topology.name] = topology
        return topology

    def check(self, topology: Topology[Any]) -> Topology[Any]:
        """Return *topology* if it can be run.

        Raise :exc:`TopologyError` when it lacks an attribute, when another class has its name, when
        its parameters are no dataclass, or when one of them has the name of a key of a run's
        configuration, no default, or a type that no file can have.
        """
        kind, name = type(topology), _well_formed(topology).name
        known = name in self._topologies or name in self._own
        if known and type(self[name]) is not kind:
            raise TopologyError(
                f"{kind.__module__}.{kind.__name__}: a topology is called {name!r} already; choose "
                "another name"
            )
        _check_parameters(topology)
        return topology

    def __getitem__(self, name: str) -> Topology[Any]:
        if name in self._own and name not in self._topologies:
            module, _, kind = self._own[name].partition(":")
            self._topologies[name] = _well_formed(getattr(import_module(module), kind)())
        if name not in self._topologies:
            self._load()
        return self._topologies[name]

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter([*self._own, *(name for name in self._topologies if name not in self._own)])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True  # for one that looks a topology up while it is imported
        for entry in entry_points(group=ENTRY_POINTS):
            try:
                self.register(entry.load())
            except (Exception, SystemExit) as error:
                self._loaded = False
                raise TopologyError(
                    f"entry point {entry.name} = {entry.value!r} of group {ENTRY_POINTS} cannot "
                    f"be loaded: {str(error) or type(error).__name__}"
                ) from error


def _well_formed(topology: Topology[Any]) -> Topology[Any]:
    """Return *topology* if it has all attributes, and parameters that a run can set."""
    kind = type(topology)
    absent = [key for key in _REQUIRED if not hasattr(topology, key)]
    if absent:
        raise TopologyError(f"{kind.__module__}.{kind.__name__} lacks {', '.join(absent)}")
    name = topology.name
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name == AUTO:
        raise TopologyError(
            f"{kind.__module__}.{kind.__name__}: name = {name!r}: 1 to 100 letters, digits, '_' "
            f"and '-' are allowed, but not {AUTO!r}, which leaves the choice to joinsim"
        )
    for key, wanted in (("title", str), ("paper", str), ("exact", bool)):
        value = getattr(topology, key)
        if not isinstance(value, wanted):
            allowed = "True or False is" if wanted is bool else "a text is"
            raise TopologyError(f"{name}: {key} = {value!r}: {allowed} allowed")
    if not is_dataclass(topology.parameters_type):
        raise TopologyError(f"{name}: parameters_type must be a dataclass")
    taken = RESERVED.intersection(field.name for field in fields(topology.parameters_type))
    if taken:
        raise TopologyError(
            f"{name}: a parameter cannot have the name of a key of a run's configuration, as "
            f"{', '.join(sorted(taken))}; those are {', '.join(sorted(RESERVED))}"
        )
    return topology


def _check_parameters(topology: Topology[Any]) -> None:
    name, kind = topology.name, topology.parameters_type
    try:
        hints = get_type_hints(kind, include_extras=True)
    except NameError as error:
        raise TopologyError(f"{name}: a type of its parameters is unknown: {error}") from error
    for field in fields(kind):
        if field.default is MISSING and field.default_factory is MISSING:
            raise TopologyError(f"{name}: the parameter {field.name} has no default")
        try:
            TypeAdapter(hints[field.name]).json_schema()
        except PydanticUserError as error:
            raise TopologyError(
                f"{name}: the parameter {field.name} is of the type {hints[field.name]}, which no "
                "file can have: numbers, text, truth values, lists, mappings and dataclasses can be"
            ) from error


TOPOLOGIES = Registry(_OWN)


def find_topology(topology: Named) -> Topology[Any]:
    """Return the topology of a name, or one that the caller passes, once it is checked.

    Raise :exc:`TopologyError` with the names there are, the nearest first, for an unknown name, for
    what is no topology, and what `Registry.check` raises.
    """
    if not isinstance(topology, str):
        return TOPOLOGIES.check(_instance(topology))
    if topology in TOPOLOGIES:
        return TOPOLOGIES[topology]
    raise TopologyError(
        f"no topology is called {topology!r}: {suggest(topology, sorted(TOPOLOGIES))}"
    )


def _instance(topology: Any) -> Topology[Any]:
    kind: type = topology if isinstance(topology, type) else type(topology)
    if not issubclass(kind, Topology):
        raise TopologyError(
            f"{topology!r} is no topology: give the name of one, or a class derived from "
            "joinsim.Topology"
        )
    if isinstance(topology, Topology):
        return topology
    try:
        made: Topology[Any] = kind()
    except TypeError as error:  # it is abstract, or wants arguments
        raise TopologyError(f"{kind.__module__}.{kind.__name__}: {error}") from error
    except Exception as error:
        raise TopologyError(
            f"{kind.__module__}.{kind.__name__}: {type(error).__name__}: {error}"
        ) from error
    return made


def find_topologies(topologies: Named | Iterable[Named]) -> list[Topology[Any]]:
    """Return the topologies of several names, or of a single one, as `find_topology` does.

    Raise :exc:`TopologyError`, too, for classes that have one name: results are told apart by it.
    """
    alone = isinstance(topologies, str) or not isinstance(topologies, Iterable)
    listed: Any = [topologies] if alone else topologies
    found = [find_topology(topology) for topology in listed]
    kinds: dict[str, type] = {}
    for topology in found:
        kind = kinds.setdefault(topology.name, type(topology))
        if kind is not type(topology):
            raise TopologyError(
                f"{kind.__name__} and {type(topology).__name__} are both called "
                f"{topology.name!r}; give each a name of its own"
            )
    return found


def registered_names(topologies: Named | Iterable[Named]) -> list[str]:
    """Return the names of *topologies*, for what looks them up again: other processes, files.

    Raise :exc:`TopologyError` for a class that is not registered, besides what `find_topologies`
    raises.
    """
    found = find_topologies(topologies)
    for topology in found:
        if topology.name not in TOPOLOGIES:
            kind = type(topology)
            raise TopologyError(
                f"{kind.__module__}.{kind.__name__} is not registered: it can be run, "
                "compared, shown and checked, and nothing else. For the rest let a package "
                f"register it, under the entry point group {ENTRY_POINTS} (`joinsim new "
                "topology` writes one)"
            )
    return [topology.name for topology in found]
