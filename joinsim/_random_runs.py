"""Whole random runs of any topology: drawn, planned without a pipeline, and executed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from actors.disorder import Disorder
from actors.source import Feeding
from joins.queries.parser import parse_query
from joins.queries.query import JoinQuery
from joinsim._random_inputs import (
    RandomStream,
    dense_streams,
    disorders,
    feedings,
    interval_queries,
    multiway_queries,
    networks,
    parameters,
    queries,
    streams,
)
from scenarios.plan import Plan
from scenarios.run import Report, execute
from scenarios.scenario_files import build
from topologies import TOPOLOGIES, Topology, TopologyError


@dataclass(frozen=True)
class RandomJob:
    """Everything a run depends on."""

    topology: Topology[Any]
    parameters: Any
    query: str
    streams: tuple[RandomStream, ...]
    network: dict[str, Any]
    feeding: dict[str, Any]
    segment_rows: int
    seed: int
    sink: str = "partitioned"

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
                "sink": self.sink,
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
def jobs(draw: st.DrawFn, topology: Topology[Any], *, exact: bool = False) -> RandomJob:
    """Draw a run of *topology*, with *exact* one that claims to be exactly right."""
    feeding: dict[str, Any] = draw(feedings)
    if topology.within_interval:
        query = draw(interval_queries())
        feeding |= draw(disorders)
        source = streams() | dense_streams()
    elif topology.multiway:
        query, source = draw(multiway_queries()), streams()
    else:
        query, source = draw(queries(equality=topology.needs_equality)), streams()
    suitable = draw(parameters(topology, parse_query(query), exact=exact))
    if not topology.within_interval and _takes_disorder(topology, suitable, parse_query(query)):
        nothing: dict[str, Any] = {}
        feeding |= draw(st.just(nothing) | disorders)
    return RandomJob(
        topology=topology,
        parameters=suitable,
        query=query,
        streams=tuple(draw(source) for _ in parse_query(query).streams),
        network=draw(networks),
        feeding=feeding,
        segment_rows=draw(st.integers(1, 50)),
        seed=draw(st.integers(0, 2**32 - 1)),
        sink=draw(st.sampled_from(["partitioned", "single"])),
    )


def _takes_disorder(topology: Topology[Any], parameters: Any, query: JoinQuery) -> bool:
    """Whether a run over windows may have streams out of order."""
    disordered = Feeding(disorder=Disorder(delay_ns=1))
    try:
        topology.build(replace(topology.sketch(query), feeding=disordered), parameters)
    except TopologyError:
        return False
    return True


def on_jobs(
    topology: str | Topology[Any], *, examples: int, exact: bool = False
) -> Callable[[Callable[[RandomJob, Path], None]], Callable[[], None]]:
    """Turn a body into a test of it on random runs of *topology*, each into an empty folder.

    With *exact* only runs that claim to be exactly right. The same runs are drawn each time.
    """
    system = TOPOLOGIES[topology] if isinstance(topology, str) else topology

    def decorate(body: Callable[[RandomJob, Path], None]) -> Callable[[], None]:
        @settings(max_examples=examples, deadline=None, derandomize=True, print_blob=True)
        @given(job=jobs(system, exact=exact))
        def check(job: RandomJob) -> None:
            with TemporaryDirectory() as folder:
                body(job, Path(folder))

        return check

    return decorate
