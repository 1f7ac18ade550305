"""A graph cut into Spark's stages finds what the oracle does, whatever the triggers are."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.feed import Disorder, Feed, open_feed
from actors.source import Feeding
from joins.oracle.evaluation import expected
from joins.queries.parser import parse_query
from scenarios.worlds.drawing import (
    draw_interval_query,
    draw_multiway_query,
    draw_parameters,
    draw_query,
    draw_stream,
)
from spark_bridge.hosted.host import cut_into_stages
from tests.drawn import drawn
from tests.properties.families import examples_of
from tests.spark_bridge.hosted.triggers import Triggers, results
from topologies import TOPOLOGIES
from topologies.topology import Job


@pytest.mark.parametrize("name", sorted(TOPOLOGIES))
def test_every_topology_is_exact_in_stages(name: str) -> None:
    topology = TOPOLOGIES[name]

    @settings(max_examples=examples_of(topology, 10))
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        draw = data.draw
        disorder, source = None, drawn(draw_stream).filter(lambda stream: bool(stream.ts))
        if topology.within_interval:
            query = parse_query(draw(drawn(draw_interval_query)))
            source |= drawn(draw_stream, dense=True)
            disorder = draw(
                st.none() | st.builds(Disorder, delay_ns=st.integers(1, 12), bounded=st.booleans())
            )
        elif topology.multiway:
            query = parse_query(draw(drawn(draw_multiway_query)))
        else:
            query = parse_query(draw(drawn(draw_query, equality=topology.needs_equality)))
        feeding = Feeding(batch_rows=draw(st.integers(1, 20)), disorder=disorder)
        with tempfile.TemporaryDirectory() as folder:
            files = tuple(
                draw(source).write(stream, Path(folder) / stream, 1000) for stream in query.streams
            )
            job = Job(query=query, files=files, feeding=feeding, pairs=True)
            graph = topology.build(job, draw(drawn(draw_parameters, topology, query, exact=True)))
            fold = draw(st.sampled_from([None, "for a reason"]))
            stages = cut_into_stages(graph.specs, graph.wiring, fold=fold)
            triggers = Triggers(graph, stages, Path(folder), seed=7)
            feed = open_feed(files, disorder)
            pieces = []
            while (piece := feed.take(draw(st.integers(1, 40)))) is not None:
                pieces.append(piece)
            while pieces:
                some = draw(st.integers(1, 3))
                taken, pieces = pieces[:some], pieces[some:]
                if draw(st.booleans()):
                    triggers.run_in_vain(taken, last=not pieces)
                triggers.run(taken, last=not pieces)
                triggers.rebuild(draw(st.integers(0, 20)))
            everything = Feed(files).take(10**6)
            assert everything is not None
            schemas = [file.schema for file in files]
            wanted: list[tuple[int, ...]] = []
            late = triggers.late(len(files)) if disorder else ()
            for matches in expected(query, schemas, [everything], late=late, enumerate_ids=True):
                wanted += results(matches)
        assert triggers.results() == sorted(wanted)

    run()
