"""What a tuple costs each window join: PIM-Tree's analytical model (equations 1 to 7 but 4).

Two parts. The equations: every function returns the terms of one by name, in the units of its
times; equation 1 is their sum. Equation 4 is about another system, whose cores have a tree each.
They are those of a join of two streams with equal windows; the symbols are in `JoinLoad` and
`TreeTimes`. A height is counted in inner levels, log to the base of the
fan-out of the entries, as in the paper: a fraction of a level counts as such, but where nodes are
filled up from the leaves, so that one entry too many makes another root.

Predictions: times per node follow from what the kernels do at a node and what a unit of work takes
that index, in windows of that size: there the levels of memory show.
Nodes of a forest are searched by counting, so that a node costs as many comparisons as it has
slots; B+-trees are searched entry by entry. The paper has no equation for a Bw-Tree: it is a
B+-tree here, whose nodes are pages with their deltas.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter

from joins.indexes import bw_tree
from joins.indexes.pim_tree.forest_index import WIDTH
from joins.window_join.b_plus_join import FANOUT
from joins.window_join.window_join_spec import IndexName, WindowJoinSpec
from joins.work import COUNTERS, ENTRY_BYTES

Terms = dict[str, float]

_ROUNDING = 1e-9
"""How far above the whole number that it should be a logarithm may come out."""


@dataclass(frozen=True, kw_only=True)
class JoinLoad:
    """What is joined."""

    window: float
    """w, tuples in each window."""
    match_rate: float
    """σ_s, the selectivity σ times w: matches per tuple."""
    compare_ns: float
    """Time to compare two tuples."""


@dataclass(frozen=True, kw_only=True)
class TreeTimes:
    """A kind of tree: fan-out of its inner nodes, and the time of an operation at one node.

    An immutable tree has a search time alone, and is *full*: it has whole levels, and all nodes but
    those near its root have as many children as may be.
    """

    fanout: float
    search_ns: float
    insert_ns: float = 0.0
    delete_ns: float = 0.0
    full: bool = False

    def height(self, entries: float) -> float:
        """Return the levels above *entries* entries; at least one node is always visited."""
        levels = math.log(max(entries, 1.0), self.fanout)
        return max(1.0, math.ceil(levels - _ROUNDING) if self.full else levels)


def nested_loop(load: JoinLoad) -> Terms:
    """Without an index the whole window is compared."""
    return {"scan": load.window * load.compare_ns}


def b_plus_tree(load: JoinLoad, tree: TreeTimes) -> Terms:
    """Equation 2: three operations in a tree of the whole window, and a scan of the matches."""
    height = tree.height(load.window)
    return {
        "search": height * tree.search_ns,
        "scan": load.match_rate * load.compare_ns,
        "delete": height * tree.delete_ns,
        "insert": height * tree.insert_ns,
    }


def chained_index(load: JoinLoad, active: TreeTimes, archived: TreeTimes, length: int) -> Terms:
    """Equation 3: all *length* trees are searched, one is inserted into, none is deleted from.

    The active tree is taken to be as high as an archived one. With L trees each holds w / (L - 1);
    half of the oldest has expired on average, and its matches are scanned for nothing. For a
    B-chain both kinds of tree are the same.
    """
    part = load.window / (length - 1)
    stale = load.match_rate / (2 * (length - 1))
    return {
        "search": (length - 1) * archived.height(part) * archived.search_ns
        + active.height(part) * active.search_ns,
        "scan": (load.match_rate + stale) * load.compare_ns,
        "insert": active.height(part) * active.insert_ns,
    }


def pim_tree(
    load: JoinLoad,
    mutable: TreeTimes,
    immutable: TreeTimes,
    merge_ratio: float,
    merge_entry_ns: float,
    insertion_depth: int,
) -> Terms:
    """Equations 5 and 6: two trees are searched, one is inserted into, merging is shared out.

    Depth 0 is the IM-Tree, of equation 5. Between two merges its mutable tree grows from nothing to
    m·w; its height is that of the mean, m·w / 2, and as many tuples have expired in the immutable
    one. A PIM-Tree (equation 6) has subindexes in place of the one mutable tree. A search comes to
    its subindex on the way down the immutable tree; an insert has to walk those *insertion_depth*
    levels first.
    """
    inserts = merge_ratio * load.window
    merge_ns = merge_time(load.window + inserts, immutable.fanout, merge_entry_ns)
    stale = load.match_rate * merge_ratio / 2
    depth, subindexes = subindexes_at(insertion_depth, load.window, immutable)
    height = mutable.height(inserts / 2 / subindexes)
    return {
        "search": height * mutable.search_ns + immutable.height(load.window) * immutable.search_ns,
        "scan": (load.match_rate + stale) * load.compare_ns,
        "merge": merge_ns / inserts,
        "insert": depth * immutable.search_ns + height * mutable.insert_ns,
    }


def subindexes_at(insertion_depth: int, window: float, immutable: TreeTimes) -> tuple[float, float]:
    """Return how deep *insertion_depth* can be in a PIM-Tree, and how many subindexes are there.

    There is one per node at that depth, the lowest inner level at the most. The paper takes D_I
    levels to have f to the power of D_I nodes; but a root has as many children as are left over,
    with f of 32 two of them over 2^21 entries, and the levels below it so many times fewer nodes.
    """
    height = immutable.height(window)
    depth = min(float(insertion_depth), max(0.0, height - 2))
    return depth, max(1.0, window / immutable.fanout ** (height - depth)) if depth else 1.0


def merge_time(entries: float, fanout: float, merge_entry_ns: float) -> float:
    """Equation 7: merging is linear in the *entries* read, and so is building the inner nodes.

    The nodes over n entries hold n / f keys at the lowest level, n / f² above, and so on:
    n / (f - 1) together, each of which costs as much as an entry.
    """
    return (entries + entries / (fanout - 1)) * merge_entry_ns


# Predictions.

_FILLED = 0.69
"""Share of a B+-tree's slots that random inserts fill on average: ln 2 (Yao, 1978)."""

