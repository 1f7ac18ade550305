"""How N_1 keeps count of a count window of which it holds a part."""

from __future__ import annotations

from typing import Any

import numpy as np

from actors.semijoins.part import OneWayStep
from actors.semijoins.payloads import WindowUpdate
from joins.batch import Batch
from joins.semijoins.horizon import Timeline

_NONE = np.empty(0, np.int64)


def window_update(
    step: OneWayStep, tick: int, batch: Batch, keep_from: int, **what: Any
) -> WindowUpdate:
    """Return the update after new tuples *batch*, with their times where N_1 must count them."""
    counted = step.window.kind == "count"
    return WindowUpdate(
        step=step.number,
        tick=tick,
        keep_from=keep_from,
        ids=batch.id if counted else _NONE,
        ts=batch.ts if counted else _NONE,
        **what,
    )


def follow(line: Timeline, update: WindowUpdate) -> None:
    """Take over the positions and event times of an update."""
    line.extend(update.ids, update.ts)
    line.forget(update.keep_from)
