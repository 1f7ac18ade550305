"""Preparing the streams of runs: synthetic ones in memory, others by Spark.

Spark would take a second for each synthetic stream, and several to start.
"""

from __future__ import annotations

from collections.abc import Callable

from joins.queries.query import JoinQuery
from scenarios.config import RunConfig
from scenarios.streams import dictionary_names, prepare_streams
from scenarios.synthetic import TIME
from scenarios.tables import prepare_tables
from spark_bridge.prepared import PreparedStream

_MADE_IN_MEMORY = 1 << 22
"""Most tuples that the streams of all runs have in memory together: some 450 MB."""


class Preparation:
    """Prepares the streams of one run, or of several, each once; `make_plan` calls it.

    Parameters
    ----------
    progress
        Called with the stage of what Spark prepares, how many stages are done, and of how many.
    on_spark
        Called before Spark starts.
    """

    def __init__(
        self,
        progress: Callable[[str, int, int], None] | None = None,
        on_spark: Callable[[], None] = lambda: None,
    ) -> None:
        self._progress = progress
        self._on_spark = on_spark
        self._known: dict[str, tuple[PreparedStream, ...]] = {}
        self._made = 0  # tuples in memory

    def __call__(self, config: RunConfig, query: JoinQuery) -> tuple[PreparedStream, ...]:
        """Return the streams of *config*, prepared if they are not yet."""
        fields = [query.fields(stream) for stream in range(len(query.streams))]
        asked = (query.streams, query.times, query.select, fields, dictionary_names(query))
        key = repr((config.streams, asked))
        if key not in self._known:
            self._known[key] = self._prepare(config, query)
        return self._known[key]

    def _prepare(self, config: RunConfig, query: JoinQuery) -> tuple[PreparedStream, ...]:
        streams = config.streams
        made = [one.synthetic for one in streams if one.synthetic and not one.where]
        tuples = self._made + sum(one.rows for one in made)
        if len(made) == len(query.streams) and tuples <= _MADE_IN_MEMORY:
            self._made = tuples
            return prepare_tables(
                query, made, [TIME] * len(made), [stream.arrival for stream in streams]
            )
        return prepare_streams(config, query, progress=self._progress, on_spark=self._on_spark)