_MERGE_RATIOS = tuple(2.0**-k for k in range(7))
_CHAIN_LENGTHS = (2, 3, 4, 8)

CANDIDATES: dict[IndexName, list[WindowJoinSpec]] = {
    "pim_tree": [
        WindowJoinSpec(merge_ratio=ratio, insertion_depth=depth)
        for ratio in _MERGE_RATIOS
        for depth in (0, 1, 2, 3)
    ],
    "im_tree": [WindowJoinSpec(index="im_tree", merge_ratio=ratio) for ratio in _MERGE_RATIOS],
    "b_plus_tree": [WindowJoinSpec(index="b_plus_tree")],
    "bw_tree": [WindowJoinSpec(index="bw_tree")],
    "ib_chain": [
        WindowJoinSpec(index="ib_chain", chain_length=length) for length in _CHAIN_LENGTHS
    ],
    "b_chain": [WindowJoinSpec(index="b_chain", chain_length=length) for length in _CHAIN_LENGTHS],
    "nested_loop": [WindowJoinSpec(index="nested_loop")],
}
"""The indexes that the model has an equation for, and of each the settings to choose from."""

MODELLED = tuple(CANDIDATES)


@dataclass(frozen=True, kw_only=True)
class CostPrediction:
    """What a window join should cost a tuple, ns by the terms of its equation."""

    spec: WindowJoinSpec
    terms: Terms

    @property
    def tuple_ns(self) -> float:
        """The sum of all terms."""
        return sum(self.terms.values())


