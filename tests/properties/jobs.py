"""Whole random runs of any topology: drawn, planned without a pipeline, and executed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from joins.parser import parse_query
from scenarios.config import build
from scenarios.run import Plan, Report, execute
from tests.properties.strategies import (
    RandomStream,
    feedings,
    networks,
    parameters,
    queries,
    streams,
)
from topologies import Topology


@dataclass(frozen=True)
class RandomJob:
    """Everything a run depends on."""

    topology: Topology
    parameters: Any
    query: str
    streams: tuple[RandomStream, ...]
    network: dict[str, Any]
    feeding: dict[str, Any]
    segment_rows: int
    seed: int

    def run(self, directory: Path, **settings: Any) -> Report:
        """Run it into *directory*, with *settings* of the configuration changed."""
        query = parse_query(self.query)
        files = tuple(
            stream.write(name, directory / "streams" / name, self.segment_rows)
            for name, stream in zip(query.streams, self.streams, strict=True)
        )
        config = build(
            {
                "topology": self.topology.name,
                "query": self.query,
                "streams": [{"files": [str(file.directory)]} for file in files],
                "network": self.network,
                "feeding": self.feeding,
                "seed": self.seed,
                **settings,
            },
            where="test",
        )
        plan = Plan(
            config=config,
            query=query,
            topology=self.topology,
            parameters=self.parameters,
            streams=(),
            files=files,
        )
        return execute(plan, directory, rehearsal=False)


@st.composite
def jobs(draw: st.DrawFn, topology: Topology) -> RandomJob:
    """Draw a run of *topology*."""
    query = draw(queries())
    return RandomJob(
        topology=topology,
        parameters=draw(parameters(topology)),
        query=query,
        streams=tuple(draw(streams()) for _ in parse_query(query).streams),
        network=draw(networks),
        feeding=draw(feedings),
        segment_rows=draw(st.integers(1, 50)),
        seed=draw(st.integers(0, 2**32 - 1)),
    )
