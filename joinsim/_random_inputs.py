"""Random joins: queries, streams, parameters, networks; small, dense with ties, and adversarial."""

from __future__ import annotations

import dataclasses
import types
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from annotated_types import Interval
from hypothesis import strategies as st

from actors.feed import StreamFile
from joins.batch import Schema
from joins.queries.parser import parse_query
from joins.queries.query import JoinQuery, QueryError
from netsim.network import PRESETS
from topologies import Topology, TopologyError
from topologies.quantities import Duration, Extent

_MOST_OF_A_NUMBER = 10
"""Random parameters stay this small: more PEs than tuples teach nothing."""


@dataclass(frozen=True)
class RandomStream:
    """Columns of a stream: ts, and fields x and y."""

    ts: list[int]
    x: list[float]
    y: list[int]

    def write(self, name: str, directory: Path, segment_rows: int) -> StreamFile:
        """Write it as a prepared stream, cut into segments, and return what reads it."""
        directory.mkdir(parents=True, exist_ok=True)
        for old in directory.glob("*.parquet"):
            old.unlink()
        table = pa.table(
            {
                "id": np.arange(len(self.ts)),
                "ts": np.array(self.ts, np.int64),
                "x": np.array(self.x, np.float64),
                "y": np.array(self.y, np.int64),
            }
        )
        for part, begin in enumerate(range(0, max(1, len(self.ts)), segment_rows)):
            pq.write_table(table.slice(begin, segment_rows), directory / f"part-{part:05}.parquet")
        fields = {"x": "float64", "y": "int64"}
        return StreamFile(schema=Schema(stream=name, fields=fields), directory=directory)


# Few distinct values, so that ties are everywhere; and some that 0.1 steps never hit exactly.
_floats = st.sampled_from([i / 10 for i in range(-5, 12)] + [0.30000000000000004, -0.0, 1e300])
_ints = st.integers(-4, 6)


@st.composite
def streams(draw: st.DrawFn, least: int = 0) -> RandomStream:
    """Draw up to some dozens of tuples, with equal timestamps among them."""
    rows = draw(st.lists(st.tuples(st.integers(0, 3), _floats, _ints), min_size=least, max_size=45))
    ts = np.cumsum([gap for gap, _, _ in rows]).tolist() if rows else []
    return RandomStream([int(t) for t in ts], [x for _, x, _ in rows], [y for _, _, y in rows])