def predict(
    spec: WindowJoinSpec, *, window: float, match_rate: float, unit_ps: Sequence[int]
) -> CostPrediction:
    """Return what the join should cost a tuple on one core, without concurrency control.

    Parameters
    ----------
    spec
        The join.
    window, match_rate
        Tuples in each window, and matches a tuple.
    unit_ps
        What a unit of each counter of `joins.work.Work` takes; an insertion with its share of the
        call.

    Raise :exc:`ValueError` for an index that the model has no equation for.
    """
    if spec.index_name not in MODELLED:
        raise ValueError(
            f"the cost model has no equation for {spec.index_name}, only for {', '.join(MODELLED)}"
        )
    unit_ns = {name: ps / 1000 for name, ps in zip(COUNTERS, unit_ps, strict=True)}
    compare_ns = unit_ns["comparisons"]
    load = JoinLoad(
        window=window, match_rate=match_rate, compare_ns=compare_ns + unit_ns["matches"]
    )
    immutable = TreeTimes(fanout=WIDTH, search_ns=WIDTH * compare_ns, full=True)
    entry_ns = compare_ns + unit_ns["moves"] + ENTRY_BYTES * unit_ns["bytes_copied"]
    m = spec.ratio

    def mutable(entries: float) -> TreeTimes:
        return _updated(WIDTH, entries, unit_ns, deletes=False)

    if spec.index == "nested_loop":
        terms = nested_loop(replace(load, compare_ns=compare_ns))
        terms["insert"] = unit_ns["inserts"]
    elif spec.index == "b_plus_tree":
        terms = b_plus_tree(load, _updated(FANOUT, window, unit_ns, deletes=True))
    elif spec.index == "bw_tree":
        terms = b_plus_tree(load, _latch_free(window, unit_ns))
    elif spec.index in ("b_chain", "ib_chain"):
        part = mutable(window / (spec.chain_length - 1))
        archived = immutable if spec.index == "ib_chain" else part
        terms = chained_index(load, part, archived, spec.chain_length)
    else:
        _, subindexes = subindexes_at(spec.depth, window, immutable)
        inserted = mutable(m * window / 2 / subindexes)
        terms = pim_tree(load, inserted, immutable, m, entry_ns, spec.depth)
    return CostPrediction(spec=spec, terms=terms)


def _updated(width: int, entries: float, unit_ns: dict[str, float], *, deletes: bool) -> TreeTimes:
    """Return the times of a tree that tuples are inserted into, with that many *entries*.

    Of *width* slots a node has as many filled as random inserts leave, and all are compared.
    What happens in the leaf alone is spread over the levels, as the equations want it.
    """
    fanout = _FILLED * width
    search_ns = width * unit_ns["comparisons"]
    height = TreeTimes(fanout=fanout, search_ns=search_ns).height(entries)
    moves_ns = fanout / 2 * unit_ns["moves"]
    return TreeTimes(
        fanout=fanout,
        search_ns=search_ns,
        insert_ns=search_ns + (unit_ns["inserts"] + moves_ns) / height,
        delete_ns=search_ns + moves_ns / height if deletes else 0.0,
    )


def _latch_free(entries: float, unit_ns: dict[str, float]) -> TreeTimes:
    """Return the times of a Bw-Tree of *entries*, spread over its levels as of `_updated`.

    A leaf has half a full chain of deltas on average, an inner page hardly any. A change finds its
    leaf and publishes a delta without reading it; one in a full chain's length finds it once more
    and consolidates; and every entry is moved twice when the tree is built anew.
    """
    filled, chain = _FILLED * bw_tree.WIDTH, bw_tree.CHAIN
    compare_ns, atomic_ns = unit_ns["comparisons"], unit_ns["atomics"]
    page_ns = (filled + 1) * compare_ns + atomic_ns
    height = TreeTimes(fanout=filled, search_ns=page_ns).height(entries)
    consolidate_moves = filled + chain + chain * filled / 2
    rebuild_moves = 2 * bw_tree.CHANGES_PER_ENTRY
    change_ns = (
        (1 + 1 / chain) * ((height - 1) * page_ns + 4 * atomic_ns)
        + atomic_ns
        + (consolidate_moves / chain + rebuild_moves) * unit_ns["moves"]
    )
    return TreeTimes(
        fanout=filled,
        search_ns=page_ns + ((chain / 2 + 1) * (compare_ns + atomic_ns)) / height,
        insert_ns=(change_ns + unit_ns["inserts"] + 2 * atomic_ns) / height,
        delete_ns=change_ns / height,
    )


def predict_all(
    *, window: float, match_rate: float, unit_ps: Callable[[str], Sequence[int]]
) -> list[CostPrediction]:
    """Return a prediction for each index at its best parameters, the cheapest first.

    *unit_ps* are the prices of units, by index.
    """
    best = []
    for index, specs in CANDIDATES.items():
        of_index = partial(predict, window=window, match_rate=match_rate, unit_ps=unit_ps(index))
        best.append(min(map(of_index, specs), key=attrgetter("tuple_ns")))
    return sorted(best, key=attrgetter("tuple_ns"))
