"""The operator that Spark's plan has for a stage: it loads the stage when tuples come.

Before the first trigger Spark starts a Python process for each stage, which names the stage's state
variables and does nothing else. To import actors and kernels takes half a second; so this module
imports none of ours, and the stage stays pickled until it is needed.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

if TYPE_CHECKING:
    from spark_bridge.hosted.stage import Stage


class StageOperator(StatefulProcessor):  # type: ignore[misc]
    """Runs a *stage*, in whichever process Spark chooses."""

    def __init__(self, stage: Stage) -> None:
        self._pickled = cloudpickle.dumps(stage)

    def init(self, handle: Any) -> None:
        """Open the state variable."""
        self._head = handle.getValueState("head", "bytes binary")
        self._stage: Stage | None = None

    def handleInputRows(  # noqa: N802  (Spark's name)
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[Row]:
        """Process the rows of one group in a trigger."""
        if self._stage is None:
            self._stage = pickle.loads(self._pickled)
        yield from self._stage.process(self._head, rows)

    def close(self) -> None:
        """Nothing is open."""
