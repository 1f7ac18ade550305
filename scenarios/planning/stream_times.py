"""Window joins timed on this machine, over the streams that they are planned for."""

from __future__ import annotations

from collections.abc import Mapping

from actors.disorder import open_feed
from joins.window_join.registry import Making
from joins.window_join.rows import RowMaker
from scenarios.calibration.window_joins import time_join, tuples_to_time
from scenarios.plan import Plan


def time_on_streams(plan: Plan, makings: Mapping[str, Making]) -> dict[str, float]:
    """Return what tuples of a run's own streams cost joins of one thread, processor ns, by name.

    Those of count windows that are full; none where the streams end before.
    """
    if any(window.kind != "count" for window in plan.query.windows):
        return {}
    filling = sum(window.length for window in plan.query.windows)
    self_join = plan.query.is_self_join
    timed = {name: making for name, making in makings.items() if not making.threads}
    wanted = {
        name: tuples_to_time(making.index, filling / (1 if self_join else 2))
        for name, making in timed.items()
    }
    arrivals = open_feed(plan.files, None).take(filling + max(wanted.values()))
    if arrivals is None or len(arrivals) <= filling:
        return {}
    rows = RowMaker(plan.query, [file.schema for file in plan.files]).make(arrivals)
    unit_ps = plan.profile.unit_ps
    return {
        name: time_join(
            making.make(self_join=self_join, unit_ps=unit_ps),
            rows.part(0, filling + wanted[name]),
            filling,
        ).tuple_ns
        for name, making in timed.items()
    }
