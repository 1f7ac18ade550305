"""What the steps of an index-based window join cost, one by one (PIM-Tree, Figures 9b and 14)."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from joins.indexes.b_plus.b_plus_tree import BPlusTree
from joins.indexes.pim_tree.pim_tree import ImTree, PimTree
from joins.matches import ProbeResult
from joins.work import NO_WORK, Work
from netsim.cost import CostProfile
from scenarios.calibration.window_joins import band_of, uniform_keys
from scenarios.surveys.survey import Survey, Surveyed

_LEAST_BITS = 6
_BATCH = 4096
_WINDOWS = 4
"""What is inserted: memory is new until the third window has been merged; the last one counts."""
_MERGE_RATIO = 0.5
"""That of the paper's single thread, as in the other studies."""


class IndexStepsSurvey(Survey):
    """What the steps of a join take while one full window is replaced, two matches a tuple.

    ``counted_ns`` and ``processor_ns`` are times a tuple, virtual ones of the work that was counted
    and this processor's: of ``insert``, ``delete``, ``search`` (the way to where a range begins),
    ``scan`` (what its matches add), ``merge`` and ``total``. ``merges`` likewise has ``counted_ms``
    and ``processor_ms`` of one merge, ``counted_ns`` and ``processor_ns`` of one entry of the tree
    that is merged, and what share of all time merging takes, ``counted_percent`` and
    ``processor_percent``; all 0 where nothing is merged.

    Attributes
    ----------
    index, window_bits
        Of what, and its window: 2^*window_bits* tuples.
    """

    of: Literal["index steps"] = "index steps"
    index: Literal["b_plus_tree", "im_tree", "pim_tree"] = "pim_tree"
    window_bits: Annotated[int, Field(ge=_LEAST_BITS, le=26)] = 16

    def take(self, *, seed: int, profile: CostProfile) -> Surveyed:
        """Take the steps, and compare the last tuples' matches with those of a sorted window."""
        _Steps(self.index, 1 << _LEAST_BITS).run()  # the first ones compile
        steps = _Steps(self.index, 1 << self.window_bits)
        exact = steps.run()
        counted_ns = {step: float(profile.work_ns(work)) for step, work in steps.work.items()}
        processor_ns = {step: seconds * 1e9 for step, seconds in steps.seconds.items()}
        record: dict[str, Any] = {"merges": {}}
        for kind, spent_ns in (("counted", counted_ns), ("processor", processor_ns)):
            each_ns = _per_tuple(spent_ns, 1 << self.window_bits)
            merge_ns = spent_ns.get("merge", 0.0)
            record[f"{kind}_ns"] = each_ns
            record["merges"] |= {
                f"{kind}_ms": merge_ns / 1e6 / max(1, len(steps.merged)),
                f"{kind}_ns": merge_ns / max(1, sum(steps.merged)),
                f"{kind}_percent": 100 * each_ns["merge"] / each_ns["total"],
            }
        return Surveyed(
            record=record, checked="the last tuples' matches are those in the window", passed=exact
        )


def _per_tuple(spent_ns: dict[str, float], tuples: int) -> dict[str, float]:
    """Return all steps' times a tuple; what a scan adds to a search is all that can be measured."""
    scan_ns = max(0.0, spent_ns["search and scan"] - spent_ns["search"])
    steps = {step: spent_ns.get(step, 0.0) for step in ("insert", "delete", "search", "merge")}
    whole = steps | {"scan": scan_ns, "total": sum(steps.values()) + scan_ns}
    return {step: ns / tuples for step, ns in whole.items()}


_FORESTS = {"im_tree": ImTree, "pim_tree": PimTree}


class _Steps:
    """Slides a window over an index, a batch at a time, and keeps what each step took.

    Attributes
    ----------
    work, seconds
        Counted work and processor time of the steps.
    merged
        Entries of the tree at each merge.
    """

    def __init__(self, index: str, window: int) -> None:
        self._window = window
        self._index: Any = (
            BPlusTree() if index == "b_plus_tree" else _FORESTS[index](merge_ratio=_MERGE_RATIO)
        )
        self._forget()

    def run(self) -> bool:
        """Replace the window again and again, keep the last time, and say whether it is right."""
        window, band = self._window, band_of(self._window)
        index = self._index
        keys = uniform_keys(_WINDOWS * window)
        index.insert(keys[:window], np.arange(window))
        if not isinstance(index, BPlusTree):
            index.maintain(0)
        batch = min(_BATCH, int(_MERGE_RATIO * window))  # from now on merges are due between them
        for begin in range(window, len(keys), batch):
            if begin == len(keys) - window:
                self._forget()
            positions, new = np.arange(begin, begin + batch), keys[begin : begin + batch]
            self._do("insert", index.insert, new, positions)
            self._slide(keys, positions - window)
            nothing = np.zeros(batch, np.int64)
            self._do("search", index.probe, new, new, start=nothing, stop=nothing)
            found = self._do("search and scan", index.probe, new - band, new + band)
        held = np.sort(keys[-window:])
        right = np.searchsorted(held, new + band, "right") - np.searchsorted(held, new - band)
        return np.array_equal(found.count, right)

    def _slide(self, keys: np.ndarray, gone: np.ndarray) -> None:
        """Let the tuples at positions *gone* go: at once, or with the next merge."""
        index = self._index
        if isinstance(index, BPlusTree):
            self._do("delete", index.delete, keys[gone], gone)
            return
        index.expire(int(gone[-1]) + 1)
        if index.active_entries(0) >= index.merge_limit(self._window):
            self.merged.append(index.entries(0))
            self._do("merge", index.maintain, 0)

    def _do(
        self, step: str, function: Callable[..., Work | ProbeResult], *args: Any, **options: Any
    ) -> Any:
        started = time.thread_time()
        found = function(*args, **options)
        self.seconds[step] += time.thread_time() - started
        self.work[step] += found.work if isinstance(found, ProbeResult) else found
        return found

    def _forget(self) -> None:
        self.work: dict[str, Work] = defaultdict(lambda: NO_WORK)
        self.seconds: dict[str, float] = defaultdict(float)
        self.merged: list[int] = []
