"""Measured attributes against what is counted in the tuples themselves."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.feed import StreamFile
from actors.protocol import NS_PER_S
from actors.source import Feeding
from joins.batch import Schema
from joins.codes import GREATEST, LEAST
from joins.queries.parser import parse_query
from netsim.network import PRESETS, Latency, Link, full_mesh
from topologies.semijoin import SemijoinParameters, SemijoinTopology, measuring_of
from topologies.semijoins.join_statistics import JoinAttribute, JoinStatistics, read_samples
from topologies.topology import Job, TopologyError

COLUMNS = st.lists(
    st.lists(st.integers(0, 6), min_size=1, max_size=12).map(np.array), min_size=2, max_size=4
)


def subsets(streams: int) -> np.ndarray:
    """Return every set of one stream or more, (sets, streams)."""
    every = list(product([False, True], repeat=streams))
    return np.array(every[1:])


@settings(max_examples=60, deadline=None)
@given(COLUMNS)
def test_what_is_measured_is_what_the_tuples_have(columns: list[np.ndarray]) -> None:
    attribute = JoinAttribute.of_columns(dict(enumerate(columns)), len(columns))
    done = subsets(len(columns))
    outputs = attribute.of_outputs(done)
    there, back = outputs.shares(attribute.of_outputs(np.eye(len(columns), dtype=bool)))
    for row, members in enumerate(done):
        chosen = [
            column.tolist() for column, member in zip(columns, members, strict=True) if member
        ]
        alike = [combination[0] for combination in product(*chosen) if len({*combination}) == 1]
        assert outputs.selectivity[row] == pytest.approx(
            len(alike) / np.prod([len(c) for c in chosen])
        )
        assert outputs.distinct[row] == max(1, len(set(alike)))
        for stream, column in enumerate(columns):
            if not members[stream]:
                theirs = set(column.tolist())
                assert back[row, stream] == pytest.approx(np.isin(column, alike).mean())
                if alike:
                    found = [value in theirs for value in alike]
                    assert there[row, stream] == pytest.approx(np.mean(found))


def test_nested_uniform_values_are_as_the_paper_assumes() -> None:
    distinct = np.array([5, 20, 0, 50])
    attribute = JoinAttribute.nested(distinct.tolist())
    done, alone = subsets(4), np.eye(4, dtype=bool)
    has = distinct > 0
    fewest = np.where(done & has, distinct, np.inf).min(axis=1)
    fewest = np.where(np.isfinite(fewest), fewest, 1)
    each = np.where(done & has, 1 / np.maximum(distinct, 1), 1).prod(axis=1)
    outputs = attribute.of_outputs(done)
    assert outputs.selectivity == pytest.approx(fewest * each)
    assert outputs.distinct == pytest.approx(fewest)
    shared = np.array((done & has).any(axis=1))[:, None] & has
    ours, theirs = np.where(shared, fewest[:, None], 1), np.where(shared, distinct, 1)
    there, back = outputs.shares(attribute.of_outputs(alone))
    new = ~done  # a stream is joined once
    assert there[new] == pytest.approx(np.minimum(1, theirs / ours)[new])
    assert back[new] == pytest.approx(np.minimum(1, ours / theirs)[new])


QUERY = """
SELECT * FROM A, B, C WHERE A.x = B.x AND B.x = C.x AND A.y < C.y
WINDOW AS (SLIDE INTERVAL '1 ns' ON '2 s' PRECISE)
"""


def stream(folder: Path, name: str, rate_tps: int, distinct: int, rows: int) -> StreamFile:
    i = np.arange(rows)
    columns = {"id": i, "ts": i * (NS_PER_S // rate_tps), "x": i % distinct, "y": i % 10}
    (folder / name).mkdir()
    pq.write_table(pa.table(columns), folder / name / "part-0.parquet")
    schema = Schema(stream=name, fields={"x": "int64", "y": "int64"}, width_bytes=60)
    return StreamFile(schema=schema, directory=folder / name)


def job(folder: Path, query: str = QUERY, rate_tps: int | None = None, rows: int = 1000) -> Job:
    files = (
        stream(folder, "A", 10, 5, rows),
        stream(folder, "B", 20, 8, rows),
        stream(folder, "C", 10, 50, rows),
    )
    return Job(query=parse_query(query), files=files, feeding=Feeding(rate_tps=rate_tps))


def measured(what: Job) -> JoinStatistics:
    return SemijoinTopology().statistics(what, SemijoinParameters(execution="delayed"), network())


def network() -> nx.Graph:
    network = full_mesh("ABC", PRESETS["wan"])
    network.add_edge("A", "C", link=Link(latency=Latency(mean_ns=5_000_000), bandwidth_bps=999))
    return network


def test_rates_windows_sizes_and_values_are_those_of_the_streams(tmp_path: Path) -> None:
    found = measured(job(tmp_path))
    assert [s.rate_tps for s in found.streams] == pytest.approx([10, 20, 10])
    assert [s.window_rows for s in found.streams] == pytest.approx([20, 40, 20])
    assert [s.full_bytes for s in found.streams] == [24 + 2 * 8 + 60] * 3
    (attribute,) = found.attributes  # one, since A.x = B.x = C.x
    assert attribute.distinct.tolist() == [5, 8, 50]
    (other,) = found.others
    assert other.distinct == {0: 10, 2: 10}
    assert other.selectivity == pytest.approx(0.45)  # of ten digits, the share below another


def test_links_are_those_between_the_sites(tmp_path: Path) -> None:
    found = measured(job(tmp_path))
    assert found.latency_s[0, 1] == found.latency_s[1, 0] == 0.025
    assert (found.latency_s[0, 2], found.bandwidth_bps[2, 0]) == (0.005, 999)


def test_a_feeding_rate_speeds_streams_up_and_leaves_their_windows(tmp_path: Path) -> None:
    found = measured(job(tmp_path, rate_tps=400))
    assert [s.rate_tps for s in found.streams] == pytest.approx([100, 200, 100])
    assert [s.window_rows for s in found.streams] == pytest.approx([20, 40, 20])


def test_a_sliding_window_is_half_a_slide_shorter_on_average(tmp_path: Path) -> None:
    query = QUERY.replace("'1 ns' ON '2 s' PRECISE", "'10' ON '30'")
    found = measured(job(tmp_path, query))
    assert [s.window_rows for s in found.streams] == [25, 25, 25]


def test_a_stream_may_last_from_one_end_of_int64_to_the_other(tmp_path: Path) -> None:
    what = job(tmp_path, rows=2)
    ends = np.array([LEAST, GREATEST])
    samples = [replace(sample, ts=ends) for sample in read_samples(what)]
    measuring = measuring_of(what, network(), SemijoinParameters())
    found = measuring.statistics(samples)
    assert [s.rate_tps for s in found.streams] == pytest.approx([NS_PER_S / 2**64] * 3)


def test_a_stream_of_one_tuple_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        TopologyError, match="stream A: measuring it takes at least 2 tuples; it has 1"
    ):
        measured(job(tmp_path, rows=1))
