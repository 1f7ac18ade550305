"""What one tuple costs each window join: PIM-Tree's analytical model (equations 1 to 7).

Every function returns the terms of an equation by name, in the units of the times it is given;
`total` adds them up. The equations are those of a join of two streams with equal windows; the
symbols stand in `Load` and `TreeTimes`. A height is counted in inner levels, log to the base of the
fan-out of the entries, as in the paper: a fraction of a level counts as such, but where nodes are
filled up from the leaves, so that one entry too many gives a tree another root.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

Terms = dict[str, float]

_ROUNDING = 1e-9
"""A logarithm may be so much above a whole number that it should be."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """What is joined.

    Attributes
    ----------
    window
        w, tuples in each window.
    match_rate
        σ_s, the selectivity σ times w: matches per tuple.
    compare_ns
        Time to compare two tuples.
    """

    window: float
    match_rate: float
    compare_ns: float


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


def total(terms: Terms) -> float:
    """Return the time a tuple takes."""
    return sum(terms.values())


def window_join(search_ns: float, delete_ns: float, insert_ns: float) -> Terms:
    """Equation 1: a tuple is looked up, one is deleted, one is inserted."""
    return {"search": search_ns, "delete": delete_ns, "insert": insert_ns}


def nested_loop(load: Load) -> Terms:
    """Equation 1 without an index: the whole window is compared."""
    return {"scan": load.window * load.compare_ns}


def b_plus_tree(load: Load, tree: TreeTimes) -> Terms:
    """Equation 2: three operations in a tree of the whole window, and a scan of the matches."""
    height = tree.height(load.window)
    return {
        "search": height * tree.search_ns,
        "scan": load.match_rate * load.compare_ns,
        "delete": height * tree.delete_ns,
        "insert": height * tree.insert_ns,
    }


def chained_index(load: Load, active: TreeTimes, archived: TreeTimes, length: int) -> Terms:
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


def round_robin(load: Load, tree: TreeTimes, cores: int) -> Terms:
    """Equation 4: every one of *cores* local trees is searched, one is updated.

    This is the work of all cores together, as of the join-cores of low-latency handshake join.
    """
    height = tree.height(load.window / cores)
    return {
        "search": cores * height * tree.search_ns,
        "scan": load.match_rate * load.compare_ns,
        "delete": height * tree.delete_ns,
        "insert": height * tree.insert_ns,
    }


def im_tree(
    load: Load, mutable: TreeTimes, immutable: TreeTimes, merge_ratio: float, merge_entry_ns: float
) -> Terms:
    """Equation 5: two trees are searched, the mutable one is inserted into, merging is shared out.

    Between two merges the mutable tree grows from nothing to m·w; its height is that of the mean,
    m·w / 2, and as many tuples have expired in the immutable one.
    """
    inserts = merge_ratio * load.window
    merge_ns = merge_time(load.window + inserts, immutable.fanout, merge_entry_ns)
    stale = load.match_rate * merge_ratio / 2
    height = mutable.height(inserts / 2)
    return {
        "search": height * mutable.search_ns + immutable.height(load.window) * immutable.search_ns,
        "scan": (load.match_rate + stale) * load.compare_ns,
        "merge": merge_ns / inserts,
        "insert": height * mutable.insert_ns,
    }


def pim_tree(
    load: Load,
    mutable: TreeTimes,
    immutable: TreeTimes,
    merge_ratio: float,
    merge_entry_ns: float,
    insertion_depth: int,
) -> Terms:
    """Equation 6: as an IM-Tree, with subindexes in place of the one mutable tree.

    A search comes to its subindex on the way down the immutable tree; an insert has to walk those
    *insertion_depth* levels first.
    """
    inserts = merge_ratio * load.window
    depth, subindexes = subindexes_at(insertion_depth, load.window, immutable)
    height = mutable.height(inserts / 2 / subindexes)
    terms = im_tree(load, mutable, immutable, merge_ratio, merge_entry_ns)
    terms["search"] = (
        height * mutable.search_ns + immutable.height(load.window) * immutable.search_ns
    )
    terms["insert"] = depth * immutable.search_ns + height * mutable.insert_ns
    return terms


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
