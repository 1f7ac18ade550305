"""What the window joins of this package should cost a tuple, by PIM-Tree's model.

`joins.window_join.model.cost_model` states the equations in times per node; here those times follow
from what the kernels do at a node and what a unit of work takes. Nodes of a forest are searched by
counting, so that a node costs as many comparisons as it has slots; B+-trees are searched entry by
entry. The paper has no equation for a Bw-Tree: it is a B+-tree here, whose nodes are pages with
their deltas.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from joins.indexes.b_plus.b_plus_tree import NODE_ENTRIES
from joins.indexes.bw_tree import bw_tree
from joins.indexes.pim_tree.index import WIDTH
from joins.window_join.model.cost_model import (
    Load,
    Terms,
    TreeTimes,
    b_plus_tree,
    chained_index,
    im_tree,
    nested_loop,
    pim_tree,
    subindexes_at,
    total,
)
from joins.window_join.registry import IndexName, Making
from joins.work import COUNTERS

_FILLED = 0.69
"""Share of a B+-tree's slots that random inserts fill on average: ln 2 (Yao, 1978)."""
_ENTRY_BYTES = 16

MODELLED: tuple[IndexName, ...] = (
    "pim_tree",
    "im_tree",
    "b_plus_tree",
    "bw_tree",
    "ib_chain",
    "b_chain",
    "nested_loop",
)
"""Indexes that the model has an equation for."""

MERGE_RATIOS = tuple(2.0**-k for k in range(7))
INSERTION_DEPTHS = (0, 1, 2, 3)
CHAIN_LENGTHS = (2, 3, 4, 8)


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What a window join should cost a tuple, ns by the terms of its equation."""

    making: Making
    terms: Terms

    @property
    def tuple_ns(self) -> float:
        """All terms together."""
        return total(self.terms)


def predict(
    making: Making, *, window: float, match_rate: float, unit_ps: Sequence[int]
) -> Prediction:
    """Return what the join should cost a tuple on one core, without concurrency control.

    Parameters
    ----------
    making
        The join.
    window, match_rate
        Tuples in each window, and matches a tuple.
    unit_ps
        What a unit of each counter of `joins.work.Work` takes.

    Raise :exc:`ValueError` for an index that the model has no equation for.
    """
    if making.index not in MODELLED:
        raise ValueError(
            f"the cost model has no equation for {making.index}, only for {', '.join(MODELLED)}"
        )
    unit_ns = {name: ps / 1000 for name, ps in zip(COUNTERS, unit_ps, strict=True)}
    compare_ns = unit_ns["comparisons"]
    load = Load(window=window, match_rate=match_rate, compare_ns=compare_ns + unit_ns["matches"])
    immutable = TreeTimes(fanout=WIDTH, search_ns=WIDTH * compare_ns, full=True)
    entry_ns = compare_ns + unit_ns["moves"] + _ENTRY_BYTES * unit_ns["bytes_copied"]
    m = making.merge_ratio

    def mutable(entries: float) -> TreeTimes:
        return _updated(WIDTH, WIDTH, entries, unit_ns, deletes=False)

    if making.index == "nested_loop":
        terms = nested_loop(replace(load, compare_ns=compare_ns))
    elif making.index == "b_plus_tree":
        filled = _FILLED * NODE_ENTRIES
        terms = b_plus_tree(load, _updated(NODE_ENTRIES, filled, window, unit_ns, deletes=True))
    elif making.index == "bw_tree":
        terms = b_plus_tree(load, _latch_free(window, unit_ns))
    elif making.index in ("b_chain", "ib_chain"):
        part = mutable(window / (making.chain_length - 1))
        archived = immutable if making.index == "ib_chain" else part
        terms = chained_index(load, part, archived, making.chain_length)
    elif making.index == "im_tree":
        terms = im_tree(load, mutable(m * window / 2), immutable, m, entry_ns)
    else:
        _, subindexes = subindexes_at(making.insertion_depth, window, immutable)
        inserted = mutable(m * window / 2 / subindexes)
        terms = pim_tree(load, inserted, immutable, m, entry_ns, making.insertion_depth)
    return Prediction(making=making, terms=terms)


def _updated(
    width: int, searched: float, entries: float, unit_ns: dict[str, float], *, deletes: bool
) -> TreeTimes:
    """Return the times of a tree that tuples are inserted into, with that many *entries*.

    Of *width* slots a node has as many filled as random inserts leave, and *searched* are compared.
    What happens in the leaf alone is spread over the levels, as the equations want it.
    """
    fanout = _FILLED * width
    search_ns = searched * unit_ns["comparisons"]
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


def predict_all(*, window: float, match_rate: float, unit_ps: Sequence[int]) -> list[Prediction]:
    """Return a prediction for each index at its best parameters, the cheapest first."""
    best: dict[str, Prediction] = {}
    for making in _makings():
        found = predict(making, window=window, match_rate=match_rate, unit_ps=unit_ps)
        if making.index not in best or found.tuple_ns < best[making.index].tuple_ns:
            best[making.index] = found
    return sorted(best.values(), key=lambda prediction: prediction.tuple_ns)


def _makings() -> Iterator[Making]:
    yield Making(index="nested_loop")
    yield Making(index="b_plus_tree")
    yield Making(index="bw_tree")
    for length in CHAIN_LENGTHS:
        yield Making(index="b_chain", chain_length=length)
        yield Making(index="ib_chain", chain_length=length)
    for ratio in MERGE_RATIOS:
        yield Making(index="im_tree", merge_ratio=ratio)
        for depth in INSERTION_DEPTHS:
            yield Making(index="pim_tree", merge_ratio=ratio, insertion_depth=depth)