@st.composite
def dense_streams(draw: st.DrawFn) -> RandomStream:
    """Draw dozens of tuples at few times with few keys, some of them frequent: many pairs."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = int(rng.integers(20, 120))
    ts = np.cumsum(rng.integers(0, 1 + rng.integers(1, 4), rows))
    keys = np.minimum(rng.geometric(rng.uniform(0.2, 0.9), rows), 6)
    return RandomStream(ts.tolist(), (rng.integers(0, 4, rows) / 10).tolist(), keys.tolist())


def _comparisons(left: str, right: str, operators: list[str]) -> st.SearchStrategy[str]:
    """Comparisons of a field of one side with a field of the other, the same or not."""
    field = st.sampled_from("xy")
    return st.builds(
        lambda a, op, b: f"{left.format(a)} {op} {right.format(b)}",
        field,
        st.sampled_from(operators),
        field,
    )


def _predicates(left: str, right: str) -> st.SearchStrategy[str]:
    """Predicates between fields of the two sides, given by *left* and *right*."""
    comparison = _comparisons(left, right, ["<", "<=", ">", ">=", "=", "!="])
    drawn = st.sampled_from("xy"), st.sampled_from(["<", "<="]), st.sampled_from([0.1, 0.3, 1, 2])
    band = st.tuples(*drawn).map(
        lambda of: f"ABS({left.format(of[0])} - {right.format(of[0])}) {of[1]} {of[2]}"
    )
    return comparison | band


@st.composite
def queries(draw: st.DrawFn, *, equality: bool = False) -> str:
    """Draw the text of a self join or a two-way join with one to three predicates.

    With *equality* at least one of them is ``=``.
    """
    two_way = draw(st.booleans())
    left, right = ("R.{}", "S.{}") if two_way else ("T.{}1", "T.{}2")
    needed = 1 if equality else 0
    equal = st.lists(_comparisons(left, right, ["="]), min_size=needed, max_size=needed)
    others = st.lists(_predicates(left, right), min_size=1 - needed, max_size=3 - needed)
    together = st.builds(lambda a, b: list(dict.fromkeys(a + b)), equal, others)
    predicates = draw(together.flatmap(st.permutations).filter(_consistent))
    names = "R, S" if two_way else "T"
    window = draw(_windows(8, 6))
    return f"SELECT * FROM {names} WHERE {' AND '.join(predicates)} WINDOW AS ({window})"


@st.composite
def multiway_queries(draw: st.DrawFn) -> str:
    """Draw the text of a join of two to four streams: any join graph, one window or several."""
    names = "RSTU"[: draw(st.integers(2, 4))]
    edges = [(draw(st.sampled_from(names[:place])), names[place]) for place in range(1, len(names))]
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    edges += draw(st.lists(st.sampled_from(pairs), max_size=2))
    predicates: list[str] = []
    for a, b in edges:
        # Mostly equalities: without them the results of four streams are very many.
        equal = _comparisons(f"{a}.{{}}", f"{b}.{{}}", ["="])
        predicates.append(draw(equal | equal | _predicates(f"{a}.{{}}", f"{b}.{{}}")))
    predicates = list(dict.fromkeys(predicates))
    while not _consistent(predicates, names):
        predicates.pop()
    each = draw(st.booleans())
    windows = [draw(_windows(6, 4)) for _ in (names if each else "*")]
    clauses = (
        ", ".join(f"{name} AS ({w})" for name, w in zip(names, windows, strict=True))
        if each
        else f"AS ({windows[0]})"
    )
    return f"SELECT * FROM {', '.join(names)} WHERE {' AND '.join(predicates)} WINDOW {clauses}"


@st.composite
def _windows(draw: st.DrawFn, slide_most: int, slides_most: int) -> str:
    """Draw a window of count or time, of up to so many slides of up to so much each."""
    slide = draw(st.integers(1, slide_most))
    length = slide * draw(st.integers(1, slides_most))
    unit = draw(st.sampled_from(["", " ns"]))
    precise = " PRECISE" if unit and draw(st.booleans()) else ""
    return f"SLIDE INTERVAL '{slide}{unit}' ON '{length}{unit}'{precise}"


@st.composite
def interval_queries(draw: st.DrawFn) -> str:
    """Draw the text of an interval join: any base, any interval, with or without predicates."""
    bounds = sorted(draw(st.tuples(st.integers(-9, 9), st.integers(-9, 9))))
    key = st.sampled_from(["R.y = S.y", "S.x = R.x", "R.x = S.y"])
    keys = draw(st.lists(key, max_size=1))
    others = draw(st.lists(_predicates("R.{}", "S.{}"), max_size=2, unique=True))
    predicates = [*keys, *(other for other in others if other not in keys)]
    if not _consistent(predicates or ["R.x < S.x"]):
        predicates = keys
    probe, base = draw(st.permutations("RS"))
    ends = [f"{base}.ts {'-' if b < 0 else '+'} INTERVAL '{abs(b)} ns'" for b in bounds]
    conditions = [*predicates, f"{probe}.ts BETWEEN {ends[0]} AND {ends[1]}"]
    return f"SELECT * FROM R, S WHERE {' AND '.join(draw(st.permutations(conditions)))}"


def _consistent(predicates: list[str], names: str = "RS") -> bool:
    """Whether a query with these predicates is accepted: contradictions are refused, rightly."""
    sides = ", ".join(names) if any(f"{name}." in predicates[0] for name in names) else "T"
    try:
        parse_query(
            f"SELECT * FROM {sides} WHERE {' AND '.join(predicates)} "
            "WINDOW AS (SLIDE INTERVAL '1' ON '1')"
        )
    except QueryError:
        return False
    return True


def parameters(topology: Topology[Any], query: JoinQuery, *, exact: bool) -> st.SearchStrategy[Any]:
    """Draw parameters of any topology that suit *query*, from the types of its fields.

    What contradicts the query or what was drawn before it is left at its default; with *exact* so
    is what takes the claim to exactness away.
    """
    hints = typing.get_type_hints(topology.parameters_type, include_extras=True)
    names = [field.name for field in dataclasses.fields(topology.parameters_type)]
    job = topology.sketch(query)

    def suit(values: dict[str, Any]) -> bool:
        drawn = topology.parameters_type(**values)
        try:
            topology.build(job, drawn)
        except TopologyError:
            return False
        return not exact or topology.claims_exact(drawn)

    def keep_what_suits(drawn: dict[str, Any]) -> Any:
        kept = drawn
        if not suit(drawn):
            kept = {}
            for name, value in drawn.items():
                if suit(kept | {name: value}):
                    kept[name] = value
        return topology.parameters_type(**kept)

    drawn = st.fixed_dictionaries({name: _values(hints[name], query) for name in names})
    return drawn.map(keep_what_suits)


def _values(hint: Any, query: JoinQuery) -> st.SearchStrategy[Any]:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return st.one_of([_values(option, query) for option in typing.get_args(hint)])
    if origin is typing.Literal:
        return st.sampled_from(typing.get_args(hint))
    if hint == Duration:
        return st.integers(1, 10**8)
    if origin is typing.Annotated:
        for bound in hint.__metadata__:
            if isinstance(bound, Interval) and bound.gt is not None:
                return st.floats(_number(bound.gt), _number(bound.le), exclude_min=True)
            if isinstance(bound, Interval):
                least = int(_number(bound.ge))
                most = min(int(_number(bound.le)), least + _MOST_OF_A_NUMBER - 1)
                return st.integers(least, most)
            if isinstance(bound, Extent):
                return st.sampled_from(bound.words) | _extents(query)
    return st.from_type(hint)


def _number(bound: object) -> float:
    assert isinstance(bound, int | float)  # parameters are numbers
    return bound


def _extents(query: JoinQuery) -> st.SearchStrategy[str]:
    """Parts of the query's window, as text."""
    window = query.windows[0]
    unit = "" if window.kind == "count" else " ns"
    return st.integers(1, window.length).map(lambda size: f"{size}{unit}")


networks = st.fixed_dictionaries(
    {"preset": st.sampled_from(list(PRESETS))},
    optional={
        "latency": st.integers(0, 10_000_000),
        "jitter": st.integers(0, 10_000_000),
        "latency_kind": st.sampled_from(["constant", "uniform", "normal", "pareto"]),
        "bandwidth": st.integers(10_000, 10**10),
        "cores": st.integers(1, 3),
        "inbox_messages": st.integers(1, 8),
    },
)
feedings = st.fixed_dictionaries(
    {"batch_rows": st.integers(1, 20), "rate_tps": st.none() | st.integers(1, 10**7)}
)
disorders = st.fixed_dictionaries(
    {"disorder": st.integers(0, 12), "bounded": st.booleans()},
    optional={"watermark_lag": st.integers(0, 12)},
)
