"""Worlds: whole small runs as data, drawn from a seed, run in memory, shrunk and replayed.

A world has everything that a run depends on, the tuples themselves included. It is small, and runs
in this process in some hundredths of a second. Written to a JSON file it can be replayed to the
same digest anywhere.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
from pydantic import Field, FiniteFloat, TypeAdapter, ValidationError, model_validator
from pydantic.dataclasses import dataclass

from actors.feed import StreamData, StreamFile, StreamTable
from actors.hosting.inline import InlineHost
from joins.batch import Schema
from joins.queries.parser import parse_query
from scenarios.config import MAX_SEED
from scenarios.plan import Plan, make_parameters
from scenarios.run import FinishedRun, InlineHosting, execute
from scenarios.run_directory import clear_results
from scenarios.scenario_files import ConfigError, build, explain
from scenarios.tables import write_segments
from topologies import Topology, find_topology
from topologies.topology import STRICT, SinkPlace

_FIELDS = {"x": "float64", "y": "int64"}
_OF_A_SCENARIO = ("topology", "query", "parameters", "network", "feeding", "faults", "sink", "seed")


@dataclass(frozen=True, config=STRICT)
class WorldStream:
    """The tuples of one stream: their event times in ns, ascending, and their fields x and y."""

    ts: list[int]
    x: list[FiniteFloat]
    y: list[int]

    @model_validator(mode="after")
    def _in_order(self) -> WorldStream:
        if not len(self.ts) == len(self.x) == len(self.y):
            raise ValueError("ts, x and y must have one value for each tuple")
        if any(later < earlier for earlier, later in zip(self.ts, self.ts[1:], strict=False)):
            raise ValueError("event times must not run backwards")
        if any(not -(2**63) <= value < 2**63 for value in (*self.ts, *self.y)):
            raise ValueError("ts and y must be int64")
        return self

    def columns(self) -> pa.Table:
        """Return the tuples as the columns of a prepared stream."""
        return pa.table(
            {
                "id": np.arange(len(self.ts)),
                "ts": np.array(self.ts, np.int64),
                "x": np.array(self.x, np.float64),
                "y": np.array(self.y, np.int64),
            }
        )

    def write(self, name: str, directory: Path, segment_rows: int) -> StreamFile:
        """Write it as a prepared stream, cut into segments, and return what reads it."""
        shutil.rmtree(directory, ignore_errors=True)
        schema = Schema(stream=name, fields=_FIELDS)
        return write_segments(schema, self.columns(), directory, segment_rows)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class World:
    """One run, with its tuples.

    Attributes
    ----------
    topology, parameters, query, feeding, network, faults, recovery, sink, seed
        As in a scenario, see `scenarios.config.RunConfig`.
    streams
        The tuples of the query's streams, in their order.
    segment_rows
        Streams are files, with so many tuples in each segment; None: tables in memory.
    """

    topology: str
    query: str
    streams: tuple[WorldStream, ...]
    parameters: dict[str, Any] = Field(default_factory=dict)
    network: dict[str, Any] = Field(default_factory=dict)
    feeding: dict[str, Any] = Field(default_factory=dict)
    faults: list[dict[str, Any]] = Field(default_factory=list)
    recovery: dict[str, Any] = Field(default_factory=dict)
    sink: SinkPlace = "partitioned"
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)] = 1
    segment_rows: Annotated[int, Field(ge=1)] | None = None

    @property
    def tuples(self) -> int:
        """How many there are in all streams."""
        return sum(len(stream.ts) for stream in self.streams)

    @property
    def lossy(self) -> bool:
        """Whether messages, or what crashed actors knew, may be lost: no answer is promised."""
        without_transport = bool(self.faults) and self.network.get("transport") == "none"
        crashes = any(fault["kind"] == "crash" for fault in self.faults)
        return without_transport or (crashes and self.recovery.get("guarantee") == "none")

    def run(
        self,
        directory: Path,
        *,
        topology: Topology[Any] | None = None,
        inline_host: InlineHosting = InlineHost,
        **settings: Any,
    ) -> FinishedRun:
        """Run it into *directory* and judge it; *inline_host* runs actors in this process.

        What another world left there goes. Other arguments are those of `plan`, which says what is
        raised.
        """
        clear_results(directory)
        plan = self.plan(directory, topology=topology, **settings)
        return execute(plan, directory, rehearsal=False, inline_host=inline_host)

    def plan(
        self, directory: Path, *, topology: Topology[Any] | None = None, **settings: Any
    ) -> Plan:
        """Return the run, planned.

        Parameters
        ----------
        directory
            Takes the streams that are to be files.
        topology
            The system, where it is not registered under its name.
        settings
            Keys of the configuration to change.

        Raises
        ------
        JoinsimError
            The world cannot be: what is wrong with it is named.
        """
        topology = topology or find_topology(self.topology)
        query = parse_query(self.query)
        if len(query.streams) != len(self.streams):
            raise ConfigError(
                f"streams: the query has {', '.join(query.streams)}; {len(self.streams)} given"
            )
        files = tuple(
            self._stored(name, stream, directory)
            for name, stream in zip(query.streams, self.streams, strict=True)
        )
        config = build(
            {
                **{key: value for key, value in vars(self).items() if key in _OF_A_SCENARIO},
                "recovery": self.recovery or None,
                "streams": [{"table": f"{file.tuples} tuples"} for file in files],
                **settings,
            },
            where="world",
        )
        query.check_fields([file.schema for file in files])
        plan = Plan(
            config=config,
            query=query,
            topology=topology,
            parameters=make_parameters(topology, config.parameters),
            streams=(),
            files=files,
        )
        _ = plan.network  # what is wrong with it, or with the graph, is said here
        return plan

    def _stored(self, name: str, stream: WorldStream, directory: Path) -> StreamData:
        if self.segment_rows is None:
            return StreamTable(
                schema=Schema(stream=name, fields=_FIELDS), table=stream.columns().drop(["id"])
            )
        return stream.write(name, directory / "streams" / name, self.segment_rows)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Recording:
    """A world in a file."""

    world: World
    """The world."""
    digest: str | None = None
    """Of its run; None where that did not end."""
    failure: str | None = None
    """What was wrong with it, in words; None for nothing."""

    def __str__(self) -> str:
        """Return it as JSON."""
        return _RECORDING.dump_json(self, exclude_defaults=True).decode()


_RECORDING = TypeAdapter(Recording)


def read_recording(path: Path) -> Recording:
    """Read a world's file; raise :exc:`ConfigError` naming the key that is wrong."""
    try:
        return _RECORDING.validate_json(path.read_bytes())
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read ({error.strerror}): a world's file is needed, as joinsim fuzz "
            "writes it; what repeats a run is the line replay: of its report"
        ) from None
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            raise ConfigError(f"{path} is not JSON: {first['ctx']['error']}") from None
        raise ConfigError(f"{path}: {explain(error, Recording)}") from None
